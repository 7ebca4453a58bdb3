"""Run discovery, a poll or a worker over a ledger and given answers, and read what it wrote."""

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.article_files import WorkPlaces
from news_platform.rss.article_results import WorkerContext
from news_platform.rss.discovery import DiscoveryOptions, DiscoveryReport, discover_feeds
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.article_queue import WorkOptions, WorkReport
from news_platform.rss.ledger.entries import add_entries, entries_by_url_hash
from news_platform.rss.ledger.feed_rows import read_feed, upsert_feed
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.pipeline import work_articles
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import PollReport, poll_feeds
from news_platform.rss.robots_gate import RobotsFile
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.fetch import FetchOptions, PoliteFetcher, WebFetcher
from news_platform_tests.fakes import FakeFetcher
from news_platform_tests.web.site import Answer, Site, serve

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
FEED = "https://post.example/rss"
SITE = "https://post.example"
OPEN = {f"{SITE}/robots.txt": b""}
T = TypeVar("T")
# One process imports everything and forks the others: many starts cost one import.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([f"news_platform_tests.rss.{it}" for it in ("claiming", "replay")])


def register(engine: sa.Engine, *urls: str, **columns: Any) -> None:
    """Add active feeds."""
    with write_transaction(engine) as transaction:
        for url in urls:
            upsert_feed(transaction, url, feed_url=url, status="active", **columns)


def add_pending(
    engine: sa.Engine, *urls: str, feed: str = FEED, published_at: datetime | None = None
) -> None:
    """Add pending articles, as a poll does."""
    seen = entries_by_url_hash(FeedEntry(url, "", published_at, "", "") for url in urls)
    with write_transaction(engine) as transaction:
        add_entries(transaction, feed, seen, max_new=10_000, now=NOW)


def rows(engine: sa.Engine, table: sa.Table = RAW) -> list[sa.Row[Any]]:
    """Return all rows of a table, in the order of its key."""
    with read_transaction(engine) as connection:
        return list(connection.execute(sa.select(table).order_by(*table.primary_key)))


def feed_row(engine: sa.Engine, url: str = FEED) -> sa.Row[Any]:
    """Return the row of a feed that must be there."""
    row = read_feed(engine, url)
    assert row is not None
    return row


def over_site(
    sites: Mapping[str, Answer], work: Callable[[WebFetcher], Awaitable[T]]
) -> tuple[T, Site]:
    """Run work against a server of these sites with the limits of production; see its requests."""

    async def go() -> tuple[T, Site]:
        async with serve(sites) as site:
            hosts = {key.partition("/")[0] for key in sites}
            places = {host: ("127.0.0.1", site.port) for host in hosts}
            options = FetchOptions(host_map=places, waits_for_hosts=True)
            async with WebFetcher(options) as fetcher:
                return await work(fetcher), site

    return asyncio.run(go())


def fetch_all(sites: Mapping[str, Answer], work: Callable[[WebFetcher], Awaitable[T]]) -> T:
    """Run work against a server of these sites (`host/path`), by the fetcher of production."""

    async def go() -> T:
        async with serve(sites) as site:
            hosts = {key.partition("/")[0] for key in sites}
            options = FetchOptions(host_map={host: ("127.0.0.1", site.port) for host in hosts})
            async with WebFetcher(replace(options, per_host=32)) as fetcher:
                return await work(fetcher)

    return asyncio.run(go())


class FeedHarness:
    """A ledger, and discovery and polls that fetch given responses."""

    def __init__(self, engine: sa.Engine, pool: Pool) -> None:
        self.engine = engine
        self.pool = pool

    def register(self, *urls: str, **columns: Any) -> None:
        """Add active feeds."""
        register(self.engine, *urls, **columns)

    def row(self, url: str = FEED) -> sa.Row[Any]:
        """Return the row of a feed that must be there."""
        return feed_row(self.engine, url)

    def rows(self, table: sa.Table = RAW) -> list[sa.Row[Any]]:
        """Return all rows of a table, in the order of its key."""
        return rows(self.engine, table)

    def discover(
        self,
        answers: Mapping[str, object],
        *urls: str,
        options: DiscoveryOptions | None = None,
        recheck: bool = False,
        now: datetime = NOW,
    ) -> DiscoveryReport:
        """Run discovery for these URLs, or for all that have an answer."""
        return asyncio.run(
            discover_feeds(
                self.engine,
                urls or tuple(answers),
                fetcher=FakeFetcher(answers),
                pool=self.pool,
                options=replace(options or DiscoveryOptions(), recheck=recheck),
                now=now,
            )
        )

    def poll(
        self,
        answers: Mapping[str, object] | FakeFetcher,
        *,
        now: datetime = NOW,
        options: PollOptions | None = None,
        only_due: bool = True,
    ) -> PollReport:
        """Poll the feeds that are due."""
        fetcher = answers if isinstance(answers, FakeFetcher) else FakeFetcher(answers)
        return asyncio.run(
            poll_feeds(
                self.engine,
                fetcher=fetcher,
                pool=self.pool,
                options=options or PollOptions(),
                now=now,
                only_due=only_due,
            )
        )

    def poll_site(
        self,
        sites: Mapping[str, Answer],
        *,
        now: datetime = NOW,
        options: PollOptions | None = None,
    ) -> tuple[PollReport, Site]:
        """Poll the feeds that are due from a real server."""

        def work(fetcher: WebFetcher) -> Awaitable[PollReport]:
            chosen = options or PollOptions()
            return poll_feeds(self.engine, fetcher=fetcher, pool=self.pool, options=chosen, now=now)

        return over_site(sites, work)


def worker_context(
    engine: sa.Engine, fetcher: PoliteFetcher, pool: Pool, store: ObjectStore, **more: Any
) -> WorkerContext:
    """Return a worker's context, with full texts in this store."""
    given: dict[str, Any] = {
        "places": WorkPlaces(store),
        "user_agent": "NewsPlatformBot/0.1",
        "known_robots": lambda _: None,
        "clock": lambda: NOW,
    }
    return WorkerContext(engine=engine, fetcher=fetcher, pool=pool, **(given | more))


class WorkerHarness:
    """A worker with its context, and a web of given responses."""

    def __init__(self, engine: sa.Engine, pool: Pool, full_texts: ObjectStore) -> None:
        self.engine = engine
        self.pool = pool
        self.full_texts = full_texts
        self.now = NOW
        self.clock: Callable[[], datetime] | None = None
        self.pages: ObjectStore | None = None
        self.secrets: dict[str, str] = {}
        self.web = FakeFetcher({})
        self.surveyed: dict[str, RobotsFile] = {}

    def work(
        self, answers: Mapping[str, object], *, options: WorkOptions | None = None
    ) -> WorkReport:
        """Work on pending articles; robots.txt of SITE is open unless it has an answer."""
        self.web = FakeFetcher({**OPEN, **answers})
        return asyncio.run(self._work(self.web, options))

    def work_site(
        self, sites: Mapping[str, Answer], *, options: WorkOptions | None = None
    ) -> tuple[WorkReport, Site]:
        """Work on pending articles, with their pages from a real server."""
        return over_site(sites, lambda fetcher: self._work(fetcher, options))

    async def _work(self, fetcher: PoliteFetcher, options: WorkOptions | None) -> WorkReport:
        context = worker_context(
            self.engine,
            fetcher,
            self.pool,
            self.full_texts,
            places=WorkPlaces(self.full_texts, pages=self.pages),
            known_robots=self.surveyed.get,
            clock=self.clock or (lambda: self.now),
            secrets=self.secrets,
        )
        return await work_articles(context, worker_id="w1", options=options or WorkOptions())
