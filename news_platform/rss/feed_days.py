"""Write the ledger's feeds, polls and articles of every status as Parquet, a file per day.

So SQL over the datasets sees why nothing comes. `feeds` has the last state of each day;
`feed_polls` and `pending_articles` have the rows of a day, written again when they change.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.feeds import FEED_POLLS, FEEDS, PENDING_ARTICLES, day_path
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
from news_platform.takedowns.build_filters import cleaned_later

# The Config key of the change up to which the daily files are complete, and of the day after which
# polls may be missing.
_CURSOR = "feed_days_seq"
_DAY = "feed_days_day"


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
    since, written = int(read_config(engine, _CURSOR) or 0), read_config(engine, _DAY)
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
        write_config(change, _CURSOR, str(newest), now=now)
        write_config(change, _DAY, today.isoformat(), now=now)
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
