"""Run the stages of the feature in order: discovery, poll, work, export.

    candidate URLs ─▶ run_discovery ─▶ Feeds
    Feeds          ─▶ run_poll      ─▶ Raw (pending), ArticlesIndex
    Raw (pending)  ─▶ run_work      ─▶ Raw (stored), full texts
    Raw (stored)   ─▶ run_export    ─▶ articles/date=…/part-0.parquet

The stages share nothing but the ledger, so each can run at its own time and in its own process.
Each stage opens the web and the process pool that it needs, and returns a report. Work is here as a
whole: many articles are in progress at a time, and pages are extracted in processes that can be
killed.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import sqlalchemy as sa

from news_platform.datasets import versions
from news_platform.errors import FetchError, StorageError
from news_platform.html.decode import content_type_charset
from news_platform.isolation.boundary import (
    INTERNAL_ERROR,
    boundary,
    consume_claims,
    describe_cause,
)
from news_platform.isolation.pool import Done, Pool
from news_platform.logs import bound
from news_platform.rss.article_columns import has_text
from news_platform.rss.article_files import WorkPlaces, expire_full_texts, expire_pages
from news_platform.rss.article_results import ArticleResults, WorkerContext
from news_platform.rss.discovery import (
    DiscoveryOptions,
    DiscoveryReport,
    FeedAccess,
    OnRegistered,
    discover_feeds,
)
from news_platform.rss.export import ExportReport, export_days
from news_platform.rss.feed_settings import FeedSettings, page_headers
from news_platform.rss.ledger.article_queue import (
    ArticleClaim,
    WorkOptions,
    WorkReport,
    claim_articles,
    interleave_hosts,
    renew_claims,
)
from news_platform.rss.ledger.feed_rows import read_own_settings
from news_platform.rss.ledger.transactions import note_metrics, write_config, write_transaction
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import NO_SECRETS, PollReport, poll_feeds
from news_platform.rss.reextract import Reextraction, ReextractReport, reextract_articles
from news_platform.rss.robots_gate import KnownRobots, RobotsGate
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import FetchOptions, HostWaits, Response, WebFetcher
from news_platform.web.responses import RETRYABLE_STATUSES, requested_wait_seconds

T = TypeVar("T")
# Increases when the ledger's columns change; programs that copy the ledger can check it.
LEDGER_VERSION = versions.LEDGER
# Reasons of a FetchError that a retry does not change.
_FINAL_REASONS = frozenset(("blocked_address", "blocked_port", "bad_url", "nxdomain"))
_HTML_TYPES = ("html", "xml")
_DEFAULT = FeedSettings()
_log = logging.getLogger(__name__)


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


async def work_articles(
    context: WorkerContext, *, worker_id: str, options: WorkOptions
) -> WorkReport:
    """Work on articles until none is due or `options.max_articles` were claimed."""
    run = _WorkRun(context, worker_id, options)
    run.own_settings = await asyncio.to_thread(read_own_settings, context.engine)
    # An article may wait longer than its lease for its turn or for a slow site.
    renewal = asyncio.create_task(run.renew_leases())
    try:
        await consume_claims(run.claim, run.work_on, concurrency=options.concurrency)
    finally:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal
    if run.claimed:
        await asyncio.to_thread(_record_metrics, context, run.outcomes)
    return WorkReport(run.claimed, dict(run.outcomes))


def _record_metrics(context: WorkerContext, outcomes: Counter[str]) -> None:
    with write_transaction(context.engine) as transaction:
        note_metrics(transaction, "work", outcomes, now=context.clock())


class _WorkRun:
    """The state of one `work_articles` call, shared by its concurrent consumers."""

    def __init__(self, context: WorkerContext, worker_id: str, options: WorkOptions) -> None:
        self.context = context
        self.worker_id = worker_id
        self.options = options
        # An article that is due again at once may be claimed before its last claim is removed.
        self.unfinished: set[ArticleClaim] = set()
        self.claimed = 0
        self.outcomes: Counter[str] = Counter()
        self.results = ArticleResults(context, options)
        self.robots = RobotsGate(
            context.engine,
            fetcher=context.fetcher,
            user_agent=context.user_agent,
            known=context.known_robots,
            cache_seconds=options.robots_cache_seconds,
            clock=context.clock,
        )
        self.own_settings: Mapping[str, FeedSettings] = {}

    async def work_on(self, claim: ArticleClaim) -> None:
        with bound(feed=claim.feed_url, article=claim.url_canon):
            outcome = await self._work_on(claim)
            _log.debug("article %s: %s", claim.row_id, outcome)
        self.unfinished.discard(claim)
        self.outcomes[outcome] += 1

    async def claim(self) -> list[ArticleClaim]:
        most = self.options.max_articles
        left = sys.maxsize if most is None else most - self.claimed
        limit = min(self.options.pending_batch_size, left)
        if limit <= 0:
            return []
        async with self.results.writing:
            claims = await asyncio.to_thread(
                claim_articles,
                self.context.engine,
                self.worker_id,
                limit=limit,
                lease_seconds=self.options.lease_seconds,
                now=self.context.clock(),
            )
        self.claimed += len(claims)
        self.unfinished.update(claims)
        return interleave_hosts(claims)

    async def renew_leases(self) -> None:
        """Renew the leases of unfinished articles until cancelled."""
        while True:
            # Two renewals may fail or be late without losing the lease.
            await asyncio.sleep(self.options.lease_seconds / 4)
            claims = tuple(self.unfinished)
            now, engine = self.context.clock(), self.context.engine
            try:
                async with self.results.writing:
                    await asyncio.to_thread(renew_claims, engine, claims, now=now)
            except (StorageError, sa.exc.SQLAlchemyError) as error:
                # The ledger may be back soon; what is stored without a lease is not lost.
                _log.warning("cannot renew %s leases: %s", len(claims), describe_cause(error))

    async def _work_on(self, claim: ArticleClaim) -> str:
        """Return the outcome of one article; whatever its page does, the others are not affected.

        A failure of the ledger or the store is raised; the article can then be claimed again.
        """
        with boundary("article", claim.url_canon) as unit:
            try:
                return await self._attempt(claim)
            except HostWaits as error:
                # Not counted as a retry: the article itself was not asked for.
                until = self.context.clock() + timedelta(seconds=error.wait_seconds)
                return await self.results.close(
                    claim, "deferred", "pending", str(error), next_try_at=until
                )
            except FetchError as error:
                soft = error.reason not in _FINAL_REASONS
                return await self.results.fail(claim, error.reason, soft=soft)
        # Retried like a fetch that failed: a later version may cope with the page.
        with boundary("article", claim.url_canon):
            await self.results.fail(claim, f"internal error: {unit.cause}", soft=True)
        return INTERNAL_ERROR

    async def _attempt(self, claim: ArticleClaim) -> str:
        if any(map(self.options.takedowns.covers, (claim.url_canon, claim.link))):
            return await self.results.forget(claim)
        own = self.own_settings.get(claim.feed_url, _DEFAULT)
        if own.feed_text_is_enough and has_text(item := await self.results.item(claim)):
            return await self.results.store_feed_text(claim, item)
        decision = await self.robots.decide(claim.link, user_agent=own.user_agent)
        if decision.answer == "disallowed":
            return await self.results.skip(claim, "robots.txt disallows it", decision)
        if decision.answer == "unknown":
            return await self.results.defer(claim, "robots.txt is unreachable")
        response = await self._fetch(claim, own)
        if response.status != 200:
            wait = requested_wait_seconds(response.headers, now=self.context.clock())
            soft = response.status in RETRYABLE_STATUSES
            return await self.results.fail(claim, f"status {response.status}", soft=soft, wait=wait)
        return await self._extract(claim, response, own)

    async def _fetch(self, claim: ArticleClaim, own: FeedSettings) -> Response:
        """Fetch the link of the feed without trackers; if refused, as it is, or the known URL."""
        links = dict.fromkeys((claim.link, claim.url, claim.url_canon))
        for link in links:
            response = await self._get(link, claim, own)
            if response.status < 400 or response.status in RETRYABLE_STATUSES:
                break
        return response

    async def _get(self, url: str, claim: ArticleClaim, own: FeedSettings) -> Response:
        headers = page_headers(own, self.context.secrets, feed_url=claim.feed_url, url=url)
        return await self.context.fetcher.fetch(url, private_headers=headers)

    async def _extract(self, claim: ArticleClaim, response: Response, own: FeedSettings) -> str:
        content_type = response.headers.get("content-type", "")
        kind = content_type.partition(";")[0].strip().lower()
        # A page without a Content-Type is tried as HTML.
        if kind and not any(part in kind for part in _HTML_TYPES):
            return await self.results.skip(claim, f"content type {kind}")
        chain = (claim.url_canon, claim.link, *response.redirects, response.final_url)
        if any(map(self.options.takedowns.covers_url, chain)):
            # The next poll knows the address and does not fetch it again.
            await asyncio.to_thread(self.options.keep_alias, chain)
            return await self.results.forget(claim)
        # A redirect may lead to another site, which has rules of its own.
        final = await self.robots.decide(response.final_url, user_agent=own.user_agent)
        if final.answer == "disallowed":
            return await self.results.skip(
                claim, "robots.txt of the final address disallows it", final
            )
        if final.answer == "unknown":
            return await self.results.defer(claim, "robots.txt of the final address is unreachable")
        charset = content_type_charset(content_type)
        page = (response.body, response.final_url, charset, own.body_selector)
        extracted = await asyncio.wrap_future(self.context.pool.submit(page))
        if not isinstance(extracted, Done):
            # An exception comes from the page itself; a timeout may come from a busy machine.
            soft = extracted.reason != "error"
            return await self.results.fail(claim, f"extraction {extracted.reason}", soft=soft)
        return await self.results.store_page(claim, response, extracted.value, final)
