"""Back up a ledger that is in use, restore it elsewhere, or move it to another database.

All three take one consistent moment of the ledger as a SQLite file while others go on writing, and
copy rows between such a file and a database. A backup is a zip of that file and a manifest. What
was written is read back and compared before it counts: a backup before it gets its name, a restored
or moved ledger before it is committed.
"""

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.errors import InputError, StorageError
from news_platform.storage.sql.engine import (
    open_engine,
    read_revision,
    read_transaction,
    shown_url,
    sqlite_path,
    upgrade,
)
from news_platform.storage.sql.ledger_archive import LedgerManifest, unpacked, write_archive
from news_platform.storage.sql.sqlite_file import check_file, is_new, sqlite_error

# Rows that are fetched, and inserted, at a time.
_ROWS = 1_000
_VERSION_TABLE = "alembic_version"
# The migration that creates this table inserts its one row; with this value nothing was written.
_FRESH_ROWS = {"ledger_sequence": ("changed", 0)}


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The number of rows of a table, and a digest that does not depend on their order."""

    rows: int
    digest: int


def backup_ledger(engine: sa.Engine, path: Path, *, world: str, made_at: str) -> LedgerManifest:
    """Write all rows of one moment to a file; writers go on meanwhile."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ledger-") as folder:
        file = take_snapshot(engine, Path(folder))
        with _opened(file) as copied, read_transaction(copied) as rows:
            counts = {name: one.rows for name, one in _digests(rows).items()}
            manifest = LedgerManifest(_revision(rows), world, made_at, counts)
        return write_archive(path, file, manifest)


def restore_ledger(engine: sa.Engine, path: Path) -> dict[str, int]:
    """Fill an empty ledger from a backup, then upgrade it; return the rows of each table.

    Raise InputError, and change nothing, if the ledger holds a row already.
    """
    with unpacked(path) as file:
        return _fill(engine, file)


def move_ledger(source: sa.Engine, target: sa.Engine) -> dict[str, int]:
    """Copy a ledger into an empty one; return the rows of each table.

    Raise InputError, and leave the target empty, if the source was written to meanwhile.
    """
    with tempfile.TemporaryDirectory() as folder:
        return _fill(target, take_snapshot(source, Path(folder)), still_equal=source)


def take_snapshot(engine: sa.Engine, folder: Path) -> Path:
    """Copy one consistent moment of a ledger to a SQLite file in a folder and return its path."""
    file, copy = sqlite_path(engine.url), folder / "ledger.sqlite"
    if file is not None:
        _copy_file(engine, file, copy)
        check_file(copy, is_whole=True)
        return copy
    options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with (
        engine.execution_options(**options).begin() as rows,
        _opened(copy) as target,
        target.begin() as connection,
    ):
        _copy_rows(rows, connection)
    return copy


def _copy_file(engine: sa.Engine, file: Path, copy: Path) -> None:
    if is_new(file):
        raise InputError(f"there is no ledger at {str(file)!r}: check the root", thing=str(file))
    try:
        with closing(engine.raw_connection()) as source, closing(sqlite3.connect(copy)) as target:
            assert isinstance(source.driver_connection, sqlite3.Connection)
            # All pages in one step, hence of one moment, however much is written meanwhile.
            source.driver_connection.backup(target, pages=-1)
    except sqlite3.Error as error:
        message = f"cannot copy ledger {str(file)!r}: {error}"
        raise sqlite_error(error, file) or StorageError(message, thing=str(file)) from error


@contextmanager
def _opened(file: Path) -> Iterator[sa.Engine]:
    engine = open_engine(sa.URL.create("sqlite", database=str(file)).render_as_string())
    try:
        yield engine
    finally:
        engine.dispose()  # SQLite then merges its log back into the one file


def _fill(target: sa.Engine, file: Path, *, still_equal: sa.Engine | None = None) -> dict[str, int]:
    """Copy the rows of a SQLite file into an empty ledger.

    `still_equal` is the ledger that the file was taken from, if it must not have changed since.
    """
    with (
        _opened(file) as copied,
        read_transaction(copied) as rows,
        target.begin() as connection,
    ):
        digests = _copy_rows(rows, connection)
        if still_equal is not None:
            _require_unchanged(still_equal, digests)
        upgrade(connection)
    return {name: one.rows for name, one in digests.items()}


def _copy_rows(source: sa.Connection, target: sa.Connection) -> Mapping[str, TableDigest]:
    """Copy all rows into an empty ledger, and compare what it then holds."""
    _prepare(target, _revision(source))
    tables, given = read_tables(target), read_tables(source)
    if tables.keys() != given.keys():
        differ = ", ".join(sorted(tables.keys() ^ given.keys()))
        raise StorageError(f"the rows have other tables than their revision: {differ}")
    for name, table in tables.items():
        target.execute(sa.delete(table))
        try:
            _insert_rows(target, table, source, given[name])
        except (sa.exc.DataError, sa.exc.IntegrityError) as error:
            cause = " ".join(str(error.orig).split())
            raise InputError(f"a row of {name!r} cannot be stored: {cause}", thing=name) from error
    _write_counters(target, read_counters(source))
    digests = _digests(source)
    _require_equal(target, digests)
    return digests


def _insert_rows(
    target: sa.Connection, table: sa.Table, source: sa.Connection, given: sa.Table
) -> None:
    names = given.columns.keys()
    for rows in _iter_chunks(source, given):
        values = [dict(zip(names, map(_portable, row), strict=True)) for row in rows]
        target.execute(sa.insert(table), values)


def _prepare(target: sa.Connection, revision: str) -> None:
    """Give the ledger the tables of a revision, and make sure that it is empty."""
    thing, found = shown_url(target.engine.url), read_revision(target)
    if found is None:
        upgrade(target, revision)
    for name, table in read_tables(target).items():
        rows = (row for part in _iter_chunks(target, table) for row in part)
        if any(tuple(row) != _FRESH_ROWS.get(name) for row in rows):
            raise InputError(
                f"ledger {thing!r} is not empty: {name!r} has rows; "
                "move the file aside, or use another database",
                thing=thing,
            )
    if found not in (None, revision):
        raise InputError(
            f"ledger {thing!r} has revision {found!r}, the rows have {revision!r}: "
            "use a new file or database, which gets the right one",
            thing=thing,
        )


def _revision(connection: sa.Connection) -> str:
    revision = read_revision(connection)
    if revision is None:
        thing = shown_url(connection.engine.url)
        raise InputError(f"{thing!r} is not a ledger: it has no tables of ours", thing=thing)
    return revision


def read_tables(connection: sa.Connection) -> dict[str, sa.Table]:
    """Return the tables of this database with the types of their columns, parents first."""
    inspector = sa.inspect(connection)
    names = [name for name, _ in inspector.get_sorted_table_and_fkc_names() if name]
    # Built from the columns alone: reflecting a whole table warns about indexes on expressions.
    return {
        name: sa.Table(
            name,
            sa.MetaData(),
            *(sa.Column(one["name"], one["type"]) for one in inspector.get_columns(name)),
        )
        for name in names
        if name != _VERSION_TABLE
    }


def _iter_chunks(connection: sa.Connection, table: sa.Table) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield all rows of a table; the database does not send them all at once."""
    options = {"yield_per": _ROWS}
    return connection.execute(sa.select(table), execution_options=options).partitions()


def count_rows(connection: sa.Connection, table: sa.Table) -> int:
    """Read every row of a table and return how many there are."""
    return sum(1 for rows in _iter_chunks(connection, table) for _ in rows)


def _portable(value: object) -> object:
    """Return a value of either database in a form that both store: moments in UTC, plain bytes.

    SQLite stores no time zone; all our moments are UTC.
    """
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return bytes(value) if isinstance(value, memoryview) else value


def _digests(connection: sa.Connection) -> Mapping[str, TableDigest]:
    """Return the digest of every table, the same on SQLite and PostgreSQL for the same rows."""
    return {name: _digest(connection, table) for name, table in read_tables(connection).items()}


def _digest(connection: sa.Connection, table: sa.Table) -> TableDigest:
    count = total = 0
    for rows in _iter_chunks(connection, table):
        for row in rows:
            count += 1
            text = repr([*map(_portable, row)])
            # A sum, not an XOR, in which two equal rows would cancel each other.
            total += int.from_bytes(hashlib.sha256(text.encode()).digest())
    return TableDigest(count, total % (1 << 256))


def _require_equal(target: sa.Connection, digests: Mapping[str, TableDigest]) -> None:
    if name := _differing(target, digests):
        thing = shown_url(target.engine.url)
        raise StorageError(
            f"ledger {thing!r} returns other rows of {name!r} than were written; "
            "nothing was changed",
            thing=thing,
        )


def _require_unchanged(source: sa.Engine, digests: Mapping[str, TableDigest]) -> None:
    with read_transaction(source) as connection:
        name = _differing(connection, digests)
    if name:
        raise InputError(
            f"{name!r} of the ledger was written to while it was moved: run "
            "`news-platform pause`, wait for the runs in progress, and move again; "
            "nothing was changed",
            thing=name,
        )


def _differing(connection: sa.Connection, digests: Mapping[str, TableDigest]) -> str | None:
    """Return the first table that holds other rows than these digests say."""
    found = _digests(connection)
    return next((name for name in digests if found.get(name) != digests[name]), None)


def read_counters(connection: sa.Connection) -> dict[str, int]:
    """Return the highest number that each table has ever given to a row, where it is kept."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence")
        return {str(name): int(number) for name, number in found}
    return {
        table: int(connection.exec_driver_sql(f"SELECT last_value FROM {counter}").scalar_one())
        for table, (_, counter) in _postgres_counters(connection).items()
    }


def _write_counters(connection: sa.Connection, counters: Mapping[str, int]) -> None:
    """Continue the numbers of rows where the counters stand, and never below a stored row."""
    if connection.dialect.name == "sqlite":
        # Rows that were inserted have set the counters of their tables already.
        stored = read_counters(connection)
        connection.exec_driver_sql("DELETE FROM sqlite_sequence")
        for table in {*counters, *stored}:
            row = {"name": table, "seq": max(counters.get(table, 0), stored.get(table, 0))}
            added = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)")
            connection.execute(added, row)
        return
    for table, (column, counter) in _postgres_counters(connection).items():
        newest = connection.exec_driver_sql(f'SELECT max("{column}") FROM "{table}"').scalar()
        if number := max(counters.get(table, 0), newest or 0):
            connection.execute(sa.select(sa.func.setval(counter, number)))


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
