"""Measure the export of a million articles, the workbook, and a day of writes to a Google Sheet.

Each export runs in a process of its own, which reports its CPU time, the time to its first row and
its peak memory above what it used before the export began. `python -m benchmarks.exports 100000`
takes another number of articles.
"""

import csv
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import RESULTS_FOLDER

ARTICLES = 1_000_000
RESULTS = RESULTS_FOLDER / "exports.json"
NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
_AT_ONCE = 10_000
# Articles take 2,000 characters of it, a little under the mean of real ones; no text occurs twice.
_TEXT = " ".join(f"The council agreed on plan {number} for a bridge." for number in range(100))


@dataclass(frozen=True, slots=True)
class Bound:
    """One measurement with the least or the most that it may be."""

    what: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_kept(self) -> bool:
        """Return whether the value lies within its bounds."""
        is_low = self.at_least is not None and self.value < self.at_least
        is_high = self.at_most is not None and self.value > self.at_most
        return not (is_low or is_high)


def main(articles: int = ARTICLES) -> None:
    """Run all measurements, print a table, and write the results file."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        fill_ledger(ledger, articles)
        bounds = [*measure_csv(ledger, articles), *measure_workbook(ledger)]
    bounds += measure_sheet()
    print(f"{'exports':<66}{'measured':>10}{'bound':>10}")
    for one in bounds:
        bound = one.at_least if one.at_least is not None else one.at_most
        mark = "" if one.is_kept else "  missed"
        print(f"{one.what:<66}{one.value:>10.2f}{bound if bound is not None else '':>10}{mark}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(one) for one in bounds], indent=1) + "\n")


def fill_ledger(path: Path, articles: int) -> None:
    """Write a ledger of stored articles, as workers would leave it."""
    import sqlalchemy as sa

    from news_platform.rss.ledger.tables import RAW
    from news_platform.storage.sql.engine import migrate, open_engine

    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    for start in range(0, articles, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, articles))
        with engine.begin() as connection:
            connection.execute(sa.insert(RAW), [_article(number) for number in numbers])
    engine.dispose()


def _article(number: int) -> dict[str, object]:
    url = f"https://outlet{number % 500}.example/news/{number}"
    found_at = NOW - timedelta(seconds=number * 7 % 2_592_000)
    digest = hashlib.sha256(url.encode()).hexdigest()
    text = f"{_TEXT[number % 1_000 :][:2_000]} {digest}"
    return {
        "source": f"outlet{number % 500}.example",
        "feed_url": f"https://outlet{number % 500}.example/feed",
        "article_url": url,
        "article_url_canon": url,
        "url_hash": digest,
        "text_hash": digest[::-1],
        "found_at": found_at,
        "fetched_at": found_at + timedelta(minutes=5),
        "published_at": found_at - timedelta(minutes=30) if number % 10 else None,
        "language": "en",
        "title": f"Council agrees on bridge {number}",
        "authors": ("Ann Example", "Bo Example"),
        "tags": ("city", "bridges"),
        "article_type": "news",
        "clean_text": text,
        "clean_text_len": len(text),
        "full_text_ref": f"articles/full_text/{digest[:2]}/{digest}.txt.gz",
        "word_count": 380,
        "out_links": ("https://city.example/plan",),
        "category_guess": "other",
        "status": "stored",
        "sources_list": (f"https://outlet{number % 500}.example/feed",),
        "aliases": (),
        "stored_at": found_at + timedelta(minutes=6),
        "changed_seq": 1,
    }


def measure_csv(ledger: Path, articles: int) -> Iterator[Bound]:
    """Compare our CSV with a bare loop over the same columns, in turns."""
    bare = ours = {"seconds": 0.0}
    ratios = []
    for _ in range(2):
        bare = _run("bare", ledger)
        ours = _run("stored", ledger)
        ratios.append(bare["seconds"] / ours["seconds"])
    newest, limited = _run("newest", ledger), _run("limited", ledger)
    assert bare["rows"] == ours["rows"] == newest["rows"] == articles
    mb = 1_000_000
    yield Bound("CSV, speed relative to a bare cursor-to-csv loop", max(ratios), at_least=0.5)
    yield Bound("the same, newest first", bare["seconds"] / newest["seconds"], at_least=0.5)
    yield Bound("CSV, articles per CPU second, newest first", articles / newest["seconds"])
    yield Bound("CSV, MB above idle", max(ours["bytes"], newest["bytes"]) / mb, at_most=100)
    yield Bound("seconds to the first row, newest first", newest["first"], at_most=1)
    yield Bound("--limit 5: seconds", limited["wall"], at_most=1)
    yield Bound("--limit 5: MB above idle", limited["bytes"] / mb, at_most=100)


def measure_workbook(ledger: Path) -> Iterator[Bound]:
    """Write the workbook of the same ledger."""
    found = _run("workbook", ledger)
    yield Bound("workbook, CPU seconds", found["seconds"], at_most=60)
    yield Bound("workbook, MB above idle", found["bytes"] / 1_000_000, at_most=100)
    again = _run("workbook_again", ledger)
    yield Bound("workbook after one change, CPU seconds", again["seconds"], at_most=60)


def measure_sheet() -> Iterator[Bound]:
    """Sync a day of 5,000 articles that feeds list again eight times, against the emulator."""
    from benchmarks.sheet_day import writes_of_a_day

    writes = writes_of_a_day(articles=5_000, sightings=8)
    yield Bound("sheet writes, 5,000 articles, all re-seen 8 times", writes, at_most=400)


def _run(what: str, ledger: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.exports", what, str(ledger)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _child(what: str, ledger: Path) -> dict[str, float]:
    """Run one export and return what it cost."""
    steps: dict[str, Callable[[], Callable[[], tuple[int, float]]]] = {
        "bare": lambda: _bare(ledger),
        "stored": lambda: _ours(ledger, order="stored"),
        "newest": lambda: _ours(ledger, order="newest"),
        "limited": lambda: _ours(ledger, order="newest", limit=5),
        "workbook": lambda: _workbook(ledger),
        "workbook_again": lambda: _workbook(ledger, change=True),
    }
    run = steps[what]()  # imports and opens, which is the idle state
    idle, wall, cpu = _status_bytes("VmRSS"), time.perf_counter(), time.process_time()
    rows, first = run()
    return {
        "rows": rows,
        "first": first - wall if first else 0.0,
        "seconds": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "bytes": _status_bytes("VmHWM") - idle,
    }


def _bare(ledger: Path) -> Callable[[], tuple[int, float]]:
    from news_platform.rss.exports.selection import COLUMNS

    connection = sqlite3.connect(ledger)

    def run() -> tuple[int, float]:
        names = ", ".join(name for name in COLUMNS if name != "popularity")
        rows = connection.execute(
            f"SELECT {names} FROM raw WHERE stored_at IS NOT NULL AND status != 'duplicate'"
        )
        with Path(os.devnull).open("w", newline="") as file:
            writer = csv.writer(file)
            count = 0
            for row in rows:
                writer.writerow(row)
                count += 1
        return count, 0.0

    return run


def _ours(ledger: Path, **chosen: object) -> Callable[[], tuple[int, float]]:
    from news_platform.rss.exports.formats import FeedChannel, write_text
    from news_platform.rss.exports.selection import Selection, iter_articles
    from news_platform.storage.sql.engine import open_engine

    engine = open_engine(f"sqlite:///{ledger}")
    selection = Selection(**chosen)  # type: ignore[arg-type]
    firsts: list[float] = []

    def timed() -> Iterator[Any]:
        rows = iter_articles(engine, selection)
        yield next(rows)
        firsts.append(time.perf_counter())
        yield from rows

    def run() -> tuple[int, float]:
        with Path(os.devnull).open("w", newline="") as file:
            count = write_text(file, timed(), kind="csv", channel=FeedChannel())
        return count, firsts[0]

    return run


def _workbook(ledger: Path, *, change: bool = False) -> Callable[[], tuple[int, float]]:
    import xlsxwriter  # noqa: F401  a part of the idle state

    from news_platform.rss.sheets.workbook import write_workbook
    from news_platform.storage.objects.store import open_store
    from news_platform.storage.sql.engine import open_engine

    engine = open_engine(f"sqlite:///{ledger}")
    if change:
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE raw SET changed_seq = 2 WHERE row_id = 1")
    store = open_store(str(ledger.parent / "root"))

    def run() -> tuple[int, float]:
        return sum(write_workbook(engine, store).rows.values()), 0.0

    return run


def _status_bytes(name: str) -> float:
    # Not getrusage, whose peak includes that of the parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return float(line.split()[1]) * 1024


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(_child(sys.argv[1], Path(sys.argv[2]))))
    else:
        main(*map(int, sys.argv[1:]))
