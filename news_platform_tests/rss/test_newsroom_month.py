"""A month of a newsroom in simulated time: nothing is missed silently, nothing is doubled."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.discovery.discover import DiscoveryOptions, discover_feeds
from news_platform.rss.ledger.newsroom_tables import FEED_POLLS
from news_platform.rss.ledger.status import doubled_main_rows
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEEDS, RAW, REVISIONS
from news_platform.rss.polling.poll_schedule import PollOptions
from news_platform.rss.polling.poller import poll_feeds
from news_platform.rss.work_context import WorkerContext, WorkOptions, WorkPlaces
from news_platform.rss.worker import work_articles
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform_tests.rss.newsroom_world import (
    DAY,
    START,
    SimulatedFeed,
    SimulatedWeb,
    item_hash,
    make_feeds,
)


def run_days(
    engine: sa.Engine,
    feeds: list[SimulatedFeed],
    pools: tuple[Pool, Pool],
    store: ObjectStore,
    *,
    days: int,
    step: timedelta,
) -> None:
    """Let the schedules run over a simulated time: discovery once, polls and work at every step."""
    web, (parse, extract) = SimulatedWeb(feeds), pools
    context = WorkerContext(
        engine=engine,
        fetcher=web,
        pool=extract,
        places=WorkPlaces(store),
        user_agent="Bot",
        known_robots=lambda _: None,
        clock=lambda: web.now,
    )

    async def run() -> None:
        urls = [feed.url for feed in feeds]
        options = DiscoveryOptions()
        await discover_feeds(engine, urls, fetcher=web, pool=parse, options=options, now=START)
        for feed in feeds:  # discovery looks, but takes no articles
            feed.seen.clear()
            feed.polled_at.clear()
        while web.now <= START + days * DAY:
            await poll_feeds(engine, fetcher=web, pool=parse, options=PollOptions(), now=web.now)
            await work_articles(context, worker_id="w", options=WorkOptions(extractors=1))
            web.now += step

    asyncio.run(run())


def table_rows(engine: sa.Engine, table: sa.Table) -> list[sa.Row[Any]]:
    with read_transaction(engine) as connection:
        return list(connection.execute(sa.select(table)))


def check_ledger(engine: sa.Engine, feeds: list[SimulatedFeed]) -> Counter[str]:
    """Assert that every item is accounted for; return the number of items by what they became."""
    assert doubled_main_rows(engine) == []
    rows = {row.row_id: row for row in table_rows(engine, RAW)}
    index = {row.url_hash: rows[row.row_id_raw] for row in table_rows(engine, ARTICLES_INDEX)}
    turned: dict[str, list[datetime]] = {}
    for poll in table_rows(engine, FEED_POLLS):
        if poll.turned_over:
            turned.setdefault(poll.feed_url, []).append(poll.polled_at)
    became: Counter[str] = Counter()
    for feed in feeds:
        told = [moment for url in (feed.url, feed.new_url) for moment in turned.get(url, [])]
        for item in feed.items:
            if item in feed.seen:
                row = index[item_hash(feed, item)]
                assert row.status in ("stored", "skipped", "error", "pending"), row.status
                assert row.status == "stored" or row.error_msg, row
                became[row.status] += 1
            elif is_missed(feed, item.published_at):
                # It came and went between two polls: the next one has said so.
                after = min(moment for moment in feed.polled_at if moment > item.published_at)
                assert after in told, (feed.host, item)
                became["named as possibly missed"] += 1
    return became


def is_missed(feed: SimulatedFeed, published_at: datetime) -> bool:
    """Return whether an item was published between two successful polls of its feed."""
    if not feed.polled_at or published_at <= feed.polled_at[0]:
        return False
    return published_at <= feed.polled_at[-1]


def check_fates(engine: sa.Engine, feeds: list[SimulatedFeed], *, end: datetime) -> None:
    """Assert what became of the feeds that moved, ended, failed, edited or hid their articles."""
    status = {row.feed_url_canon: row for row in table_rows(engine, FEEDS)}
    rows = table_rows(engine, RAW)
    revised = {row.row_id for row in table_rows(engine, REVISIONS)}
    for feed in feeds:
        own = [row for row in rows if f"//{feed.host}/" in row.article_url]
        if feed.kind == "moves":
            assert (status[feed.url].status, status[feed.new_url].status) == ("gone", "active")
        elif feed.kind == "ends":
            assert status[feed.url].status == "gone"
        else:
            assert status[feed.url].status == "active", feed.kind
        if feed.kind == "fast":
            assert status[feed.url].may_miss_items
        if feed.kind == "paywall":
            assert all(row.is_paywalled for row in own if row.status == "stored")
            assert not any("Subscribe" in row.clean_text for row in own)
        if feed.kind == "template":
            assert {row.error_msg for row in own} == {"", "no article text found"}
        if feed.kind == "edits":
            by_path = {row.article_url.removeprefix(f"https://{feed.host}"): row for row in own}
            for item in feed.seen:
                row = by_path[item.path]
                is_listed = item.edited_at is not None and any(
                    item in feed.listed(moment)
                    for moment in feed.polled_at
                    if item.edited_at <= moment < end - timedelta(hours=1)
                )
                was_known = item.edited_at is not None and row.found_at < item.edited_at
                if is_listed and was_known:
                    assert "corrected" in row.clean_text, item
                    assert row.row_id in revised


def run_world(
    engine: sa.Engine,
    pools: tuple[Pool, Pool],
    store: ObjectStore,
    *,
    count: int,
    days: int,
    seed: int,
) -> Counter[str]:
    feeds = make_feeds(count, days=days, seed=seed)
    run_days(engine, feeds, pools, store, days=days, step=timedelta(hours=1))
    became = check_ledger(engine, feeds)
    check_fates(engine, feeds, end=START + days * DAY)
    return became


def test_two_days_of_sixteen_feeds(
    sqlite_ledger: sa.Engine,
    parse_pool: Pool,
    extract_pool: Pool,
    local_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pools = (parse_pool, extract_pool)
    became = run_world(sqlite_ledger, pools, local_store, count=16, days=2, seed=7)
    assert became["stored"] > 80
    assert became["named as possibly missed"] > 0
    assert became["pending"] == 0
    # Nothing of ours failed behind a boundary either.
    assert caplog.messages == []


@pytest.mark.soak
def test_thirty_days_of_two_thousand_feeds(
    sqlite_ledger: sa.Engine, parse_pool: Pool, extract_pool: Pool, local_store: ObjectStore
) -> None:
    pools = (parse_pool, extract_pool)
    became = run_world(sqlite_ledger, pools, local_store, count=2_000, days=30, seed=1)
    assert became["stored"] > 100_000
