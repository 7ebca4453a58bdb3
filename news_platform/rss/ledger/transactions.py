"""The ledger's transactions: one numbered writer at a time, any number of readers.

Every change begins by taking the next number of one sequence, whose row is locked until the commit.
So changes are serial on PostgreSQL as they are on SQLite, and numbers appear in the order of their
commits: nobody who copies "everything above N" can miss one.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import CONFIG, DIAGNOSTICS, SEQUENCE
from news_platform.storage.sql.engine import read_transaction


@dataclass(frozen=True, slots=True)
class LedgerTransaction:
    """An open write transaction and its number."""

    connection: sa.Connection
    seq: int


@contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[LedgerTransaction]:
    """Open a write transaction; it commits at the end and rolls back when the block raises."""
    with engine.begin() as connection:
        bumped = (
            sa.update(SEQUENCE)
            .where(SEQUENCE.c.name == "changed")
            .values(value=SEQUENCE.c.value + 1)
            .returning(SEQUENCE.c.value)
        )
        yield LedgerTransaction(connection, connection.execute(bumped).scalar_one())


def newest_seq(engine: sa.Engine) -> int:
    """Return the number of the last committed change."""
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
    """Append one Diagnostics row a metric; zeros are left out."""
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
        if value
    ]
    if rows:
        transaction.connection.execute(sa.insert(DIAGNOSTICS), rows)


def read_config(engine: sa.Engine, key: str) -> str | None:
    """Return the value kept under a key of Config, or None."""
    with read_transaction(engine) as connection:
        chosen = sa.select(CONFIG.c.value).where(CONFIG.c.key == key)
        return connection.execute(chosen).scalar_one_or_none()


def write_config(transaction: LedgerTransaction, key: str, value: str, *, now: datetime) -> None:
    """Keep a value under a key of Config; an equal value changes nothing."""
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
