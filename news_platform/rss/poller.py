"""Poll the feeds that are due and add their new articles to the ledger.

Feeds are fetched with conditional requests. The results are written in batches, one transaction
each. If the poller dies before it writes a batch, those feeds are polled again after their lease.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from yarl import URL

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import ConfigError, FetchError, InputError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, consume_claims
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.article_columns import has_items
from news_platform.rss.feed_settings import parse_settings, private_headers
from news_platform.rss.feeds import Feed, FeedEntry
from news_platform.rss.ledger.entries import (
    AddedEntries,
    add_entries,
    entries_by_url_hash,
    lists_known,
)
from news_platform.rss.ledger.feed_rows import FeedRow, claim_feeds, move_feed, update_feeds
from news_platform.rss.ledger.tables import FEED_POLLS
from news_platform.rss.ledger.transactions import (
    LedgerTransaction,
    note_metrics,
    retry_deadlocks,
    write_transaction,
)
from news_platform.rss.poll_results import (
    FeedPoll,
    PollOptions,
    PollResult,
    feed_options,
    health_score,
    may_miss_items,
    next_poll_at,
    parse_response,
    text_size,
    turnover_interval_seconds,
)
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.build_filters import refuse_taken_down
from news_platform.web.fetch import Fetcher, HostWaits
from news_platform.web.responses import conditional_headers

NO_SECRETS: Mapping[str, str] = MappingProxyType({})
# An archive may go back for years; what a feed lists at its next poll is spread over those.
_MAX_OLDER_PAGES = 10
# Results are written earlier if they hold this much text, so that long feeds do not fill memory.
_MAX_WAITING_CHARS = 32_000_000


@dataclass(slots=True)
class PollReport:
    """Counts of one poll; `outcomes` is the number of feeds by outcome."""

    feeds: int = 0
    new_articles: int = 0
    known_articles: int = 0
    updated_articles: int = 0
    skipped_articles: int = 0
    turned_over: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    taken_down: int = 0

    def add(self, outcome: str, added: AddedEntries) -> None:
        """Count one feed."""
        self.feeds += 1
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.new_articles += added.new
        self.known_articles += added.known
        self.updated_articles += added.updated
        self.skipped_articles += added.skipped
        self.turned_over += added.turned_over
        self.taken_down += added.taken_down

    @property
    def metrics(self) -> dict[str, float]:
        """Return the counts as rows of Diagnostics."""
        return {
            **{f"feeds_{name}": float(count) for name, count in self.outcomes.items()},
            "new_articles": self.new_articles,
            "known_articles": self.known_articles,
            "updated_articles": self.updated_articles,
            "articles_skipped_by_limit": self.skipped_articles,
            "feeds_turned_over": self.turned_over,
            TAKEN_DOWN: self.taken_down,
        }


async def poll_feeds(
    engine: sa.Engine,
    *,
    fetcher: Fetcher,
    pool: Pool,
    options: PollOptions,
    now: datetime,
    only_due: bool = True,
    secrets: Mapping[str, str] = NO_SECRETS,
) -> PollReport:
    """Poll feeds until none is due; with `only_due` False, also every healthy feed once.

    `secrets` are the variables that settings of feeds may name.
    """
    run = _PollRun(engine, fetcher, pool, options, now, only_due, secrets)
    await run.work()
    await asyncio.to_thread(_finish, engine, run.report, options=options, now=now)
    return run.report


def _finish(engine: sa.Engine, report: PollReport, *, options: PollOptions, now: datetime) -> None:
    """Write the counts of a poll, and delete the history of polls that is older than its days."""
    oldest = now - timedelta(days=options.polls_kept_days)
    with write_transaction(engine) as transaction:
        note_metrics(transaction, "poll", report.metrics, now=now)
        old = sa.delete(FEED_POLLS).where(FEED_POLLS.c.polled_at < oldest)
        transaction.connection.execute(old)


@dataclass
class _PollRun:
    """The state of one poll, shared by its consumers; a slow feed delays only one of them."""

    engine: sa.Engine
    fetcher: Fetcher
    pool: Pool
    options: PollOptions
    now: datetime
    only_due: bool
    secrets: Mapping[str, str] = field(repr=False)
    report: PollReport = field(default_factory=PollReport)
    finished: list[PollResult] = field(default_factory=list)
    finished_chars: int = 0
    # SQLite has one writer at a time. Waiting here has no limit; a claim that waited for the
    # ledger itself would give up on a very busy machine, and end the poll.
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def work(self) -> None:
        """Poll one feed after the other until none is left; write the results in batches."""
        await consume_claims(self.claim, self.poll_one, concurrency=self.options.concurrency)
        await self.record()

    async def claim(self) -> list[FeedRow]:
        async with self.writing:
            return await asyncio.to_thread(
                claim_feeds,
                self.engine,
                limit=self.options.batch_size,
                lease_seconds=self.options.lease_seconds,
                now=self.now,
                only_due=self.only_due,
            )

    async def poll_one(self, feed: FeedRow) -> None:
        if (result := await self._poll(feed)) is not None:
            self.finished.append(result)
            self.finished_chars += result.size_chars
        is_full = len(self.finished) >= self.options.batch_size
        if is_full or self.finished_chars > _MAX_WAITING_CHARS:
            await self.record()

    async def _poll(self, feed: FeedRow) -> PollResult | None:
        """Return what to record of a feed; None if not even its failure can be, which is counted.

        Such a feed is due again when its lease ends.
        """
        poll = FeedPoll(feed, self.options, self.now)
        with boundary("feed", feed.feed_url) as unit:
            try:
                own = feed_options(self.options, feed.own_settings)
                return await self._fetch(replace(poll, options=own))
            except (InputError, ConfigError) as error:  # of the feed's own settings
                return poll.failed("bad_settings", kind="hard", remark=str(error))
        with boundary("feed", feed.feed_url):
            return poll.internal_error(unit.cause)
        self.report.add(INTERNAL_ERROR, AddedEntries())
        return None

    async def _fetch(self, poll: FeedPoll) -> PollResult:
        feed, takedowns = poll.feed, self.options.takedowns
        try:
            refuse_taken_down(feed.feed_url, takedowns)
            response = await self.fetcher.fetch(
                feed.feed_url,
                headers=conditional_headers(etag=feed.etag, last_modified=feed.last_modified),
                private_headers=private_headers(parse_settings(feed.own_settings), self.secrets),
                max_body_bytes=self.options.max_body_bytes,
            )
            refuse_taken_down(response.final_url, takedowns)
        except HostWaits as error:
            return poll.postponed(error.wait_seconds)
        except FetchError as error:
            return poll.failed(error.reason)
        result = await poll.evaluate(response, self.pool)
        return await self._with_older(result) if result.older_url else result

    async def _with_older(self, result: PollResult) -> PollResult:
        """Add the entries of older pages to those of a feed that has turned over (RFC 5005).

        Pages are read until one lists an article that the feed listed before, so that what was
        missed since then comes back.
        """
        if not await asyncio.to_thread(self._is_unknown, result.feed, result.entries):
            return result
        entries, url = list(result.entries.values()), result.older_url
        pages, visited = 0, set[str]()
        while url and url not in visited and len(visited) < _MAX_OLDER_PAGES:
            visited.add(url)
            page = await self._older_page(result, url)
            if page is None:
                break
            pages += 1
            older = entries_by_url_hash(page.entries)
            entries += older.values()
            url = page.older_url
            if not await asyncio.to_thread(self._is_unknown, result.feed, older):
                break
        keyed, size = entries_by_url_hash(entries), text_size(entries)
        return replace(result, entries=keyed, older_pages=pages, size_chars=size)

    async def _older_page(self, result: PollResult, url: str) -> Feed | None:
        """Return an older page of a feed; None if it cannot be read."""
        feed = result.feed
        own = parse_settings(feed.own_settings)
        is_own_site = URL(url).origin() == URL(feed.feed_url).origin()
        headers = private_headers(own, self.secrets) if is_own_site else {}
        try:
            refuse_taken_down(url, self.options.takedowns)
            response = await self.fetcher.fetch(
                url, private_headers=headers, max_body_bytes=self.options.max_body_bytes
            )
        except FetchError:
            return None
        parsed = await parse_response(response, self.pool) if response.status == 200 else None
        return parsed.value if isinstance(parsed, Done) else None

    def _is_unknown(self, feed: FeedRow, entries: Mapping[str, FeedEntry]) -> bool:
        """Return whether a feed has listed articles before, and none of these."""
        canonical = feed.feed_url_canon
        with read_transaction(self.engine) as connection:
            had_items = has_items(connection, canonical)
            return had_items and not lists_known(connection, canonical, list(entries))

    async def record(self) -> None:
        async with self.writing:
            results, self.finished, self.finished_chars = self.finished, [], 0
            if results:
                await asyncio.to_thread(retry_deadlocks, partial(self._record, results))

    def _record(self, results: Sequence[PollResult]) -> None:
        """Write the results of some feeds in one transaction; one that fails leaves the others."""
        plain = [result for result in results if not result.has_articles]
        others = [result for result in results if result.has_articles]
        done: list[tuple[PollResult, str, AddedEntries]] = []
        with write_transaction(self.engine) as transaction:
            # Most feeds have nothing new: together they take a few statements, not one each.
            with boundary("batch", f"{len(plain)} feeds") as batch, transaction.savepoint():
                update_feeds(transaction, [(p.feed.feed_url_canon, p.changes) for p in plain])
            if batch.cause:
                others += plain
            else:
                done += [(result, result.outcome, AddedEntries()) for result in plain]
            # In order of URL, not of arrival: the same responses give the same row_ids.
            for result in sorted(others, key=lambda result: result.feed.feed_url_canon):
                done.append((result, *self._record_unit(transaction, result)))
            _write_polls(transaction, [_poll_row(*one, now=self.now) for one in done])
        for _, outcome, added in done:
            self.report.add(outcome, added)

    def _record_unit(
        self, transaction: LedgerTransaction, result: PollResult
    ) -> tuple[str, AddedEntries]:
        """Write one feed and return its outcome; if that fails, write only the failure."""
        feed = result.feed
        with boundary("feed", feed.feed_url) as unit, transaction.savepoint():
            return result.outcome, self._record_one(transaction, result)
        with boundary("feed", feed.feed_url), transaction.savepoint():
            failure = FeedPoll(feed, self.options, self.now).internal_error(unit.cause)
            update_feeds(transaction, [(feed.feed_url_canon, failure.changes)])
        return INTERNAL_ERROR, AddedEntries()

    def _record_one(self, transaction: LedgerTransaction, result: PollResult) -> AddedEntries:
        canonical, changes, added = result.feed.feed_url_canon, dict(result.changes), AddedEntries()
        if result.entries:
            own = feed_options(self.options, result.feed.own_settings)
            added = add_entries(
                transaction,
                canonical,
                result.entries,
                max_new=own.max_items_per_feed,
                now=self.now,
                takedowns=self.options.takedowns,
                had_skipped=bool(result.feed.skipped_items),
            )
            changes |= _consequences(result, added, options=own, now=self.now)
        update_feeds(transaction, [(canonical, changes)])
        # Last, because all of the above refers to the feed by its old URL.
        if result.moved_to_canon not in ("", canonical):
            move_feed(
                transaction,
                result.feed,
                feed_url=result.moved_to,
                feed_url_canon=result.moved_to_canon,
                now=self.now,
            )
        return added


def _write_polls(transaction: LedgerTransaction, polls: Sequence[dict[str, Any]]) -> None:
    """Add polls to the history, together if possible; one that cannot be written is left out."""
    if not polls:
        return
    with boundary("batch", f"{len(polls)} polls") as batch, transaction.savepoint():
        transaction.connection.execute(sa.insert(FEED_POLLS), polls)
    for poll in polls if batch.cause else ():
        with boundary("feed", poll["feed_url"]), transaction.savepoint():
            transaction.connection.execute(sa.insert(FEED_POLLS), poll)


def _poll_row(
    result: PollResult, outcome: str, added: AddedEntries, *, now: datetime
) -> dict[str, Any]:
    # The history stays with the feed, unless the move could not be recorded.
    moved_to = result.moved_to_canon if outcome == result.outcome else ""
    return {
        "feed_url": moved_to or result.feed.feed_url_canon,
        "polled_at": now,
        "outcome": outcome,
        "status_code": result.changes.get("last_status", 0),
        "items": result.items,
        "new_items": added.new,
        "updated_items": added.updated,
        "skipped_items": added.skipped + result.left_out,
        "items_without_link": result.items_without_link,
        "turned_over": added.turned_over,
        "notes": "; ".join(filter(None, (result.changes.get("remark"), *result.notes))),
    }


def _consequences(
    result: PollResult, added: AddedEntries, *, options: PollOptions, now: datetime
) -> dict[str, Any]:
    """Return the columns that follow from what the ledger knew of the entries."""
    feed = result.feed
    skipped = added.skipped + result.left_out
    turned_over_at = now if added.turned_over or result.is_cut else feed.turned_over_at
    may_miss = may_miss_items(turned_over_at, now=now)
    changes: dict[str, Any] = {
        "skipped_items": skipped,
        "may_miss_items": may_miss,
        "turned_over_at": turned_over_at,
        "health_score": health_score(
            errors_in_row=0,
            no_updates_days=result.changes["no_updates_days"],
            may_miss_items=may_miss,
            skipped_items=skipped,
        ),
    }
    if may_miss:
        wait = turnover_interval_seconds(
            result.dates,
            previous=feed.interval_seconds or options.min_interval_seconds,
            turned_over=added.turned_over,
            options=options,
        )
        wait = min(wait, result.changes["interval_seconds"])
        changes |= {"interval_seconds": wait, "next_poll_at": next_poll_at(feed, wait, now=now)}
    if added.skipped:
        # The feed lists more articles. Fetch it again soon, and not conditionally.
        soon = now + timedelta(seconds=options.min_interval_seconds)
        changes |= {"etag": "", "last_modified": "", "body_hash": "", "next_poll_at": soon}
    changes["remark"] = _remark(
        result, skipped=skipped, may_miss=may_miss, turned_over_at=turned_over_at
    )
    return changes


def _remark(
    result: PollResult, *, skipped: int, may_miss: bool, turned_over_at: datetime | None
) -> str:
    parts = []
    if result.is_cut:
        parts.append("may miss items: the feed is longer than what is read of it")
    elif may_miss and turned_over_at is not None:
        parts.append(f"may miss items: it turned over before {turned_over_at:%Y-%m-%d %H:%M}")
    if skipped:
        parts.append(f"{skipped} items skipped by the limit")
    return "; ".join((*parts, *result.notes))
