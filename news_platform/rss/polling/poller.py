"""Ask every feed that is due and put its new articles into the ledger.

Each feed is asked with the validators of its last answer. What it told is gathered and written in
batches of one change; a batch that is never written is polled again after its lease.
"""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.feeds import Feed, FeedEntry
from news_platform.rss.ledger.entries import AddedEntries, add_entries, entries_by_url_hash
from news_platform.rss.ledger.feed_rows import (
    FeedRow,
    claim_feeds,
    move_feed,
    update_feeds,
)
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.rss.options import PollOptions
from news_platform.rss.polling import poll_schedule
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.redirects import is_moved_for_good
from news_platform.web.retry_after import requested_wait_seconds
from news_platform.web.urls import canonical_url

_NOT_MODIFIED = 304
_GONE = 410
# Answers that say "later" rather than "never".
_SOFT = frozenset((408, 425, 429, 500, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class Polled:
    """What one feed told: `outcome` is one word to count by, `changes` what its row becomes."""

    feed: FeedRow
    outcome: str
    changes: Mapping[str, Any]
    entries: Mapping[str, FeedEntry] = field(default_factory=dict)
    moved_to: str = ""

    @property
    def has_articles(self) -> bool:
        """Tell whether more than the feed's own row is to be written."""
        return bool(self.entries or self.moved_to)


@dataclass(slots=True)
class _Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    new: int = 0
    known: int = 0
    left: int = 0

    def add(self, added: AddedEntries) -> None:
        self.new += added.new
        self.known += added.known
        self.left += added.left


@dataclass(frozen=True, slots=True)
class PollReport:
    """How a poll went; `outcomes` counts feeds by what they told."""

    feeds: int
    new_articles: int
    known_articles: int
    left_for_next_poll: int
    outcomes: Mapping[str, int]


async def poll_feeds(
    engine: sa.Engine,
    *,
    fetcher: Fetcher,
    pool: Pool,
    options: PollOptions,
    now: datetime,
    only_due: bool = True,
) -> PollReport:
    """Poll feeds until none is due; with `only_due` False, every active feed once."""
    run = _PollRun(engine, fetcher, pool, options, now, only_due)
    await asyncio.gather(*(run.lane() for _ in range(options.concurrency)))
    await run.record()
    tally = run.tally
    report = PollReport(
        tally.outcomes.total(), tally.new, tally.known, tally.left, dict(tally.outcomes)
    )
    await asyncio.to_thread(_note, engine, report, now=now)
    return report


class _PollRun:
    """One poll: lanes that each ask one feed after the other, so that a slow feed holds up one."""

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
        self.tally = _Tally()
        self.waiting: deque[FeedRow] = deque()
        self.finished: list[Polled] = []
        self.claiming = asyncio.Lock()
        self.recording = asyncio.Lock()

    async def lane(self) -> None:
        """Poll feeds until none is left; write what was told now and then."""
        while (feed := await self.next_feed()) is not None:
            polled = await self.poll(feed)
            self.finished.append(polled)
            if len(self.finished) >= self.options.batch_size:
                await self.record()

    async def next_feed(self) -> FeedRow | None:
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

    async def poll(self, feed: FeedRow) -> Polled:
        try:
            answer = await self.fetcher.fetch(
                feed.feed_url,
                headers=_validators(feed),
                max_body_bytes=self.options.max_body_bytes,
            )
        except FetchError as error:
            return _failed(feed, error.reason, options=self.options, now=self.now)
        return await _judge(feed, answer, self.pool, options=self.options, now=self.now)

    async def record(self) -> None:
        async with self.recording:
            polled, self.finished = self.finished, []
            if polled:
                await asyncio.to_thread(
                    _record, self.engine, polled, self.tally, options=self.options, now=self.now
                )


def _validators(feed: FeedRow) -> dict[str, str]:
    given = {"If-None-Match": feed.etag, "If-Modified-Since": feed.last_modified}
    return {name: value for name, value in given.items() if value}


async def _judge(
    feed: FeedRow, answer: Response, pool: Pool, *, options: PollOptions, now: datetime
) -> Polled:
    if answer.status == _NOT_MODIFIED:
        return _unchanged(feed, answer, "not_modified", options=options, now=now)
    if answer.status == _GONE:
        return Polled(feed, "gone", {**_stamp(answer, now), "status": "gone", "remark": "410 Gone"})
    if answer.status != 200:
        kind = "soft" if answer.status in _SOFT else "hard"
        wait = requested_wait_seconds(answer.headers, now=now)
        reason = f"status_{answer.status}"
        return _failed(feed, reason, options=options, now=now, wait=wait, kind=kind, answer=answer)
    body_hash = hashlib.sha256(answer.body).hexdigest()
    if body_hash == feed.body_hash:
        return _unchanged(feed, answer, "same_body", options=options, now=now)
    fetched = (answer.body, answer.headers.get("content-type", ""), answer.final_url)
    parsed = await asyncio.wrap_future(pool.submit(fetched))
    if not isinstance(parsed, Done):
        reason = f"parse_{parsed.reason}"
        return _failed(feed, reason, options=options, now=now, kind="hard", answer=answer)
    return _read(feed, answer, parsed.value, body_hash, options=options, now=now)


def _read(
    feed: FeedRow,
    answer: Response,
    parsed: Feed,
    body_hash: str,
    *,
    options: PollOptions,
    now: datetime,
) -> Polled:
    entries = entries_by_url_hash(parsed.entries)
    dates = [entry.published_at for entry in entries.values() if entry.published_at]
    newest = poll_schedule.newest([*dates, feed.last_entry_date], now=now)
    found_new = newest is not None and newest != feed.last_entry_date
    interval = poll_schedule.interval_seconds(
        dates, now=now, previous=feed.interval_seconds, found_new=found_new, options=options
    )
    changes = {
        **_stamp(answer, now),
        **_alive(feed, answer, newest, interval, now=now),
        "etag": answer.headers.get("etag", ""),
        "last_modified": answer.headers.get("last-modified", ""),
        "body_hash": body_hash,
        "title": parsed.title or feed.title,
    }
    return Polled(feed, "read", changes, entries, moved_to=_moved_to(feed, answer))


def _unchanged(
    feed: FeedRow, answer: Response, outcome: str, *, options: PollOptions, now: datetime
) -> Polled:
    interval = poll_schedule.interval_seconds(
        (), now=now, previous=feed.interval_seconds, found_new=False, options=options
    )
    alive = _alive(feed, answer, feed.last_entry_date, interval, now=now)
    return Polled(feed, outcome, {**_stamp(answer, now), **alive})


def _failed(
    feed: FeedRow,
    reason: str,
    *,
    options: PollOptions,
    now: datetime,
    wait: int = 0,
    kind: str = "soft",
    answer: Response | None = None,
) -> Polled:
    """Count the failure; a hard one weighs double, and enough of them make the feed dead."""
    errors = feed.errors_in_row + (2 if kind == "hard" else 1)
    silent = poll_schedule.days_without_update(feed.last_entry_date, now=now)
    wait = max(poll_schedule.failure_wait_seconds(errors, options=options), wait)
    return Polled(
        feed,
        reason,
        {
            **_stamp(answer, now),
            "status": "dead" if errors >= options.errors_until_dead else feed.status,
            "errors_in_row": errors,
            "no_updates_days": silent,
            "health_score": poll_schedule.health_score(
                errors_in_row=errors, no_updates_days=silent
            ),
            "next_poll_at": now
            + timedelta(seconds=poll_schedule.jittered(wait, key=feed.feed_url_canon)),
            "remark": f"{kind} error: {reason}",
        },
    )


def _stamp(answer: Response | None, now: datetime) -> dict[str, Any]:
    status = answer.status if answer is not None else 0
    return {"last_crawled": now, "checked_at": now, "last_status": status, "claimed_until": None}


def _alive(
    feed: FeedRow, answer: Response, newest: datetime | None, interval: int, *, now: datetime
) -> dict[str, Any]:
    silent = poll_schedule.days_without_update(newest, now=now)
    wait = max(interval, requested_wait_seconds(answer.headers, now=now))
    return {
        "status": "active",
        "errors_in_row": 0,
        "last_entry_date": newest,
        "no_updates_days": silent,
        "health_score": poll_schedule.health_score(errors_in_row=0, no_updates_days=silent),
        "interval_seconds": interval,
        "next_poll_at": now
        + timedelta(seconds=poll_schedule.jittered(wait, key=feed.feed_url_canon)),
        **({"remark": ""} if feed.errors_in_row else {}),
    }


def _moved_to(feed: FeedRow, answer: Response) -> str:
    """Return the new address when every hop to it was permanent, else ''."""
    moved = is_moved_for_good(answer) and answer.final_url != feed.feed_url
    return answer.final_url if moved else ""


def _record(
    engine: sa.Engine,
    polled: Sequence[Polled],
    tally: _Tally,
    *,
    options: PollOptions,
    now: datetime,
) -> None:
    tally.outcomes.update(one.outcome for one in polled)
    with write_transaction(engine) as transaction:
        update_feeds(
            transaction, [(p.feed.feed_url_canon, p.changes) for p in polled if not p.has_articles]
        )
        # By address, not by who answered first: the same answers give the same rows.
        for one in sorted(polled, key=lambda one: one.feed.feed_url_canon):
            if one.has_articles:
                tally.add(_record_one(transaction, one, options=options, now=now))


def _record_one(
    transaction: LedgerTransaction, one: Polled, *, options: PollOptions, now: datetime
) -> AddedEntries:
    canonical = one.feed.feed_url_canon
    changes = dict(one.changes)
    added = AddedEntries()
    if one.entries:
        added = add_entries(
            transaction, canonical, one.entries, max_new=options.max_items_per_feed, now=now
        )
    if added.left:
        # More is waiting in this answer: ask without validators, as soon as politeness allows.
        soon = now + timedelta(seconds=options.min_interval_seconds)
        changes |= {"etag": "", "last_modified": "", "body_hash": "", "next_poll_at": soon}
    update_feeds(transaction, [(canonical, changes)])
    if one.moved_to:
        new = canonical_url(one.moved_to)
        if new != canonical:
            move_feed(transaction, one.feed, feed_url=one.moved_to, feed_url_canon=new, now=now)
    return added


def _note(engine: sa.Engine, report: PollReport, *, now: datetime) -> None:
    metrics = {f"feeds_{name}": float(count) for name, count in report.outcomes.items()}
    metrics |= {"new_articles": report.new_articles, "known_articles": report.known_articles}
    with write_transaction(engine) as transaction:
        note_metrics(transaction, "poll", metrics, now=now)
