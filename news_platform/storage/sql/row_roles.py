"""Find and remove the rows of SQL tables by the roles of their columns, and leave no trace of them.

A column states its role in its `info`: `sa.Column("feed_url", sa.Text, info={"role": Role.url})`.
With `info={"path": "/robots.txt"}` the value is the beginning of the address.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.dataset import WHOLE, Dataset, Role
from news_platform.errors import StoreUnavailable
from news_platform.storage.chunks import chunked
from news_platform.storage.commit.markers import delete_marker, read_inputs
from news_platform.storage.engines import RemovedRows, Target
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction

CoveredValues = Mapping[sa.Column[Any], Sequence[str]]
"""The values that name what is looked for, by column."""


def role_of(column: sa.Column[Any]) -> Role:
    """Return the role that a column states, by default a fact."""
    role: Role = column.info.get("role", Role.fact)
    return role


def find_values(
    connection: sa.Connection, tables: Iterable[sa.Table], target: Target
) -> CoveredValues:
    """Return the values of all columns with addresses, hashes and domains that are meant."""
    found: dict[sa.Column[Any], list[str]] = {}
    for column in (column for table in tables for column in table.columns):
        if role_of(column) in (Role.url, Role.url_hash, Role.domain):
            values = connection.execute(sa.select(column).distinct()).scalars()
            meant = [value for value in values if is_meant(column, value, target)]
            if meant:
                found[column] = meant
    return found


def is_meant(column: sa.Column[Any], value: object, target: Target) -> bool:
    """Return whether a value of a column is meant; a list is not, because its row stays."""
    path = column.info.get("path", "")
    return isinstance(value, str) and target.covers(role_of(column), f"{value}{path}")


def count_rows(connection: sa.Connection, found: CoveredValues) -> int:
    """Return how many rows have one of the values: of each table by the column that has most."""
    rows: Counter[sa.Table] = Counter()
    for column, values in found.items():
        chosen = sa.select(sa.func.count()).select_from(column.table)
        counted = sum(
            connection.execute(chosen.where(column.in_(part))).scalar_one()
            for part in chunked(values)
        )
        rows[column.table] = max(rows[column.table], counted)
    return rows.total()


def delete_rows(connection: sa.Connection, found: CoveredValues) -> int:
    """Delete the rows that have one of the values; return how many they were."""
    gone = 0
    for column, values in found.items():
        for part in chunked(values):
            gone += connection.execute(sa.delete(column.table).where(column.in_(part))).rowcount
    return gone


def overwrite_deleted(connection: sa.Connection) -> None:
    """Have SQLite overwrite what the transaction deletes; other databases have their own means."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")


def pack(engine: sa.Engine) -> None:
    """Write a SQLite file again without free pages, and empty its log.

    Raise StoreUnavailable while a reader keeps the log from being emptied. PostgreSQL needs its own
    VACUUM, see docs/takedown.md.
    """
    if engine.dialect.name != "sqlite":
        return
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("VACUUM")
        busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        cursor.close()
    finally:
        raw.close()
    if busy:
        raise StoreUnavailable(
            "the ledger's log could not be emptied while others read it: "
            "run `news-platform takedown apply` again"
        )


@dataclass(frozen=True, slots=True)
class SqlEngine:
    """A dataset that is one SQL table; a unit is a value of its column `unit`."""

    store: ObjectStore
    dataset: Dataset
    engine: sa.Engine
    table: sa.Table
    unit: str

    def units(self) -> Mapping[str, str]:
        """Return the fingerprint in the marker of every unit."""
        return read_inputs(self.store, self.dataset.writer)

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the rows of some units, or of all."""
        chosen = sa.select(self.table)
        if units is not None:
            chosen = chosen.where(self.table.c[self.unit].in_(list(units)))
        with read_transaction(self.engine) as connection:
            rows = [dict(row._mapping) for row in connection.execute(chosen)]
        return pl.LazyFrame(rows or {column.name: [] for column in self.table.columns})

    def find(self, target: Target) -> Mapping[str, int]:
        """Return how many rows must go."""
        with read_transaction(self.engine) as connection:
            found = count_rows(connection, find_values(connection, [self.table], target))
        return {WHOLE: found} if found else {}

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Delete the rows, and overwrite what the file of the database holds of them."""
        with self.engine.begin() as connection:
            overwrite_deleted(connection)
            values = find_values(connection, [self.table], target)
            gone = RemovedRows(delete_rows(connection, values))
        pack(self.engine)
        return gone

    def delete(self, units: Collection[str]) -> None:
        """Delete the rows of units, then their markers."""
        with self.engine.begin() as connection:
            for part in chunked(units):
                connection.execute(sa.delete(self.table).where(self.table.c[self.unit].in_(part)))
        for unit in units:
            delete_marker(self.store, self.dataset.writer, unit)
