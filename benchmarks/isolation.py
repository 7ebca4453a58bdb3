"""What isolation costs: CPU beside the same work done directly and by multiprocessing's pool."""

import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import psutil

from benchmarks import RESULTS_FOLDER
from benchmarks.isolation_targets import double
from news_platform.isolation.pool import Done, Lost, Pool
from news_platform.rss.feeds import parse_fetched
from news_platform.rss.page_extraction import FeedPage, extract_feed_page
from news_platform.settings import load_settings

RESULTS = RESULTS_FOLDER / "isolation.json"
ROUNDS = 7
REPORTS = 20_000
LARGE_BYTES = 32 << 20
Work = Callable[[], object]


def overhead(function: Callable[..., object], items: Sequence[object]) -> dict[str, float | None]:
    """Return the CPU of an item done directly, and what both pools add to it."""
    target = f"{function.__module__}:{function.__name__}"
    direct, ours, theirs = [], [], []
    with (
        Pool(target, workers=1, deadline_seconds=60, memory_bytes=1 << 30) as pool,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as peer,
    ):
        for _ in range(ROUNDS):
            direct.append(_cpu(lambda: [function(item) for item in items]))
            ours.append(_cpu(lambda: _done(pool, items)))
            theirs.append(_cpu(lambda: list(peer.map(function, items))))
    # Of each the best round counts: what neighbours on the machine add is not the pool's.
    plain, pooled, peered = min(direct), min(ours), min(theirs)
    return {
        "items": len(items),
        "direct_ms": round(plain / len(items) * 1e3, 3),
        "pool_percent": _percent(pooled, plain),
        "multiprocessing_percent": _percent(peered, plain),
        "pool_us": round((pooled - plain) / len(items) * 1e6),
        "multiprocessing_us": round((peered - plain) / len(items) * 1e6),
    }


def _percent(pooled: float, plain: float) -> float | None:
    # Of next to nothing no percentage makes sense.
    return round(100 * (pooled / plain - 1), 2) if plain > 0.1 else None


def _done(pool: Pool, items: Iterable[object]) -> None:
    for outcome in pool.map(items):
        assert isinstance(outcome, Done), outcome


def _cpu(work: Work) -> float:
    """Return the CPU seconds of this process and all below it while the work is done."""
    before = _cpu_so_far()
    work()
    return _cpu_so_far() - before


def _cpu_so_far() -> float:
    family = (psutil.Process(), *psutil.Process().children(recursive=True))
    # Linux's CPU clock of another process; the usual counters step by hundredths of a second.
    return sum(time.clock_gettime((~process.pid << 3) | 2) for process in family)


def single_costs() -> dict[str, float]:
    """Return what a start, a crash, a large result and a report cost by the clock."""
    with Pool("benchmarks.isolation_targets:act", workers=1, deadline_seconds=60) as pool:
        _done(pool, [("double", 1)])
        return {
            "start_ms": round(_seconds(_start) * 1e3, 1),
            "crash_and_next_ms": round(_seconds(lambda: _crash(pool)) * 1e3, 1),
            "large_mb_per_second": round(
                LARGE_BYTES / _seconds(lambda: _done(pool, [("large", LARGE_BYTES)])) / 1e6
            ),
            "reports_per_second": round(
                REPORTS / _seconds(lambda: _done(pool, [("tell", REPORTS)]))
            ),
        }


def _start() -> None:
    with Pool("benchmarks.isolation_targets:double", workers=1, deadline_seconds=60) as pool:
        _done(pool, [1])


def _crash(pool: Pool) -> None:
    lost, done = pool.map([("exit", 1), ("double", 1)])
    assert isinstance(lost, Lost)
    assert isinstance(done, Done)


def _seconds(work: Work) -> float:
    """Return the shortest of some runs."""
    runs = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        runs.append(time.perf_counter() - started)
    return min(runs)


def main() -> None:
    """Print one table and keep its figures."""
    bench_data = load_settings(os.environ).bench_data
    if bench_data is None:
        print("isolation: skipped, NEWS_PLATFORM_BENCH_DATA is not set")
        return
    works: dict[str, tuple[Callable[..., object], Sequence[object]]] = {
        "article page": (extract_feed_page, pages(Path(bench_data))),
        "feed": (parse_fetched, feeds(Path(bench_data))),
        "nothing": (double, list(range(2_000))),
    }
    rows = [{"work": name, **overhead(work, items)} for name, (work, items) in works.items()]
    costs = single_costs()
    with pl.Config(tbl_cols=-1, tbl_width_chars=120):
        print(pl.DataFrame(rows, infer_schema_length=None))
    print(costs)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"overhead": rows, "costs": costs}, indent=1) + "\n")


def pages(bench_data: Path) -> list[FeedPage]:
    """Return real publisher pages."""
    found = sorted((bench_data / "articles" / "publishers" / "html").glob("*.html.gz"))[:80]
    bodies = (gzip.decompress(path.read_bytes()) for path in found)
    return [(body, "https://news.example/a", None, "") for body in bodies]


def feeds(bench_data: Path) -> list[tuple[bytes, str, str]]:
    """Return the real feeds of all formats, without the tiny and the huge ones."""
    found = [path for path in sorted((bench_data / "feeds").rglob("*.xml")) if _is_sane(path)]
    return [(path.read_bytes(), "", "https://news.example/feed") for path in found]


def _is_sane(path: Path) -> bool:
    return 1_000 < path.stat().st_size < 2_000_000


if __name__ == "__main__":
    main()
