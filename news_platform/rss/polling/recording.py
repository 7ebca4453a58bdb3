"""The results of polled feeds in, rows of the ledger out: feeds, articles, and the polls."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.isolation.boundary import INTERNAL_ERROR, boundary
from news_platform.rss.ledger.entries import AddedEntries, add_entries
from news_platform.rss.ledger.feed_rows import move_feed, update_feeds
from news_platform.rss.ledger.tables import FEED_POLLS
from news_platform.rss.ledger.transactions import LedgerTransaction, write_transaction
from news_platform.rss.polling import poll_schedule
from news_platform.rss.polling.poll_results import PollResult, internal_error, next_poll_at
from news_platform.rss.polling.poll_schedule import PollOptions, feed_options

# How long a feed that turned over counts as one that may miss items.
_MAY_MISS_FOR = timedelta(days=7)


@dataclass(slots=True)
class PollCounts:
    """The sums of one poll."""

    outcomes: Counter[str] = field(default_factory=Counter)
    new: int = 0
    known: int = 0
    updated: int = 0
    skipped: int = 0
    turned_over: int = 0
    taken_down: int = 0

    def add(self, outcome: str, added: AddedEntries) -> None:
        """Count one feed."""
        self.outcomes[outcome] += 1
        self.new += added.new
        self.known += added.known
        self.updated += added.updated
        self.skipped += added.skipped
        self.turned_over += added.turned_over
        self.taken_down += added.taken_down


def record(
    engine: sa.Engine,
    results: Sequence[PollResult],
    counts: PollCounts,
    *,
    options: PollOptions,
    now: datetime,
) -> None:
    """Write the results of some feeds in one transaction; one that fails leaves the others."""
    plain = [result for result in results if not result.has_articles]
    others = [result for result in results if result.has_articles]
    polls: list[dict[str, Any]] = []
    with write_transaction(engine) as transaction:
        # Most feeds have nothing new: together they take a few statements, not one each.
        with boundary("batch", f"{len(plain)} feeds") as batch, transaction.savepoint():
            update_feeds(transaction, [(p.feed.feed_url_canon, p.changes) for p in plain])
        if batch.cause:
            others += plain
        else:
            counts.outcomes.update(result.outcome for result in plain)
            polls += [_poll_row(result, result.outcome, AddedEntries(), now) for result in plain]
        # In order of URL, not of arrival: the same responses give the same row_ids.
        for result in sorted(others, key=lambda result: result.feed.feed_url_canon):
            outcome, added = _record_unit(transaction, result, options=options, now=now)
            counts.add(outcome, added)
            polls.append(_poll_row(result, outcome, added, now))
        _write_polls(transaction, polls)


def _write_polls(transaction: LedgerTransaction, polls: Sequence[dict[str, Any]]) -> None:
    """Add polls to the history, together if possible; one that cannot be written is left out."""
    if not polls:
        return
    with boundary("batch", f"{len(polls)} polls") as batch, transaction.savepoint():
        transaction.connection.execute(sa.insert(FEED_POLLS), polls)
    for poll in polls if batch.cause else ():
        with boundary("feed", poll["feed_url"]), transaction.savepoint():
            transaction.connection.execute(sa.insert(FEED_POLLS), poll)


def delete_old_polls(engine: sa.Engine, *, before: datetime) -> None:
    """Delete the history of polls before a moment."""
    with engine.begin() as connection:
        connection.execute(sa.delete(FEED_POLLS).where(FEED_POLLS.c.polled_at < before))


def _poll_row(
    result: PollResult, outcome: str, added: AddedEntries, now: datetime
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
        "notes": result.changes.get("remark", ""),
    }


def _record_unit(
    transaction: LedgerTransaction, result: PollResult, *, options: PollOptions, now: datetime
) -> tuple[str, AddedEntries]:
    """Write one feed and return its outcome; if that fails, write only the failure."""
    feed = result.feed
    with boundary("feed", feed.feed_url) as unit, transaction.savepoint():
        return result.outcome, _record_one(transaction, result, options=options, now=now)
    with boundary("feed", feed.feed_url), transaction.savepoint():
        failure = internal_error(feed, unit.cause, options=options, now=now)
        update_feeds(transaction, [(feed.feed_url_canon, failure.changes)])
    return INTERNAL_ERROR, AddedEntries()


def _record_one(
    transaction: LedgerTransaction, result: PollResult, *, options: PollOptions, now: datetime
) -> AddedEntries:
    canonical = result.feed.feed_url_canon
    changes = dict(result.changes)
    added = AddedEntries()
    if result.entries:
        own = feed_options(options, result.feed.own_settings)
        added = add_entries(
            transaction,
            canonical,
            result.entries,
            max_new=own.max_items_per_feed,
            now=now,
            takedowns=options.takedowns,
        )
        changes |= _consequences(result, added, options=own, now=now)
    update_feeds(transaction, [(canonical, changes)])
    # Last, because all of the above refers to the feed by its old URL.
    new = result.moved_to_canon
    if new and new != canonical:
        move_feed(transaction, result.feed, feed_url=result.moved_to, feed_url_canon=new, now=now)
    return added


def _consequences(
    result: PollResult, added: AddedEntries, *, options: PollOptions, now: datetime
) -> dict[str, Any]:
    """Return the columns that follow from what the ledger knew of the entries."""
    feed = result.feed
    skipped = added.skipped + result.left_out
    turned_over_at = now if added.turned_over or result.is_cut else feed.turned_over_at
    may_miss = turned_over_at is not None and now - turned_over_at < _MAY_MISS_FOR
    changes: dict[str, Any] = {
        "skipped_items": skipped,
        "may_miss_items": may_miss,
        "turned_over_at": turned_over_at,
        "health_score": poll_schedule.health_score(
            errors_in_row=0,
            no_updates_days=result.changes["no_updates_days"],
            may_miss_items=may_miss,
            skipped_items=skipped,
        ),
    }
    if may_miss:
        dates = [entry.published_at for entry in result.entries.values() if entry.published_at]
        wait = poll_schedule.turnover_interval_seconds(
            dates,
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
    remark = _remark(result, skipped=skipped, may_miss=may_miss, turned_over_at=turned_over_at)
    if remark or feed.may_miss_items or feed.skipped_items or feed.errors_in_row:
        changes["remark"] = remark
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
    return "; ".join(parts)
