"""Poll the feeds that are due and add their new articles to the ledger.

Feeds are fetched with conditional requests. The results are written in batches, one transaction
each. If the poller dies before it writes a batch, those feeds are polled again after their lease.
"""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import FetchError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.feeds import Feed, FeedEntry
from news_platform.rss.ledger.entries import AddedEntries, add_entries, entries_by_url_hash
from news_platform.rss.ledger.feed_rows import (
    MAX_FEED_URL,
    FeedRow,
    claim_feeds,
    move_feed,
    update_feeds,
)
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.rss.polling import poll_schedule
from news_platform.rss.polling.poll_schedule import PollOptions
from news_platform.takedowns.obeying import refuse_taken_down
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.redirects import is_permanent_redirect
from news_platform.web.retry_after import requested_wait_seconds
from news_platform.web.urls import canonical_url
from news_platform.web.validators import conditional_headers, validator

_NOT_MODIFIED = 304
_GONE = 410
# Temporary failures; all others are hard and count double.
_SOFT_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class PollResult:
    """What polling one feed gave: a word to count by, and the new columns of the feed's row."""

    feed: FeedRow
    outcome: str
    changes: Mapping[str, Any]
    entries: Mapping[str, FeedEntry] = field(default_factory=dict)
    moved_to: str = ""

    @property
    def has_articles(self) -> bool:
        """Return whether there is more to write than the feed's own row."""
        return bool(self.entries or self.moved_to)


@dataclass(slots=True)
class _PollCounts:
    outcomes: Counter[str] = field(default_factory=Counter)
    new: int = 0
    known: int = 0
    left: int = 0
    taken_down: int = 0

    def add(self, outcome: str, added: AddedEntries) -> None:
        self.outcomes[outcome] += 1
        self.new += added.new
        self.known += added.known
        self.left += added.left
        self.taken_down += added.taken_down


@dataclass(frozen=True, slots=True)
class PollReport:
    """Counts of one poll; `outcomes` is the number of feeds by outcome."""

    feeds: int
    new_articles: int
    known_articles: int
    left_for_next_poll: int
    outcomes: Mapping[str, int]
    taken_down: int = 0


async def poll_feeds(
    engine: sa.Engine,
    *,
    fetcher: Fetcher,
    pool: Pool,
    options: PollOptions,
    now: datetime,
    only_due: bool = True,
) -> PollReport:
    """Poll feeds until none is due; with `only_due` False, also every healthy feed once."""
    run = _PollRun(engine, fetcher, pool, options, now, only_due)
    await run_concurrently(run.consume() for _ in range(options.concurrency))
    await run.record()
    counts = run.counts
    report = PollReport(
        counts.outcomes.total(), counts.new, counts.known, counts.left, dict(counts.outcomes)
    )
    report = replace(report, taken_down=counts.taken_down)
    await asyncio.to_thread(_record_metrics, engine, report, now=now)
    return report


class _PollRun:
    """The state of one poll, shared by its consumers; a slow feed delays only one of them."""

    def __init__(
        self,
        engine: sa.Engine,
        fetcher: Fetcher,
        pool: Pool,
        options: PollOptions,
        now: datetime,
        only_due: bool,
    ) -> None:
        self.engine, self.fetcher, self.pool = engine, fetcher, pool
        self.options, self.now, self.only_due = options, now, only_due
        self.counts = _PollCounts()
        self.waiting: deque[FeedRow] = deque()
        self.finished: list[PollResult] = []
        self.claiming = asyncio.Lock()
        # One batch at a time: SQLite has one writer.
        self.recording = asyncio.Lock()

    async def consume(self) -> None:
        """Poll one feed after the other until none is left; write the results in batches."""
        while (feed := await self.next_feed()) is not None:
            if (result := await self.poll(feed)) is not None:
                self.finished.append(result)
            if len(self.finished) >= self.options.batch_size:
                await self.record()

    async def next_feed(self) -> FeedRow | None:
        # One claim at a time: the other consumers wait and take feeds of the same batch.
        async with self.claiming:
            if not self.waiting:
                self.waiting.extend(await asyncio.to_thread(self.claim))
            return self.waiting.popleft() if self.waiting else None

    def claim(self) -> list[FeedRow]:
        return claim_feeds(
            self.engine,
            limit=self.options.batch_size,
            lease_seconds=self.options.lease_seconds,
            now=self.now,
            only_due=self.only_due,
        )

    async def poll(self, feed: FeedRow) -> PollResult | None:
        """Return what to record of a feed; None if not even its failure can be, which is counted.

        Such a feed is due again when its lease ends.
        """
        with boundary("feed", feed.feed_url) as unit:
            return await self._fetch(feed)
        with boundary("feed", feed.feed_url):
            return _internal_error(feed, unit.cause, options=self.options, now=self.now)
        self.counts.outcomes[INTERNAL_ERROR] += 1
        return None

    async def _fetch(self, feed: FeedRow) -> PollResult:
        try:
            refuse_taken_down(feed.feed_url, self.options.takedowns)
            response = await self.fetcher.fetch(
                feed.feed_url,
                headers=conditional_headers(etag=feed.etag, last_modified=feed.last_modified),
                max_body_bytes=self.options.max_body_bytes,
            )
            refuse_taken_down(response.final_url, self.options.takedowns)
        except FetchError as error:
            return _failed(feed, error.reason, options=self.options, now=self.now)
        return await _evaluate(feed, response, self.pool, options=self.options, now=self.now)

    async def record(self) -> None:
        async with self.recording:
            results, self.finished = self.finished, []
            if results:
                await asyncio.to_thread(
                    _record, self.engine, results, self.counts, options=self.options, now=self.now
                )


async def _evaluate(
    feed: FeedRow, response: Response, pool: Pool, *, options: PollOptions, now: datetime
) -> PollResult:
    if response.status == _NOT_MODIFIED:
        return _unchanged(feed, response, "not_modified", options=options, now=now)
    # The server says that the feed will not come back, unlike with any other error.
    if response.status == _GONE:
        return PollResult(
            feed, "gone", {**_checked(response, now), "status": "gone", "remark": "410 Gone"}
        )
    if response.status != 200:
        kind = "soft" if response.status in _SOFT_STATUSES else "hard"
        wait = requested_wait_seconds(response.headers, now=now)
        reason = f"status_{response.status}"
        return _failed(
            feed, reason, options=options, now=now, wait=wait, kind=kind, response=response
        )
    # Many servers ignore conditional requests; the same bytes need not be parsed again.
    body_hash = hashlib.sha256(response.body).hexdigest()
    if body_hash == feed.body_hash:
        return _unchanged(feed, response, "same_body", options=options, now=now)
    fetched = (response.body, response.headers.get("content-type", ""), response.final_url)
    parsed = await asyncio.wrap_future(pool.submit(fetched))
    if not isinstance(parsed, Done):
        reason = f"parse_{parsed.reason}"
        return _failed(feed, reason, options=options, now=now, kind="hard", response=response)
    return _read(feed, response, parsed.value, body_hash, options=options, now=now)


def _read(
    feed: FeedRow,
    response: Response,
    parsed: Feed,
    body_hash: str,
    *,
    options: PollOptions,
    now: datetime,
) -> PollResult:
    # Hashes and dates are computed here, outside the write transaction of the batch.
    entries = entries_by_url_hash(parsed.entries)
    dates = [entry.published_at for entry in entries.values() if entry.published_at]
    newest = poll_schedule.newest([*dates, feed.last_entry_date], now=now)
    found_new = newest is not None and newest != feed.last_entry_date
    interval = poll_schedule.interval_seconds(
        dates, now=now, previous=feed.interval_seconds, found_new=found_new, options=options
    )
    changes = {
        **_checked(response, now),
        **_alive(feed, response, newest, interval, now=now),
        "etag": validator(response.headers, "etag"),
        "last_modified": validator(response.headers, "last-modified"),
        "body_hash": body_hash,
        "title": parsed.title or feed.title,
    }
    return PollResult(feed, "read", changes, entries, moved_to=_moved_to(feed, response))


def _unchanged(
    feed: FeedRow, response: Response, outcome: str, *, options: PollOptions, now: datetime
) -> PollResult:
    interval = poll_schedule.interval_seconds(
        (), now=now, previous=feed.interval_seconds, found_new=False, options=options
    )
    alive = _alive(feed, response, feed.last_entry_date, interval, now=now)
    return PollResult(feed, outcome, {**_checked(response, now), **alive})


def _failed(
    feed: FeedRow,
    reason: str,
    *,
    options: PollOptions,
    now: datetime,
    wait: int = 0,
    kind: str = "soft",
    response: Response | None = None,
) -> PollResult:
    """Count the failure, a hard one double; after `errors_until_dead` the feed is dead."""
    errors = feed.errors_in_row + (2 if kind == "hard" else 1)
    silent = poll_schedule.days_without_update(feed.last_entry_date, now=now)
    # A Retry-After header can only lengthen the wait.
    wait = max(poll_schedule.failure_wait_seconds(errors, options=options), wait)
    return PollResult(
        feed,
        reason,
        {
            **_checked(response, now),
            "status": "dead" if errors >= options.errors_until_dead else feed.status,
            "errors_in_row": errors,
            "no_updates_days": silent,
            "health_score": poll_schedule.health_score(
                errors_in_row=errors, no_updates_days=silent
            ),
            "next_poll_at": _next_poll_at(feed, wait, now=now),
            "remark": f"{kind} error: {reason}",
        },
    )


def _internal_error(
    feed: FeedRow, cause: str, *, options: PollOptions, now: datetime
) -> PollResult:
    result = _failed(feed, INTERNAL_ERROR, options=options, now=now)
    return replace(result, changes={**result.changes, "remark": f"internal error: {cause}"})


def _checked(response: Response | None, now: datetime) -> dict[str, Any]:
    # Status 0 means that there was no response at all.
    status = response.status if response is not None else 0
    return {"last_crawled": now, "checked_at": now, "last_status": status, "claimed_until": None}


def _alive(
    feed: FeedRow, response: Response, newest: datetime | None, interval: int, *, now: datetime
) -> dict[str, Any]:
    silent = poll_schedule.days_without_update(newest, now=now)
    wait = max(interval, requested_wait_seconds(response.headers, now=now))
    return {
        "status": "active",
        "errors_in_row": 0,
        "last_entry_date": newest,
        "no_updates_days": silent,
        "health_score": poll_schedule.health_score(errors_in_row=0, no_updates_days=silent),
        "interval_seconds": interval,
        "next_poll_at": _next_poll_at(feed, wait, now=now),
        # Removes our remark about the failures; without any, the notes are not touched.
        **({"remark": ""} if feed.errors_in_row else {}),
    }


def _next_poll_at(feed: FeedRow, wait_seconds: int, *, now: datetime) -> datetime:
    return now + timedelta(seconds=poll_schedule.jittered(wait_seconds, key=feed.feed_url_canon))


def _moved_to(feed: FeedRow, response: Response) -> str:
    """Return the new URL if every redirect to it was permanent, else ''."""
    new = response.final_url
    is_new = new != feed.feed_url and len(new) <= MAX_FEED_URL
    return new if is_new and is_permanent_redirect(response.redirect_statuses) else ""


def _record(
    engine: sa.Engine,
    results: Sequence[PollResult],
    counts: _PollCounts,
    *,
    options: PollOptions,
    now: datetime,
) -> None:
    plain = [result for result in results if not result.has_articles]
    others = [result for result in results if result.has_articles]
    with write_transaction(engine) as transaction:
        # Most feeds have nothing new: together they take a few statements, not one each.
        with boundary("batch", f"{len(plain)} feeds") as batch, transaction.savepoint():
            update_feeds(transaction, [(p.feed.feed_url_canon, p.changes) for p in plain])
        if batch.cause:
            others += plain
        else:
            counts.outcomes.update(result.outcome for result in plain)
        # In order of URL, not of arrival: the same responses give the same row_ids.
        for result in sorted(others, key=lambda result: result.feed.feed_url_canon):
            counts.add(*_record_unit(transaction, result, options=options, now=now))


def _record_unit(
    transaction: LedgerTransaction, result: PollResult, *, options: PollOptions, now: datetime
) -> tuple[str, AddedEntries]:
    """Write one feed and return its outcome; if that fails, write only the failure."""
    feed = result.feed
    with boundary("feed", feed.feed_url) as unit, transaction.savepoint():
        return result.outcome, _record_one(transaction, result, options=options, now=now)
    with boundary("feed", feed.feed_url), transaction.savepoint():
        failure = _internal_error(feed, unit.cause, options=options, now=now)
        update_feeds(transaction, [(feed.feed_url_canon, failure.changes)])
    return INTERNAL_ERROR, AddedEntries()


def _record_one(
    transaction: LedgerTransaction, result: PollResult, *, options: PollOptions, now: datetime
) -> AddedEntries:
    canonical = result.feed.feed_url_canon
    changes = dict(result.changes)
    added = AddedEntries()
    if result.entries:
        most, refused = options.max_items_per_feed, options.takedowns
        added = add_entries(
            transaction, canonical, result.entries, max_new=most, now=now, takedowns=refused
        )
    if added.left:
        # The feed lists more articles. Fetch it again soon, and not conditionally.
        soon = now + timedelta(seconds=options.min_interval_seconds)
        changes |= {"etag": "", "last_modified": "", "body_hash": "", "next_poll_at": soon}
    update_feeds(transaction, [(canonical, changes)])
    # Last, because all of the above refers to the feed by its old URL.
    if result.moved_to:
        new = canonical_url(result.moved_to)
        if new != canonical:
            move_feed(
                transaction, result.feed, feed_url=result.moved_to, feed_url_canon=new, now=now
            )
    return added


def _record_metrics(engine: sa.Engine, report: PollReport, *, now: datetime) -> None:
    metrics = {f"feeds_{name}": float(count) for name, count in report.outcomes.items()}
    metrics |= {"new_articles": report.new_articles, "known_articles": report.known_articles}
    metrics[TAKEN_DOWN] = report.taken_down
    with write_transaction(engine) as transaction:
        note_metrics(transaction, "poll", metrics, now=now)
