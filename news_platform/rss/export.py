"""Export articles from the ledger: one Parquet file per day, or a delta."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.feeds import ARTICLES, articles_path
from news_platform.rss.exports.selection import IS_ARTICLE
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import (
    newest_seq,
    read_config,
    write_config,
    write_transaction,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.build_filters import require_same_takedowns
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
