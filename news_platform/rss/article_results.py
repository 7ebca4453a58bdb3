"""What a worker found for an article in, its row and its files out.

A page is judged and stored, or the article fails, waits, is skipped or forgotten. Results are
written to the ledger one by one.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import sqlalchemy as sa

from news_platform.articles.article import (
    WRONG_PAGE,
    Article,
    ExtractedPage,
    PageVerdict,
    titles_agree,
)
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.html.decode import content_type_charset
from news_platform.isolation.pool import Pool
from news_platform.rss.article_columns import (
    FEED,
    FeedItem,
    article_columns,
    feed_article,
    has_text,
    judge_claimed,
    merge_article,
    read_item,
)
from news_platform.rss.article_files import WorkPlaces, full_text_path, read_references
from news_platform.rss.ledger.article_queue import (
    ArticleClaim,
    OpenStatus,
    WorkOptions,
    close_article,
    forget_article,
)
from news_platform.rss.ledger.article_store import (
    AddressHolder,
    other_holders,
    owner_of_text,
    retract_article,
    store_article,
    taken_by,
    text_holder,
)
from news_platform.rss.ledger.transactions import (
    LedgerTransaction,
    retry_deadlocks,
    write_transaction,
)
from news_platform.rss.robots_gate import KnownRobots, RobotsDecision
from news_platform.storage.sql.engine import read_transaction
from news_platform.text.normalize import text_hash, unique_text_hash
from news_platform.web.fetch import PoliteFetcher, Response
from news_platform.web.urls import canonical_url, stated_address, url_hash

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a worker uses: the ledger, the web, the process pool, the stores, the clock.

    `secrets` are the variables that settings of feeds may name.
    """

    engine: sa.Engine
    fetcher: PoliteFetcher
    pool: Pool
    places: WorkPlaces
    user_agent: str
    known_robots: KnownRobots
    clock: Callable[[], datetime]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The page of an article with what its feed and robots.txt say, and the address it goes under.

    `compared_with` is the article that has its address or its text, too, once it was looked for.
    """

    page: ExtractedPage
    response: Response
    item: FeedItem
    article: Article
    robots: Mapping[str, Any]
    url: str
    text_hash: str | None
    compared_with: int | None = None


def _compared_hash(article: Article, item: FeedItem, doubt: str) -> str | None:
    """Return the hash that only copies of one article share, or of one wall, however short."""
    title, text = article.title or item.title, article.clean_text
    found = unique_text_hash(text, title=title, is_paywalled=article.is_paywalled)
    # Under another title than its feed's, an equal text makes no duplicate, but two walls.
    if found is None and doubt == "other_title" and text.strip():
        return text_hash(f"{title}\n{text}")
    return found


class ArticleResults:
    """Write the results of one worker, while its claims hold their rows."""

    def __init__(self, context: WorkerContext, options: WorkOptions) -> None:
        self.context = context
        self.options = options
        # SQLite has one writer at a time; waiting for this lock does not block a thread, and has no
        # limit after which the ledger would count as locked by another process.
        self.writing = asyncio.Lock()
        # By the addresses and texts that are compared.
        self.comparing = WeakValueDictionary[str, asyncio.Lock]()

    async def store_page(
        self, claim: ArticleClaim, response: Response, page: ExtractedPage, decision: RobotsDecision
    ) -> str:
        """Store the article of a page, unless the page is not that of the article."""
        final = canonical_url(response.final_url)
        stated = stated_address(final, page.article.canonical_link)
        if self.options.takedowns.covers_url(stated):
            await asyncio.to_thread(self.options.keep_alias, (claim.url_canon, stated))
            return await self.forget(claim)
        item = await self.item(claim)
        article = merge_article(page.article, item)
        verdict = judge_claimed(claim, page, item, url=response.final_url)
        compared = _compared_hash(article, item, verdict.doubt)
        robots = decision.columns
        fetched = FetchedPage(page, response, item, article, robots, stated, compared)
        if verdict.reason or (final == stated == claim.url_canon and not verdict.doubt):
            return await self._store_judged(claim, fetched, verdict)
        # Of the articles that lead to one page, or show one text, the first is stored before the
        # next is compared with it.
        keys = {final, stated, compared or final}
        async with AsyncExitStack() as held:
            for key in sorted(keys):
                lock = self.comparing.setdefault(key, asyncio.Lock())
                await held.enter_async_context(lock)
            return await self._compare(claim, fetched, final)

    async def _compare(self, claim: ArticleClaim, fetched: FetchedPage, final: str) -> str:
        """Store a page unless it is also that of an article which has another title."""
        others = await self._read(other_holders, claim.row_id, (final, fetched.url))
        other = others.get(final) or await self._read(text_holder, claim.row_id, fetched.text_hash)
        verdict = judge_claimed(
            claim,
            fetched.page,
            fetched.item,
            url=fetched.response.final_url,
            other_title=other.title if other else "",
        )
        if verdict.reason and other:
            await self._retract(other)
        # A template may state one address for all its pages.
        stated_by, title = others.get(fetched.url), fetched.page.article.title
        url = fetched.url if stated_by is None or titles_agree(stated_by.title, title) else final
        compared = replace(fetched, url=url, compared_with=other.row_id if other else None)
        return await self._store_judged(claim, compared, verdict)

    async def _store_judged(
        self, claim: ArticleClaim, fetched: FetchedPage, verdict: PageVerdict
    ) -> str:
        robots, response, article = fetched.robots, fetched.response, fetched.article
        if verdict.reason:
            return await self.fail(claim, verdict.reason, soft=False, **robots)
        # Not retried: the page was fetched in full, and its text needs scripts or a login.
        if not article.clean_text.strip():
            reason = "paywall: no text" if article.is_paywalled else "no article text found"
            facts = {**robots, "is_paywalled": article.is_paywalled}
            return await self.fail(claim, reason, soft=False, **facts)
        facts = {
            **robots,
            "page_url": response.final_url,
            "page_charset": content_type_charset(response.headers.get("content-type", "")) or "",
            "page_doubt": verdict.doubt,
            "unique_text_hash": fetched.text_hash,
        }
        return await self._store(
            claim,
            article,
            fetched.item,
            url=fetched.url,
            facts=facts,
            body=response.body,
            compared_with=fetched.compared_with,
        )

    async def _retract(self, holder: AddressHolder) -> None:
        """Take back the text of an article that another one leads to, if it was in doubt."""

        def write(transaction: LedgerTransaction) -> str:
            retract_article(transaction, holder.row_id, WRONG_PAGE, now=self.context.clock())
            return WRONG_PAGE

        if holder.is_doubtful:
            engine = self.context.engine
            before = await asyncio.to_thread(read_references, engine, holder.row_id)
            await self._write(write)
            await asyncio.to_thread(self.context.places.delete_unowned, engine, before)

    async def store_feed_text(self, claim: ArticleClaim, item: FeedItem) -> str:
        """Store the text that a feed carries in place of that of the page."""
        article = await asyncio.to_thread(feed_article, item)
        return await self._store(claim, article, item, url=claim.url_canon, facts={})

    async def item(self, claim: ArticleClaim) -> FeedItem:
        """Return what the feeds say about an article."""
        return await self._read(read_item, claim.row_id, claim.feed_url)

    async def _read(
        self, read: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **given: P.kwargs
    ) -> T:
        def run() -> T:
            with read_transaction(self.context.engine) as connection:
                return read(connection, *args, **given)

        return await asyncio.to_thread(run)

    async def _store(
        self,
        claim: ArticleClaim,
        article: Article,
        item: FeedItem,
        *,
        url: str,
        facts: Mapping[str, Any],
        body: bytes | None = None,
        compared_with: int | None = None,
    ) -> str:
        now, context = self.context.clock(), self.context
        # Computed before the transaction: on PostgreSQL other workers wait while it is open.
        columns = {**article_columns(article, item, url=url, now=now), **facts}
        if claim.text_hash and (reason := await self._read(taken_by, claim.row_id, columns)):
            return await self.close(claim, "kept", "error", reason, processed_at=now)
        # The files first, then the row: a row must never refer to a missing file. The file of an
        # article that this one only leads to stays as it is.
        reference = ""
        if await self._read(owner_of_text, claim.row_id, columns["url_hash"]) is None:
            reference = await asyncio.to_thread(
                context.places.write_full_text, columns["url_hash"], article.full_text
            )
        if body is not None:
            columns["page_ref"] = await asyncio.to_thread(context.places.write_page, body)
        link_hashes = tuple(url_hash(link) for link in article.out_links)
        stored = {**columns, "full_text_ref": reference, "fetched_at": now}

        is_stated = url != canonical_url(facts.get("page_url", url))

        def write(transaction: LedgerTransaction) -> str:
            return store_article(
                transaction,
                claim,
                stored,
                link_hashes=link_hashes,
                now=now,
                is_stated=is_stated,
                compared_with=compared_with,
            )

        before = await asyncio.to_thread(read_references, context.engine, claim.row_id)
        outcome = await self._write(write)
        if outcome != "lost":  # else the same files may be those of the worker that has it now
            written = (*before, reference, str(stored.get("page_ref", "")))
            await asyncio.to_thread(context.places.delete_unowned, context.engine, written)
        return outcome

    async def forget(self, claim: ArticleClaim) -> str:
        """Delete an article that is taken down, so that nothing names it."""

        def write(transaction: LedgerTransaction) -> str:
            return TAKEN_DOWN if forget_article(transaction, claim) else "lost"

        outcome = await self._write(write)
        path = full_text_path(claim.url_hash)
        await asyncio.to_thread(self.context.places.full_texts.delete, [path])
        return outcome

    async def skip(
        self, claim: ArticleClaim, reason: str, decision: RobotsDecision | None = None
    ) -> str:
        """Record that the article is not to be fetched."""
        columns = decision.columns if decision else {}
        done = {"processed_at": self.context.clock(), **columns}
        return await self.close(claim, "skipped", "skipped", reason, **done)

    async def defer(self, claim: ArticleClaim, reason: str) -> str:
        """Wait as long again as the article has waited, up to a day; at last give it up."""
        now = self.context.clock()
        since = claim.deferred_since or now
        waited = (now - since).total_seconds()
        if waited >= self.options.robots_patience_seconds:
            return await self.skip(claim, f"{reason} for {int(waited // 86_400)} days")
        wait = timedelta(seconds=min(max(waited, self.options.retry_seconds), 86_400))
        # Not counted as a retry: the article itself was not asked for.
        columns = {"next_try_at": now + wait, "deferred_since": since}
        return await self.close(claim, "deferred", "pending", reason, **columns)

    async def fail(
        self, claim: ArticleClaim, reason: str, *, soft: bool, wait: int = 0, **facts: Any
    ) -> str:
        """Record a failure; if it is final and the feed carries the text, store that instead."""
        now = self.context.clock()
        retry_at = self._retry_at(claim, now, wait) if soft else None
        # An article that was stored from its page keeps that text.
        is_open = not claim.text_hash or claim.text_source == FEED
        if retry_at is None and is_open and has_text(item := await self.item(claim)):
            return await self.store_feed_text(claim, item)
        columns = {"next_try_at": retry_at, "retries": claim.retries + 1, "processed_at": now}
        if retry_at is None:
            return await self.close(claim, "error", "error", reason, **columns, **facts)
        return await self.close(claim, "retry", "pending", reason, **columns, **facts)

    def _retry_at(self, claim: ArticleClaim, now: datetime, wait: int) -> datetime | None:
        if claim.retries >= self.options.max_retries:
            return None
        # The wait doubles with each failure, up to one day; a Retry-After header may lengthen it.
        backoff = min(self.options.retry_seconds * 2**claim.retries, 86_400)
        return now + timedelta(seconds=max(backoff, wait))

    async def close(
        self, claim: ArticleClaim, outcome: str, status: OpenStatus, reason: str, **columns: Any
    ) -> str:
        """End the claim without a text; return the outcome, or "lost" if another worker has it."""

        def write(transaction: LedgerTransaction) -> str:
            now = self.context.clock()
            held = close_article(transaction, claim, status, reason, now=now, **columns)
            return outcome if held else "lost"

        return await self._write(write)

    async def _write(self, write: Callable[[LedgerTransaction], str]) -> str:
        def run() -> str:
            with write_transaction(self.context.engine) as transaction:
                return write(transaction)

        async with self.writing:
            return await asyncio.to_thread(retry_deadlocks, run)
