"""Export the ledger as Parquet, a file per day, or its articles as a delta.

So SQL over the datasets also sees why nothing comes: `feeds` has the last state of each day,
`feed_polls` and `pending_articles` have the rows of a day, written again when they change.
"""

from collections.abc import Iterable
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
    since = int(read_config(engine, _CURSOR) or 0)
    chosen = sa.select(RAW.c.stored_at).where(
        RAW.c.stored_at.is_not(None), RAW.c.changed_seq > since
    )
    with read_transaction(engine) as connection:
        moments = connection.execute(chosen).scalars()
        return sorted({moment.astimezone(UTC).date() for moment in moments})


def delta_since(engine: sa.Engine, cursor: int, *, limit: int = 1_000) -> Delta:
    """Return about `limit` articles changed after the cursor, and the cursor for the next call.

    The rows of one transaction stay together, so there may be more than `limit`.
    """
    # Duplicates are included with their status, so that a copy can drop them too.
    chosen = (
        sa.select(*_COLUMNS, RAW.c.status, RAW.c.changed_seq)
        .where(RAW.c.stored_at.is_not(None), RAW.c.changed_seq > cursor)
        .order_by(RAW.c.changed_seq, RAW.c.row_id)
        .limit(limit)
    )
    with read_transaction(engine) as connection:
        rows = [dict(row._mapping) for row in connection.execute(chosen)]
        rows += _rest_of_change(connection, rows, limit=limit)
    return Delta(tuple(rows), rows[-1]["changed_seq"] if rows else cursor)


def _rest_of_change(
    connection: sa.Connection, rows: list[dict[str, Any]], *, limit: int
) -> list[dict[str, Any]]:
    """Return the remaining rows of the last transaction, so that no cursor points into it."""
    if len(rows) < limit:
        return []
    last = rows[-1]
    chosen = sa.select(*_COLUMNS, RAW.c.status, RAW.c.changed_seq).where(
        RAW.c.stored_at.is_not(None),
        RAW.c.changed_seq == last["changed_seq"],
        RAW.c.row_id > last["row_id"],
    )
    return [dict(row._mapping) for row in connection.execute(chosen.order_by(RAW.c.row_id))]


def write_day(
    engine: sa.Engine, store: ObjectStore, day: date, *, takedowns: Takedowns = NO_TAKEDOWNS
) -> int:
    """Replace the file of a day, or delete it when the day has no articles left.

    Articles that are taken down are left out.
    """
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    chosen = (
        sa.select(*_COLUMNS)
        .where(*IS_ARTICLE, RAW.c.stored_at >= start, RAW.c.stored_at < start + timedelta(days=1))
        .order_by(RAW.c.row_id)  # the same rows give the same bytes
    )
    with read_transaction(engine) as connection:
        rows = (row._mapping for row in connection.execute(chosen))
        frame = article_frame(row for row in rows if not _is_taken_down(row, takedowns))
    path = articles_path(day.isoformat())
    if frame.is_empty():
        store.delete([path])
    else:
        write_table(store, path, frame, ARTICLES)
    return frame.height


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


def article_frame(rows: Iterable[Any]) -> pl.DataFrame:
    """Return ledger rows as a DataFrame with the columns of the articles dataset."""
    lists = {name for name, dtype in ARTICLES.schema.items() if isinstance(dtype, pl.List)}
    columns: dict[str, list[Any]] = {name: [] for name in ARTICLES.schema}
    for row in rows:
        for name, values in columns.items():
            values.append(list(row[name]) if name in lists else row[name])
    return pl.DataFrame(columns, schema=dict(ARTICLES.schema))


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
    newest = newest_seq(engine)
    since, written = int(read_config(engine, _FEEDS_CURSOR) or 0), read_config(engine, _FEEDS_DAY)
    polled = _days_since(date.fromisoformat(written) if written else today, today)
    with read_transaction(engine) as connection:
        changed = _changed_days(connection, since=since)
    places = {FEEDS.name: [today], FEED_POLLS.name: polled, PENDING_ARTICLES.name: changed}
    marked = {name: [day.isoformat() for day in days] for name, days in places.items()}
    with cleaned_later(store, marked), read_transaction(engine) as connection:
        report = FeedDaysReport(
            feeds=_write(connection, store, FEEDS, today, _select(tables.FEEDS, FEEDS)),
            polls=sum(_write_polls(connection, store, day) for day in polled),
            articles=sum(_write_articles(connection, store, day) for day in changed),
        )
    with write_transaction(engine) as change:
        write_config(change, _FEEDS_CURSOR, str(newest), now=now)
        write_config(change, _FEEDS_DAY, today.isoformat(), now=now)
    return report


def _days_since(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _changed_days(connection: sa.Connection, *, since: int) -> list[date]:
    chosen = sa.select(RAW.c.found_at).where(RAW.c.changed_seq > since)
    moments = connection.execute(chosen.execution_options(yield_per=10_000)).scalars()
    return sorted({moment.astimezone(UTC).date() for moment in moments})


def _write_polls(connection: sa.Connection, store: ObjectStore, day: date) -> int:
    polls, (start, end) = tables.FEED_POLLS, _bounds(day)
    of_day = (polls.c.polled_at >= start, polls.c.polled_at < end)
    chosen = _select(polls, FEED_POLLS).where(*of_day).order_by(polls.c.id)
    return _write(connection, store, FEED_POLLS, day, chosen)


def _write_articles(connection: sa.Connection, store: ObjectStore, day: date) -> int:
    chosen = _select(RAW, PENDING_ARTICLES).where(*found_between(connection, *_bounds(day)))
    return _write(connection, store, PENDING_ARTICLES, day, chosen.order_by(RAW.c.row_id))


def _bounds(day: date) -> tuple[datetime, datetime]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _select(source: sa.Table, table: Dataset) -> sa.Select[Any]:
    chosen = sa.select(*(source.c[name] for name in table.schema))
    # The same rows give the same bytes.
    return chosen.order_by(source.c.feed_url_canon) if source is tables.FEEDS else chosen


def _write(
    connection: sa.Connection, store: ObjectStore, table: Dataset, day: date, chosen: sa.Select[Any]
) -> int:
    frame = _frame(connection.execute(chosen), table)
    if frame.is_empty():
        return 0
    write_table(store, day_path(table, day.isoformat()), frame, table)
    return frame.height


def _frame(rows: Iterable[Any], table: Dataset) -> pl.DataFrame:
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [() for _ in table.schema]
    return pl.DataFrame(
        {name: list(values) for name, values in zip(table.schema, columns, strict=True)},
        schema=dict(table.schema),
    )
