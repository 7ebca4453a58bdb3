"""Run the stages of the feature in order: discovery, poll, work, export.

    candidate URLs ─▶ run_discovery ─▶ Feeds
    Feeds          ─▶ run_poll      ─▶ Raw (pending), ArticlesIndex
    Raw (pending)  ─▶ run_work      ─▶ Raw (stored), full texts
    Raw (stored)   ─▶ run_export    ─▶ articles/date=…/part-0.parquet

The stages share nothing but the ledger, so each can run at its own time and in its own process.
Each stage opens the web and the process pool that it needs, and returns a report.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa

from news_platform.datasets import versions
from news_platform.isolation.pool import Pool
from news_platform.rss.article_files import WorkPlaces, expire_full_texts, expire_pages
from news_platform.rss.article_results import WorkerContext
from news_platform.rss.discovery import (
    DiscoveryOptions,
    DiscoveryReport,
    FeedAccess,
    OnRegistered,
    discover_feeds,
)
from news_platform.rss.export import ExportReport, export_days
from news_platform.rss.ledger.article_queue import WorkOptions, WorkReport
from news_platform.rss.ledger.transactions import write_config, write_transaction
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import NO_SECRETS, PollReport, poll_feeds
from news_platform.rss.reextract import Reextraction, ReextractReport, reextract_articles
from news_platform.rss.robots_gate import KnownRobots
from news_platform.rss.worker import work_articles
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import FetchOptions, WebFetcher

T = TypeVar("T")
# Increases when the ledger's columns change; programs that copy the ledger can check it.
LEDGER_VERSION = versions.LEDGER


def ensure(engine: sa.Engine, *, now: datetime) -> None:
    """Write the version of the ledger to Config; opening the ledger has created the tables."""
    with write_transaction(engine) as transaction:
        write_config(transaction, "ledger_version", LEDGER_VERSION, now=now)


def run_discovery(
    engine: sa.Engine,
    candidates: Iterable[str],
    *,
    fetch: FetchOptions,
    options: DiscoveryOptions,
    now: datetime,
    access: FeedAccess | None = None,
    on_registered: OnRegistered = len,
) -> DiscoveryReport:
    """Fetch candidate feeds and sites and register each with its outcome."""
    return _over_web(
        fetch,
        parse_pool(options.parsers),
        lambda fetcher, pool: discover_feeds(
            engine,
            candidates,
            fetcher=fetcher,
            pool=pool,
            options=options,
            now=now,
            access=access,
            on_registered=on_registered,
        ),
    )


def run_poll(
    engine: sa.Engine,
    *,
    fetch: FetchOptions,
    options: PollOptions,
    now: datetime,
    only_due: bool = True,
    secrets: Mapping[str, str] = NO_SECRETS,
) -> PollReport:
    """Poll the feeds that are due, or all healthy ones, and add their new articles as pending."""
    return _over_web(
        fetch,
        parse_pool(options.parsers),
        lambda fetcher, pool: poll_feeds(
            engine,
            fetcher=fetcher,
            pool=pool,
            options=options,
            now=now,
            only_due=only_due,
            secrets=secrets,
        ),
    )


def run_work(
    engine: sa.Engine,
    *,
    fetch: FetchOptions,
    places: WorkPlaces,
    known_robots: KnownRobots,
    worker_id: str,
    options: WorkOptions,
    clock: Callable[[], datetime],
    secrets: Mapping[str, str] = NO_SECRETS,
) -> WorkReport:
    """Fetch pending articles, extract and store them, until none is due."""

    def work(fetcher: WebFetcher, pool: Pool) -> Awaitable[WorkReport]:
        agent = fetch.user_agent
        context = WorkerContext(
            engine, fetcher, pool, places, agent, known_robots, clock, secrets=secrets
        )
        return work_articles(context, worker_id=worker_id, options=options)

    return _over_web(fetch, extract_pool(options.extractors), work)


def _over_web(
    fetch: FetchOptions, pool: Pool, work: Callable[[WebFetcher, Pool], Awaitable[T]]
) -> T:
    """Open the web and the pool of processes, and run a stage with them."""

    async def run() -> T:
        async with WebFetcher(replace(fetch, waits_for_hosts=True)) as fetcher:
            return await work(fetcher, pool)

    with pool:
        return asyncio.run(run())


def run_export(
    engine: sa.Engine,
    store: ObjectStore,
    *,
    full_texts: ObjectStore,
    keep_days: int | None,
    now: datetime,
    pages: ObjectStore | None = None,
    pages_keep_days: int | None = None,
) -> ExportReport:
    """Delete what is older than its days, if these are set, and write the files of changed days.

    `keep_days` are those of full texts, `pages_keep_days` those of fetched pages.
    """
    expired = 0
    if keep_days is not None:
        expired = expire_full_texts(engine, full_texts, keep_days=keep_days, now=now)
    if pages is not None and pages_keep_days is not None:
        expire_pages(engine, pages, keep_days=pages_keep_days, now=now)
    return replace(export_days(engine, store, now=now), full_texts_expired=expired)


def run_reextract(
    engine: sa.Engine, *, places: WorkPlaces, wanted: Reextraction, workers: int, now: datetime
) -> ReextractReport:
    """Extract stored articles again from the kept bytes of their pages."""
    with extract_pool(workers) as pool:
        return reextract_articles(engine, places=places, pool=pool, wanted=wanted, now=now)


def parse_pool(workers: int) -> Pool:
    """Return a pool of processes that parse feeds."""
    # Real feeds take milliseconds; this is how much a hostile one may cost.
    return Pool(
        "news_platform.rss.feeds:parse_fetched",
        workers=workers,
        deadline_seconds=5.0,
        memory_bytes=256 * 1024 * 1024,
    )


def extract_pool(workers: int) -> Pool:
    """Return a pool of processes that extract articles from pages."""
    # Enough for the largest page that is fetched, 10 MB.
    return Pool(
        "news_platform.rss.page_extraction:extract_feed_page",
        workers=workers,
        deadline_seconds=20.0,
        memory_bytes=768 * 1024 * 1024,
    )
