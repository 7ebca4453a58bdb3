"""Hostile feeds, polled over HTTP, do not affect other feeds."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.rss import pipeline
from news_platform.rss.ledger.feed_rows import feed_urls, read_feed
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import PollReport
from news_platform.web.fetch import FetchOptions
from news_platform_tests.rss.http_site import ENDLESS, serve
from news_platform_tests.rss.stages import register, rows
from news_platform_tests.rss.web import items, rss

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
HOST = "feeds.example"
GOOD = f"https://{HOST}/good.xml"


def entity_bomb() -> bytes:
    """Return a feed with the "billion laughs" entity expansion."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    return (
        f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY e0 "ha">{entities}]>'
        '<rss version="2.0"><channel><title>&e9;</title><item><title>&e9;</title>'
        "<link>https://x.example/1</link></item></channel></rss>"
    ).encode()


def many_attributes() -> bytes:
    """Return an element with 100,000 attributes, which stalls both parsers for a minute."""
    attributes = " ".join(f'a{n}="{n}"' for n in range(100_000))
    return f'<rss version="2.0"><channel {attributes}><title>t</title></channel></rss>'.encode()


def many_items() -> bytes:
    """Return a feed of more items than the parser reads."""
    return rss([(f"https://x.example/{n}", f"T{n}", None) for n in range(10_100)])


HOSTILE: dict[str, Callable[[], bytes]] = {
    "/bomb.xml": entity_bomb,
    "/attributes.xml": many_attributes,
    "/items.xml": many_items,
    ENDLESS: lambda: b"",
}


def poll(engine: sa.Engine, address: tuple[str, int]) -> tuple[PollReport, float]:
    started = time.monotonic()
    report = pipeline.run_poll(
        engine,
        fetch=FetchOptions(host_map={HOST: address}, per_host=32),
        options=PollOptions(),
        now=NOW,
    )
    return report, time.monotonic() - started


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    pages = {path: make() for path, make in HOSTILE.items()}
    pages["/good.xml"] = rss(items(["a", "b"], newest=NOW))
    with serve(pages) as where:
        yield where


def test_hostile_feeds_cost_at_most_five_seconds_each_and_no_other_feed(
    sqlite_ledger: sa.Engine, address: tuple[str, int]
) -> None:
    hostile = [f"https://{HOST}{path}" for path in HOSTILE]
    register(sqlite_ledger, *hostile, GOOD)
    report, seconds = poll(sqlite_ledger, address)
    assert report.feeds == len(hostile) + 1
    good = read_feed(sqlite_ledger, GOOD)
    assert good is not None and (good.errors_in_row, good.last_status) == (0, 200)
    assert sum(row.feed_url == GOOD for row in rows(sqlite_ledger)) == 2
    # Five seconds each, and the start of a new process after each one that was killed.
    assert seconds < 5 * len(hostile) + 30
    pending = Counter(row.feed_url for row in rows(sqlite_ledger) if row.status == "pending")
    assert max(pending.values()) <= PollOptions().max_items_per_feed
    # The parser reads 10,000 items at most; those beyond the limit of a poll are named.
    assert {row.status for row in rows(sqlite_ledger)} == {"pending", "skipped"}
    assert len(rows(sqlite_ledger)) <= 10_000 + len(hostile) + 2


def test_every_real_and_broken_feed_goes_through_the_poller(
    sqlite_ledger: sa.Engine, bench_data: Path
) -> None:
    files = sorted(
        path
        for path in (bench_data / "feeds").rglob("*")
        if path.is_file() and path.name != "MANIFEST.json"
    )
    pages = {f"/{number}{path.suffix}": path.read_bytes() for number, path in enumerate(files)}
    register(sqlite_ledger, *(f"https://{HOST}{path}" for path in pages))
    with serve(pages) as where:
        report, _ = poll(sqlite_ledger, where)
    assert report.feeds == len(files)
    # Fixtures of parsers often have entries without links.
    assert report.outcomes["read"] + report.outcomes["no_links"] > 0.9 * len(files)
    assert report.outcomes["read"] > 0.8 * len(files)
    assert set(report.outcomes) <= {"read", "no_links", "parse_error"}, report.outcomes
    assert report.new_articles > 1_000
    assert len(feed_urls(sqlite_ledger, statuses=("active",))) == len(files)
