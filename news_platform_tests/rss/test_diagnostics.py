"""The counters of every run, from the ledger to the Diagnostics tab of the sheet."""

import asyncio
from collections import deque
from datetime import timedelta

import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.article_files import WorkPlaces
from news_platform.rss.discovery import DiscoveryOptions, discover_feeds
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import poll_feeds
from news_platform.rss.worker import WorkerContext, WorkOptions, work_articles
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.rss.ledger_rows import NOW
from news_platform_tests.rss.sheets.harness import SheetHarness, open_harness
from news_platform_tests.rss.web import items, page, rss

FEED, OTHER = "https://post.example/rss", "https://wire.example/rss"
SITE = "https://post.example"
WEB: dict[str, object] = {
    FEED: [rss(items(["a", "b", "c"], newest=NOW)), response(FEED, status=304)],
    OTHER: response(OTHER, status=404),
    f"{SITE}/robots.txt": b"",
    f"{SITE}/a": page("the bridge"),
    f"{SITE}/b": page("the bridge"),
    f"{SITE}/c": response(f"{SITE}/c", status=404),
}


def run_once(engine: sa.Engine, parse_pool: Pool, extract_pool: Pool, store: ObjectStore) -> None:
    """Discover two feeds, poll the good one twice, and work on its three articles."""
    found = FakeFetcher({**WEB, FEED: rss(items(["a"], newest=NOW))})
    web = FakeFetcher(WEB)
    asyncio.run(
        discover_feeds(
            engine,
            [FEED, OTHER],
            fetcher=found,
            pool=parse_pool,
            options=DiscoveryOptions(),
            now=NOW,
        )
    )
    for hours in (0, 12):
        now = NOW + timedelta(hours=hours)
        polling = poll_feeds(engine, fetcher=web, pool=parse_pool, options=PollOptions(), now=now)
        asyncio.run(polling)
    context = WorkerContext(
        engine=engine,
        fetcher=web,
        pool=extract_pool,
        places=WorkPlaces(store),
        user_agent="Bot",
        known_robots=lambda _: None,
        clock=lambda: NOW,
    )
    asyncio.run(work_articles(context, worker_id="w", options=WorkOptions()))


def shown(harness: SheetHarness) -> dict[str, object]:
    return {f"{row['stage']} {row['metric']}": row["value"] for row in harness.rows("Diagnostics")}


def test_every_counter_of_a_run_reaches_the_tab(
    sqlite_ledger: sa.Engine, parse_pool: Pool, extract_pool: Pool, local_store: ObjectStore
) -> None:
    run_once(sqlite_ledger, parse_pool, extract_pool, local_store)
    with open_harness(sqlite_ledger) as harness:
        harness.emulator.faults.planned = deque(["over_quota", "after"])
        assert harness.sync().quota_waits == 1
        assert shown(harness) == {
            "discovery candidates_active": 1,
            "discovery candidates_missing": 1,
            "poll feeds_read": 1,
            "poll new_articles": 3,
            "poll feeds_not_modified": 1,
            "work stored": 1,
            "work duplicate_text": 1,
            "work error": 1,
        }
        harness.sync()
        sync_says = {name: n for name, n in shown(harness).items() if name.startswith("sheets")}
        assert sync_says["sheets quota_waits"] == 1
        # Three articles with their index rows, two feeds, eight counters.
        assert sync_says["sheets appended"] == 3 * 2 + 2 + 8
