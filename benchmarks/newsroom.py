"""Measure a newsroom: polls of 10,000 feeds, some hostile, and articles from claim to ledger.

`python -m benchmarks.newsroom 1000` polls another number of feeds.
"""

import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from benchmarks import RESULTS_FOLDER, rss
from benchmarks.newsroom_site import HOSTS, serve
from news_platform.rss import pipeline
from news_platform.rss.ledger.feed_rows import upsert_feed
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import PollReport
from news_platform.settings import load_settings
from news_platform.storage.sql.engine import migrate, open_engine, read_transaction
from news_platform.web.fetch import FetchOptions

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
RESULTS = RESULTS_FOLDER / "newsroom.json"
FEED_COUNT = 10_000
_HOSTILE = ("hang", "bomb", "garbage")


@dataclass(frozen=True, slots=True)
class Rate:
    """How many feeds or articles one run took per second, and the CPU seconds of its processes.

    `load` is that of the machine when the run began: on a busy one, look at the CPU seconds.
    """

    what: str
    per_second: float
    at_least: float
    cpu_seconds: float
    load: float
    outcomes: dict[str, int]


def main() -> None:
    """Run all measurements, print a table, and write the results file."""
    logging.disable(logging.CRITICAL)
    count = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdecimal() else FEED_COUNT
    measured = [
        measure(f"{count} feeds, half unchanged, 2 % hostile", _mixed(count), at_least=150),
        measure(f"{count} feeds, all unchanged", ["same"] * count, at_least=1_000),
    ]
    if data := load_settings(os.environ).bench_data:
        measured.append(measure_articles(Path(data) / "articles"))
    else:
        print("articles: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
    print(f"{'newsroom':<44}{'per second':>12}{'at least':>10}{'CPU s':>8}{'load':>7}")
    for one in measured:
        mark = "" if one.per_second >= one.at_least else "  below"
        print(
            f"{one.what:<44}{one.per_second:>12.0f}{one.at_least:>10.0f}"
            f"{one.cpu_seconds:>8.1f}{one.load:>7.1f}{mark}"
        )
    if count == FEED_COUNT:
        RESULTS.write_text(json.dumps([asdict(one) for one in measured], indent=1) + "\n")


def measure_articles(folder: Path) -> Rate:
    """Claim, fetch, extract and store real pages, and keep their bytes."""
    load = os.getloadavg()[0]
    wall, cpu = rss.measure_work(folder)
    articles = rss.ARTICLE_COPIES * len(list((folder / "publishers" / "html").glob("*.html.gz")))
    return Rate(
        "articles end to end, bytes kept",
        round(wall.value, 1),
        30,
        round(articles / cpu.value, 1),
        round(load, 1),
        {"articles": articles},
    )


def _mixed(count: int) -> list[str]:
    """Return the kind of each feed: of 100, 50 are unchanged and 2 hostile."""
    kinds = []
    for number in range(count):
        place = number % 100
        kinds.append(_HOSTILE[number // 100 % 3] if place < 2 else "same" if place < 52 else "feed")
    return kinds


def measure(what: str, kinds: list[str], *, at_least: float) -> Rate:
    """Poll the feeds over HTTP, and check that every good one was polled."""
    with tempfile.TemporaryDirectory() as folder, serve() as hosts:
        engine = open_engine(f"sqlite:///{folder}/ledger.sqlite")
        migrate(engine)
        with write_transaction(engine) as transaction:
            for number, kind in enumerate(kinds):
                url = f"https://h{number % HOSTS}.example/{kind}/{number}"
                upsert_feed(transaction, url, feed_url=url, status="active", etag='"same"')
        load, started, cpu = os.getloadavg()[0], time.perf_counter(), _cpu_seconds()
        report = _poll(engine, hosts)
        seconds = time.perf_counter() - started
        cpu = _cpu_seconds() - cpu
        _check(engine, kinds, report)
        engine.dispose()
    speed = len(kinds) / seconds
    outcomes = dict(report.outcomes)
    return Rate(what, round(speed, 1), at_least, round(cpu, 1), round(load, 1), outcomes)


def _poll(engine: sa.Engine, hosts: dict[str, tuple[str, int]]) -> PollReport:
    return pipeline.run_poll(
        engine,
        fetch=FetchOptions(host_map=hosts, per_host=8),
        options=PollOptions(concurrency=128),
        now=NOW,
    )


def _check(engine: sa.Engine, kinds: list[str], report: PollReport) -> None:
    wanted = Counter(kinds)
    assert report.outcomes.get("not_modified", 0) == wanted["same"], report.outcomes
    # A bomb is cut at the limit of a body and read as a feed without items.
    read = wanted["feed"] + wanted["bomb"]
    assert report.outcomes.get("read", 0) == read, report.outcomes
    assert report.new_articles == 20 * wanted["feed"], report.new_articles
    assert report.feeds == len(kinds), report.feeds
    with read_transaction(engine) as connection:
        late = sa.select(sa.func.count()).where(FEEDS.c.last_crawled.is_(None))
        assert connection.execute(late).scalar_one() == 0


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
