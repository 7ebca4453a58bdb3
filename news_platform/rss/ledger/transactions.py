"""Open numbered write transactions on the ledger, write Diagnostics and Config, find rows by time.

Every write transaction starts by taking the next number of one sequence, whose row stays locked
until the commit. Writes are therefore serial on PostgreSQL as they are on SQLite, and the numbers
become visible in order: a reader that copies "everything above N" cannot miss a change.

Articles get their row_id as they are found, so bisection takes some twenty lookups where a search
by `found_at`, which has no index of its own, would read the whole table. Processes that poll at the
same time may interleave by the seconds that their transactions take.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import sqlalchemy as sa

from news_platform.errors import StorageError
from news_platform.rss.ledger.tables import CONFIG, DIAGNOSTICS, RAW, SEQUENCE
from news_platform.storage.sql.engine import read_transaction

T = TypeVar("T")
# PostgreSQL's codes for a deadlock and for transactions that cannot be put in an order.
_DEADLOCKS = ("40P01", "40001")
_MAX_TRIES = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LedgerTransaction:
    """An open write transaction and the `changed_seq` of the rows that it writes."""

    connection: sa.Connection
    seq: int

    def savepoint(self) -> sa.NestedTransaction:
        """Return a context manager whose changes are undone if its block fails; the others stay."""
        return self.connection.begin_nested()


@contextmanager
def unnumbered_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that changes rows of several articles, but nothing that readers copy.

    It takes its turn among the numbered ones: two transactions that lock the same rows in another
    order would wait for each other.
    """
    with engine.begin() as connection:
        turn = sa.select(SEQUENCE.c.value).where(SEQUENCE.c.name == "changed").with_for_update()
        connection.execute(turn)
        yield connection


def retry_deadlocks(work: Callable[[], T]) -> T:
    """Run a whole transaction; run it again if PostgreSQL ended it in favour of another one."""
    for tries in range(1, _MAX_TRIES):
        try:
            return work()
        except StorageError as error:
            if getattr(error.__cause__, "pgcode", None) not in _DEADLOCKS:
                raise
            _log.warning("a transaction is tried again after try %s: %s", tries, error)
    return work()


@contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[LedgerTransaction]:
    """Open a write transaction; it commits at the end of the block, or rolls back on an error."""
    with engine.begin() as connection:
        # The first statement, so that its row lock orders all writers on PostgreSQL.
        bumped = (
            sa.update(SEQUENCE)
            .where(SEQUENCE.c.name == "changed")
            .values(value=SEQUENCE.c.value + 1)
            .returning(SEQUENCE.c.value)
        )
        yield LedgerTransaction(connection, connection.execute(bumped).scalar_one())


def newest_seq(engine: sa.Engine) -> int:
    """Return the number of the last committed write transaction."""
    with read_transaction(engine) as connection:
        return int(connection.execute(sa.select(SEQUENCE.c.value)).scalar_one())


def note_metrics(
    transaction: LedgerTransaction,
    stage: str,
    metrics: Mapping[str, float],
    *,
    now: datetime,
    notes: str = "",
) -> None:
    """Append one row to Diagnostics per metric; metrics of value 0 are left out."""
    rows = [
        {
            "run_at": now,
            "stage": stage,
            "metric": metric,
            "value": float(value),
            "notes": notes,
            "changed_seq": transaction.seq,
        }
        for metric, value in metrics.items()
        if value  # readers take a missing metric as 0
    ]
    if rows:
        transaction.connection.execute(sa.insert(DIAGNOSTICS), rows)


def read_config(engine: sa.Engine, key: str) -> str | None:
    """Return the value of a Config key, or None."""
    with read_transaction(engine) as connection:
        chosen = sa.select(CONFIG.c.value).where(CONFIG.c.key == key)
        return connection.execute(chosen).scalar_one_or_none()


def write_config(transaction: LedgerTransaction, key: str, value: str, *, now: datetime) -> None:
    """Set a Config key; an equal value leaves the row and its `changed_seq` unchanged."""
    old = transaction.connection.execute(
        sa.select(CONFIG.c.value).where(CONFIG.c.key == key)
    ).scalar_one_or_none()
    if old == value:
        return
    row = {"value": value, "updated_at": now, "changed_seq": transaction.seq}
    if old is None:
        transaction.connection.execute(sa.insert(CONFIG).values(key=key, **row))
    else:
        transaction.connection.execute(sa.update(CONFIG).where(CONFIG.c.key == key).values(**row))


# More than the transactions of any two pollers overlap.
_SLACK = timedelta(hours=1)


def first_row_since(connection: sa.Connection, moment: datetime) -> int | None:
    """Return the first row_id found at or after a moment; None if all rows are older."""
    bounds = sa.select(sa.func.min(RAW.c.row_id), sa.func.max(RAW.c.row_id))
    low, high = connection.execute(bounds).one()
    if low is None or found_at(connection, high) < moment:
        return None
    while low < high:
        middle = (low + high) // 2
        if found_at(connection, middle) >= moment:
            high = middle
        else:
            low = middle + 1
    return int(low)


def found_at(connection: sa.Connection, row_id: int) -> datetime:
    """Return when this row, or the next one if it does not exist, was found."""
    chosen = sa.select(RAW.c.found_at).where(RAW.c.row_id >= row_id)
    moment: datetime = connection.execute(chosen.order_by(RAW.c.row_id).limit(1)).scalar_one()
    return moment


def found_between(
    connection: sa.Connection, start: datetime, end: datetime
) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of the rows found from `start` until `end`."""
    first = first_row_since(connection, start - _SLACK)
    last = first_row_since(connection, end + _SLACK)
    conditions = [RAW.c.found_at >= start, RAW.c.found_at < end]
    conditions.append(sa.false() if first is None else RAW.c.row_id >= first)
    if last is not None:
        conditions.append(RAW.c.row_id < last)
    return tuple(conditions)
