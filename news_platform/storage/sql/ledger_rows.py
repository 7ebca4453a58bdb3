"""Read and write the rows of a ledger as lines that are the same on SQLite and PostgreSQL.

A line is the JSON array of one row's values. Moments are UTC, bytes are Base64. A `Tally` of the
lines tells whether two ledgers hold the same rows, in whatever order each database returns them.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa

# Rows that are fetched, and inserted, at a time.
_ROWS = 1_000
_MOMENT, _BYTES = "at", "base64"
_VERSION_TABLE = "alembic_version"


class Tally:
    """The number of lines, and a digest of them that does not depend on their order."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, line: bytes) -> None:
        """Count one line."""
        self.rows += 1
        # A sum, not an XOR, in which two equal lines would cancel each other.
        self._sum += int.from_bytes(hashlib.sha256(line).digest())

    @property
    def digest(self) -> str:
        """Return the digest as 64 hexadecimal digits."""
        return f"{self._sum % (1 << 256):064x}"

    def counted(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Pass lines on and count them."""
        for line in lines:
            self.add(line)
            yield line


def read_tables(connection: sa.Connection) -> tuple[sa.Table, ...]:
    """Return the tables of this database with the types of their columns, parents first."""
    inspector = sa.inspect(connection)
    names = [name for name, _ in inspector.get_sorted_table_and_fkc_names() if name]
    # Built from the columns alone: reflecting a whole table warns about indexes on expressions.
    return tuple(
        sa.Table(
            name,
            sa.MetaData(),
            *(sa.Column(one["name"], one["type"]) for one in inspector.get_columns(name)),
        )
        for name in names
        if name != _VERSION_TABLE
    )


def iter_lines(connection: sa.Connection, table: sa.Table) -> Iterator[bytes]:
    """Yield all rows of a table; the database does not send them all at once."""
    rows = connection.execute(sa.select(table), execution_options={"yield_per": _ROWS})
    for row in rows:
        values = [_portable(value) for value in row]
        yield json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def tally_of(connection: sa.Connection, table: sa.Table) -> Tally:
    """Return the tally of all rows of a table."""
    tally = Tally()
    for _ in tally.counted(iter_lines(connection, table)):
        pass
    return tally


def insert_lines(
    connection: sa.Connection, table: sa.Table, columns: Iterable[str], lines: Iterable[bytes]
) -> None:
    """Insert rows whose values are in the order of `columns`."""
    names, is_sqlite = tuple(columns), connection.dialect.name == "sqlite"
    remaining = iter(lines)
    while part := list(islice(remaining, _ROWS)):
        rows = [
            dict(zip(names, (_native(value, is_sqlite) for value in json.loads(line)), strict=True))
            for line in part
        ]
        connection.execute(sa.insert(table), rows)


def read_counters(connection: sa.Connection) -> dict[str, int]:
    """Return the highest number that each table has ever given to a row, where it is kept."""
    if connection.dialect.name == "sqlite":
        if not _has_sqlite_counters(connection):
            return {}
        found = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence")
        return {str(name): int(number) for name, number in found}
    return {
        table: int(connection.exec_driver_sql(f"SELECT last_value FROM {counter}").scalar_one())
        for table, (_, counter) in _postgres_counters(connection).items()
    }


def write_counters(connection: sa.Connection, counters: Mapping[str, int]) -> None:
    """Continue the numbers of rows where the counters stand, and never below a stored row."""
    if connection.dialect.name == "sqlite":
        if not _has_sqlite_counters(connection):
            return
        # Rows that were inserted have set the counters of their tables already.
        for table, number in counters.items():
            row = {"name": table, "seq": number}
            raised = sa.text("UPDATE sqlite_sequence SET seq = max(seq, :seq) WHERE name = :name")
            if connection.execute(raised, row).rowcount == 0:
                added = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)")
                connection.execute(added, row)
        return
    for table, (column, counter) in _postgres_counters(connection).items():
        newest = connection.exec_driver_sql(f'SELECT max("{column}") FROM "{table}"').scalar()
        if number := max(counters.get(table, 0), newest or 0):
            connection.execute(sa.select(sa.func.setval(counter, number)))


def _has_sqlite_counters(connection: sa.Connection) -> bool:
    found = connection.exec_driver_sql(
        "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'"
    ).first()
    return found is not None


def _postgres_counters(connection: sa.Connection) -> dict[str, tuple[str, str]]:
    """Return the numbered column and the sequence of each table that has one."""
    inspector = sa.inspect(connection)
    found: dict[str, tuple[str, str]] = {}
    for table in inspector.get_table_names():
        for column in inspector.get_pk_constraint(table)["constrained_columns"]:
            name = sa.func.pg_get_serial_sequence(f'"{table}"', column)
            if counter := connection.execute(sa.select(name)).scalar():
                found[table] = (column, str(counter))
    return found


def _portable(value: Any) -> Any:
    if isinstance(value, datetime):
        # SQLite stores no time zone; all our moments are UTC.
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return {_MOMENT: moment.isoformat()}
    if isinstance(value, bytes | memoryview):
        return {_BYTES: base64.b64encode(bytes(value)).decode("ascii")}
    return value


def _native(value: Any, is_sqlite: bool) -> Any:
    if not isinstance(value, dict):
        return value
    if _BYTES in value:
        return base64.b64decode(value[_BYTES])
    moment = datetime.fromisoformat(value[_MOMENT])
    return moment.replace(tzinfo=None) if is_sqlite else moment
