"""Export the ledger as Parquet, a file per day, or its articles as a delta.

So SQL over the datasets also sees why nothing comes: `feeds` has the last state of each day,
`feed_polls` and `pending_articles` have the rows of a day, written again when they change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.feeds import (
    ARTICLES,
    FEED_POLLS,
    FEEDS,
    PENDING_ARTICLES,
    articles_path,
    day_path,
)
from news_platform.rss.exports.selection import IS_ARTICLE
from news_platform.rss.ledger import tables
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import (
    found_between,
    newest_seq,
    read_config,
    write_config,
    write_transaction,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.build_filters import cleaned_later, require_same_takedowns
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.takedowns.requests import mark_late

# The Config key of the `changed_seq` up to which the daily files are complete.
_CURSOR = "articles_export_seq"
# The name and the one partition of the ledger in takedowns.
LEDGER, WHOLE = "ledger", "all"
# What a collector of feeds and articles writes, as takedowns name it.
WHOLE_LEDGER = {LEDGER: (WHOLE,)}
_COLUMNS = tuple(RAW.c[name] for name in ARTICLES.schema)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The days whose files were written, the rows in them, and the full texts deleted before."""

    days: tuple[str, ...]
    rows: int
    full_texts_expired: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """Articles changed after a cursor, in the order of their changes, and the next cursor."""

    rows: tuple[dict[str, Any], ...]
    cursor: int


def export_days(engine: sa.Engine, store: ObjectStore, *, now: datetime) -> ExportReport:
    """Write the file of every day that has an article changed since the last export."""
    # Read before the days: a change in between is then exported twice, not lost.
    newest = newest_seq(engine)
    days = changed_days(engine)
    takedowns = Takedowns.read(store, now=now, use="removal")
    rows = sum(write_day(engine, store, day, takedowns=takedowns) for day in days)
    require_same_takedowns(store, takedowns, now=now)
    # A worker that began before a request has stored what it forbids: the ledger is cleaned again.
    if takedowns and _has_taken_down(engine, takedowns, days):
        mark_late(store, LEDGER, [WHOLE])
    if days:
        with write_transaction(engine) as transaction:
            write_config(transaction, _CURSOR, str(newest), now=now)
    return ExportReport(tuple(day.isoformat() for day in days), rows)


def changed_days(engine: sa.Engine) -> list[date]:
    """Return the days that have an article changed since the last export, by `stored_at`."""
    with read_transaction(engine) as connection:
        return _changed_days(connection, RAW.c.stored_at, _CURSOR)


def _changed_days(
    connection: sa.Connection, moment: sa.Column[datetime], cursor: str
) -> list[date]:
    """Return the days of this column whose rows changed after the one that a Config key names."""
    since = sa.select(tables.CONFIG.c.value).where(tables.CONFIG.c.key == cursor)
    seq = int(connection.execute(since).scalar_one_or_none() or 0)
    chosen = sa.select(moment).where(moment.is_not(None), RAW.c.changed_seq > seq)
    moments = connection.execute(chosen.execution_options(yield_per=10_000)).scalars()
    return sorted({found.astimezone(UTC).date() for found in moments})


def delta_since(engine: sa.Engine, cursor: int, *, limit: int = 1_000) -> Delta:
    """Return about `limit` articles changed after the cursor, and the cursor for the next call.

    The rows of one transaction stay together, so there may be more than `limit`.
    """
    # Duplicates are included with their status, so that a copy can drop them too.
    changed = sa.select(*_COLUMNS, RAW.c.status, RAW.c.changed_seq).where(
        RAW.c.stored_at.is_not(None), RAW.c.changed_seq > cursor
    )
    ordered = changed.order_by(RAW.c.changed_seq, RAW.c.row_id)
    with read_transaction(engine) as connection:
        rows = [dict(row._mapping) for row in connection.execute(ordered.limit(limit))]
        if len(rows) == limit:
            # The rest of the last transaction, so that no cursor points into it.
            last = rows[-1]
            is_rest = (RAW.c.changed_seq == last["changed_seq"], RAW.c.row_id > last["row_id"])
            rows += [dict(row._mapping) for row in connection.execute(ordered.where(*is_rest))]
    return Delta(tuple(rows), rows[-1]["changed_seq"] if rows else cursor)


def write_day(
    engine: sa.Engine, store: ObjectStore, day: date, *, takedowns: Takedowns = NO_TAKEDOWNS
) -> int:
    """Replace the file of a day, or delete it when the day has no articles left.

    Articles that are taken down are left out.
    """
    start, end = _bounds(day)
    of_day = (*IS_ARTICLE, RAW.c.stored_at >= start, RAW.c.stored_at < end)
    chosen = sa.select(*_COLUMNS).where(*of_day).order_by(RAW.c.row_id)
    with read_transaction(engine) as connection:
        found = connection.execute(chosen)
        rows = [row for row in found if not _is_taken_down(row._mapping, takedowns)]
    if not rows:
        store.delete([articles_path(day.isoformat())])
    return _write(rows, store, ARTICLES, day)


def _has_taken_down(engine: sa.Engine, takedowns: Takedowns, days: Iterable[date]) -> bool:
    changed = set(days)
    chosen = sa.select(RAW.c.article_url, RAW.c.article_url_canon, RAW.c.stored_at).where(
        RAW.c.stored_at.is_not(None)
    )
    with read_transaction(engine) as connection:
        return any(
            row.stored_at.astimezone(UTC).date() in changed
            and _is_taken_down(row._mapping, takedowns)
            for row in connection.execute(chosen.execution_options(yield_per=1_000))
        )


def _is_taken_down(row: Any, takedowns: Takedowns) -> bool:
    return takedowns.covers(row["article_url_canon"]) or takedowns.covers_url(row["article_url"])


# The Config key of the change up to which the daily files are complete, and of the day after which
# polls may be missing.
_FEEDS_CURSOR = "feed_days_seq"
_FEEDS_DAY = "feed_days_day"


@dataclass(frozen=True, slots=True)
class FeedDaysReport:
    """How many rows were written of each dataset."""

    feeds: int = 0
    polls: int = 0
    articles: int = 0


def write_feed_days(engine: sa.Engine, store: ObjectStore, *, now: datetime) -> FeedDaysReport:
    """Write today's feeds, and the polls and articles of all days that changed since the last."""
    today = now.astimezone(UTC).date()
    # Read before the rows: a change in between is then written twice, not lost.
    newest, written = newest_seq(engine), read_config(engine, _FEEDS_DAY)
    first = date.fromisoformat(written) if written else today
    polled = [first + timedelta(days=n) for n in range((today - first).days + 1)]
    with read_transaction(engine) as connection:
        changed = _changed_days(connection, RAW.c.found_at, _FEEDS_CURSOR)
    places = {FEEDS.name: [today], FEED_POLLS.name: polled, PENDING_ARTICLES.name: changed}
    marked = {name: [day.isoformat() for day in days] for name, days in places.items()}
    with cleaned_later(store, marked), read_transaction(engine) as connection:

        def write(dataset: Dataset, day: date, source: sa.Table, *where: Any) -> int:
            chosen = sa.select(*(source.c[name] for name in dataset.schema)).where(*where)
            # The same rows give the same bytes.
            found = connection.execute(chosen.order_by(*source.primary_key))
            return _write(found.all(), store, dataset, day)

        polls, at = tables.FEED_POLLS, tables.FEED_POLLS.c.polled_at
        report = FeedDaysReport(
            feeds=write(FEEDS, today, tables.FEEDS),
            polls=sum(
                write(FEED_POLLS, day, polls, at >= start, at < end)
                for day in polled
                for start, end in [_bounds(day)]
            ),
            articles=sum(
                write(PENDING_ARTICLES, day, RAW, *found_between(connection, *_bounds(day)))
                for day in changed
            ),
        )
    with write_transaction(engine) as change:
        write_config(change, _FEEDS_CURSOR, str(newest), now=now)
        write_config(change, _FEEDS_DAY, today.isoformat(), now=now)
    return report


def _bounds(day: date) -> tuple[datetime, datetime]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _write(rows: Sequence[sa.Row[Any]], store: ObjectStore, dataset: Dataset, day: date) -> int:
    """Write rows with the columns of a dataset as the file of a day, if there are any."""
    if rows:
        columns = zip(dataset.schema, zip(*rows, strict=True), strict=True)
        # The ledger's lists are tuples.
        lists = {
            name: [list(it) if isinstance(it, tuple) else it for it in v] for name, v in columns
        }
        frame = pl.DataFrame(lists, schema=dict(dataset.schema))
        write_table(store, day_path(dataset, day.isoformat()), frame, dataset)
    return len(rows)
