"""Claim pending articles, fetch their pages, extract the articles, and store them in the ledger.

Many articles are in progress at a time. Extraction runs in processes that can be killed, and
results are written to the ledger one by one.
"""

import asyncio
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

import sqlalchemy as sa

from news_platform.articles.article import Article
from news_platform.articles.category import guess_category
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import FetchError
from news_platform.html.decode import content_type_charset
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.full_text import cut_at_word_end, full_text_path, write_full_text
from news_platform.rss.ledger.article_queue import (
    ArticleClaim,
    claim_articles,
    defer_article,
    fail_article,
    forget_article,
    renew_claims,
    retry_time,
    skip_article,
    store_article,
)
from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.rss.robots_gate import KnownRobots, RobotsGate
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.text.normalize import text_hash
from news_platform.web.fetch import PoliteFetcher, Response
from news_platform.web.retry_after import requested_wait_seconds
from news_platform.web.urls import canonical_url, url_hash, url_host

_WORD = re.compile(r"\w+")
# A retry may help with these, among them Cloudflare's 52x. Any other status from 400 is final.
_RETRY_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524))
# Reasons of a FetchError that a retry does not change.
_FINAL_REASONS = frozenset(("blocked_address", "blocked_port", "bad_url", "nxdomain"))
_HTML_TYPES = ("html", "xml")


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """How articles are claimed, fetched and stored."""

    pending_batch_size: int = 100
    # Rows are copied to a Google Sheet, whose cells hold at most 50,000 characters.
    clean_text_limit: int = 20_000
    lease_seconds: int = 600
    max_retries: int = 5
    # The wait after the first failure; it doubles with each further one, up to a day.
    retry_seconds: int = 600
    concurrency: int = 32
    robots_cache_seconds: int = 24 * 3600
    extractors: int = 2
    # None means no limit: work until nothing is due.
    max_articles: int | None = None
    takedowns: Takedowns = NO_TAKEDOWNS
    # Called with the addresses of a page that turned out to be taken down.
    keep_alias: Callable[[Sequence[str]], object] = len


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a worker uses: the ledger, the web, the process pool, the full-text store, the clock."""

    engine: sa.Engine
    fetcher: PoliteFetcher
    pool: Pool
    full_texts: ObjectStore
    user_agent: str
    known_robots: KnownRobots
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class WorkReport:
    """How many articles a worker claimed, and the number of articles by outcome."""

    claimed: int
    outcomes: Mapping[str, int]

    @property
    def stored(self) -> int:
        """Return how many articles were stored or revised."""
        return self.outcomes.get("stored", 0) + self.outcomes.get("revised", 0)

    @property
    def duplicates(self) -> int:
        """Return how many articles were duplicates, by URL or by text."""
        return sum(n for outcome, n in self.outcomes.items() if outcome.startswith("duplicate"))


async def work_articles(
    context: WorkerContext, *, worker_id: str, options: WorkOptions
) -> WorkReport:
    """Work on articles until none is due or `options.max_articles` were claimed."""
    run = _WorkRun(context, worker_id, options)
    # An article may wait longer than its lease for its turn or for a slow site.
    renewal = asyncio.create_task(run.renew_leases())
    try:
        await run_concurrently(run.consume() for _ in range(options.concurrency))
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


def interleave_hosts(claims: Iterable[ArticleClaim]) -> list[ArticleClaim]:
    """Return the claims with their hosts taking turns.

    Requests to one host wait for each other; in turns, one host cannot stop all consumers.
    """
    by_host: dict[str, deque[ArticleClaim]] = {}
    for claim in claims:
        host = ""
        with boundary("article", claim.url_canon):
            host = url_host(claim.url_canon)
        by_host.setdefault(host, deque()).append(claim)
    turns = zip_longest(*by_host.values())
    return [claim for turn in turns for claim in turn if claim is not None]


class _WorkRun:
    """The state of one `work_articles` call, shared by its concurrent consumers."""

    def __init__(self, context: WorkerContext, worker_id: str, options: WorkOptions) -> None:
        self.context = context
        self.worker_id = worker_id
        self.options = options
        self.waiting: deque[ArticleClaim] = deque()
        self.unfinished: dict[int, ArticleClaim] = {}
        self.claimed = 0
        self.outcomes: Counter[str] = Counter()
        self.claiming = asyncio.Lock()
        # SQLite has one writer at a time; waiting for this lock does not block a thread.
        self.writing = asyncio.Lock()
        self.robots = RobotsGate(
            context.engine,
            fetcher=context.fetcher,
            user_agent=context.user_agent,
            known=context.known_robots,
            cache_seconds=options.robots_cache_seconds,
            now=context.clock(),
        )

    async def consume(self) -> None:
        """Work on one article after the other until none is due."""
        while (claim := await self.next_claim()) is not None:
            outcome = await self._work_on(claim)
            del self.unfinished[claim.row_id]
            self.outcomes[outcome] += 1

    async def next_claim(self) -> ArticleClaim | None:
        # One claim at a time: the other consumers wait and take articles of the same batch.
        async with self.claiming:
            if not self.waiting:
                claims = await asyncio.to_thread(self.claim)
                self.claimed += len(claims)
                self.unfinished.update((claim.row_id, claim) for claim in claims)
                self.waiting.extend(interleave_hosts(claims))
            return self.waiting.popleft() if self.waiting else None

    def claim(self) -> list[ArticleClaim]:
        most = self.options.max_articles
        left = sys.maxsize if most is None else most - self.claimed
        limit = min(self.options.pending_batch_size, left)
        if limit <= 0:
            return []
        return claim_articles(
            self.context.engine,
            self.worker_id,
            limit=limit,
            lease_seconds=self.options.lease_seconds,
            now=self.context.clock(),
        )

    async def renew_leases(self) -> None:
        """Renew the leases of unfinished articles until cancelled."""
        while True:
            # One renewal may fail or be late without losing the lease.
            await asyncio.sleep(self.options.lease_seconds / 3)
            claims = tuple(self.unfinished.values())
            await asyncio.to_thread(
                renew_claims, self.context.engine, claims, now=self.context.clock()
            )

    async def _work_on(self, claim: ArticleClaim) -> str:
        """Return the outcome of one article; whatever its page does, the others are not affected.

        A failure of the ledger or the store is raised; the article can then be claimed again.
        """
        with boundary("article", claim.url_canon) as unit:
            try:
                return await self._attempt(claim)
            except FetchError as error:
                soft = error.reason not in _FINAL_REASONS
                return await self._fail(claim, error.reason, soft=soft)
        # Retried like a fetch that failed: a later version may cope with the page.
        with boundary("article", claim.url_canon):
            await self._fail(claim, f"internal error: {unit.cause}", soft=True)
        return INTERNAL_ERROR

    async def _attempt(self, claim: ArticleClaim) -> str:
        if self.options.takedowns.covers(claim.url_canon):
            return await self._forget(claim)
        verdict = await self.robots.verdict(claim.url_canon)
        if verdict == "disallowed":
            return await self._skip(claim, "robots.txt disallows it")
        if verdict == "unknown":
            return await self._defer(claim, "robots.txt is unreachable")
        response = await self._fetch(claim)
        if response.status != 200:
            wait = requested_wait_seconds(response.headers, now=self.context.clock())
            soft = response.status in _RETRY_STATUSES
            return await self._fail(claim, f"status {response.status}", soft=soft, wait=wait)
        return await self._extract(claim, response)

    async def _fetch(self, claim: ArticleClaim) -> Response:
        """Fetch the canonical URL, which has no trackers; if refused, the URL of the feed."""
        response = await self.context.fetcher.fetch(claim.url_canon)
        refused = response.status >= 400 and response.status not in _RETRY_STATUSES
        if refused and claim.url != claim.url_canon:
            return await self.context.fetcher.fetch(claim.url)
        return response

    async def _extract(self, claim: ArticleClaim, response: Response) -> str:
        content_type = response.headers.get("content-type", "")
        kind = content_type.partition(";")[0].strip().lower()
        # A page without a Content-Type is tried as HTML.
        if kind and not any(part in kind for part in _HTML_TYPES):
            return await self._skip(claim, f"content type {kind}")
        chain = (claim.url_canon, *response.redirects, response.final_url)
        if any(map(self.options.takedowns.covers_url, chain)):
            # The next poll knows the address and does not fetch it again.
            await asyncio.to_thread(self.options.keep_alias, chain)
            return await self._forget(claim)
        # A redirect may lead to another site, which has rules of its own.
        final = await self.robots.verdict(response.final_url)
        if final == "disallowed":
            return await self._skip(claim, "robots.txt of the final address disallows it")
        if final == "unknown":
            return await self._defer(claim, "robots.txt of the final address is unreachable")
        page = (response.body, response.final_url, content_type_charset(content_type))
        extracted = await asyncio.wrap_future(self.context.pool.submit(page))
        if not isinstance(extracted, Done):
            # An exception comes from the page itself; a timeout may come from a busy machine.
            soft = extracted.reason != "error"
            return await self._fail(claim, f"extraction {extracted.reason}", soft=soft)
        # Not retried: the page was fetched in full, and its text needs scripts or a login.
        if not extracted.value.clean_text.strip():
            return await self._fail(claim, "no article text found", soft=False)
        return await self._store(claim, response, extracted.value)

    async def _store(self, claim: ArticleClaim, response: Response, article: Article) -> str:
        now = self.context.clock()
        url = canonical_url(response.final_url)
        # The file first, then the row: a row must never refer to a missing file.
        reference = await asyncio.to_thread(
            write_full_text, self.context.full_texts, url_hash(url), article.full_text
        )
        # Computed before the transaction: on PostgreSQL other workers wait while it is open.
        columns = article_columns(article, url=url, options=self.options)
        link_hashes = tuple(url_hash(link) for link in article.out_links)

        def write() -> str:
            stored = {**columns, "full_text_ref": reference, "fetched_at": now}
            with write_transaction(self.context.engine) as transaction:
                return store_article(transaction, claim, stored, link_hashes=link_hashes, now=now)

        return await self._write(write)

    async def _forget(self, claim: ArticleClaim) -> str:
        """Delete an article that is taken down, so that nothing names it."""

        def write() -> str:
            with write_transaction(self.context.engine) as transaction:
                held = forget_article(transaction, claim)
            self.context.full_texts.delete([full_text_path(claim.url_hash)])
            return TAKEN_DOWN if held else "lost"

        return await self._write(write)

    async def _skip(self, claim: ArticleClaim, reason: str) -> str:
        def write() -> str:
            with write_transaction(self.context.engine) as transaction:
                held = skip_article(transaction, claim, reason, now=self.context.clock())
            return "skipped" if held else "lost"

        return await self._write(write)

    async def _defer(self, claim: ArticleClaim, reason: str) -> str:
        def write() -> str:
            retry_at = self.context.clock() + timedelta(seconds=self.options.retry_seconds)
            with write_transaction(self.context.engine) as transaction:
                held = defer_article(transaction, claim, reason, retry_at=retry_at)
            return "deferred" if held else "lost"

        return await self._write(write)

    async def _fail(self, claim: ArticleClaim, reason: str, *, soft: bool, wait: int = 0) -> str:
        def write() -> str:
            now = self.context.clock()
            retry_at = self._retry_at(claim, now, wait) if soft else None
            with write_transaction(self.context.engine) as transaction:
                held = fail_article(transaction, claim, reason, retry_at=retry_at, now=now)
            return ("error" if retry_at is None else "retry") if held else "lost"

        return await self._write(write)

    def _retry_at(self, claim: ArticleClaim, now: datetime, wait: int) -> datetime | None:
        if claim.retries >= self.options.max_retries:
            return None
        backoff = retry_time(now, retries=claim.retries, retry_seconds=self.options.retry_seconds)
        # A Retry-After header can only lengthen the wait.
        return max(backoff, now + timedelta(seconds=wait))

    async def _write(self, write: Callable[[], str]) -> str:
        async with self.writing:
            return await asyncio.to_thread(write)


def article_columns(article: Article, *, url: str, options: WorkOptions) -> dict[str, Any]:
    """Return the columns of Raw that an article fills; `url` is its canonical final URL.

    Only `clean_text` is cut to the limit: the lengths and the hash are those of the whole text.
    """
    return {
        # The final URL: two feed URLs that redirect to one article get the same hash.
        "article_url_canon": url,
        "url_hash": url_hash(url),
        "text_hash": text_hash(article.clean_text),
        "published_at": article.published_at,
        "language": article.language,
        "title": article.title,
        "subtitle": article.subtitle,
        "authors": article.authors,
        "section": article.section,
        "tags": article.tags,
        "article_type": article.article_type,
        "clean_text": cut_at_word_end(article.clean_text, options.clean_text_limit),
        "clean_text_len": len(article.clean_text),
        "full_text_len": len(article.full_text),
        "word_count": len(_WORD.findall(article.clean_text)),
        "out_links": article.out_links,
        "extractor_version": article.extractor_version,
        "confidence": article.confidence,
        "published_at_source": article.published_at_source,
        "category_guess": guess_category(
            url=url,
            section=article.section,
            tags=article.tags,
            title=article.title,
            text=article.clean_text,
        ),
    }
