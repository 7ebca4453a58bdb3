"""Back up a ledger that is in use, restore it elsewhere, or move it to another database.

All three read one consistent moment while others write. What was written is read back and compared
before it counts: a backup before it gets its name, a restored or moved ledger before it is
committed.
"""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
from news_platform.storage.sql.ledger_archive import Archive, LedgerManifest, write_archive
from news_platform.storage.sql.ledger_rows import (
    Tally,
    insert_lines,
    iter_lines,
    read_counters,
    read_tables,
    tally_of,
    write_counters,
)
from news_platform.storage.sql.sqlite_file import check_file, is_new, sqlite_error

# The migration that creates this table inserts its one row; with this value nothing was written.
_FRESH_ROWS = {"ledger_sequence": b'["changed",0]'}


class RowSource(Protocol):
    """Something that holds all rows of a ledger: a backup, or another ledger."""

    @property
    def revision(self) -> str:
        """Return the revision of the schema."""

    @property
    def counters(self) -> Mapping[str, int]:
        """Return the highest number that each table has given to a row."""

    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the columns of every table."""

    def lines(self, table: str) -> Iterable[bytes]:
        """Return the rows of a table."""


@dataclass(frozen=True, slots=True)
class OpenLedger:
    """A ledger as one transaction sees it."""

    connection: sa.Connection
    revision: str
    tables: Mapping[str, sa.Table]

    @classmethod
    def read(cls, connection: sa.Connection) -> "OpenLedger":
        """Read which tables there are; raise InputError for a database that is not a ledger."""
        revision = read_revision(connection)
        if revision is None:
            thing = shown_url(connection.engine.url)
            raise InputError(f"{thing!r} is not a ledger: it has no tables of ours", thing=thing)
        return cls(connection, revision, {table.name: table for table in read_tables(connection)})

    @property
    def counters(self) -> Mapping[str, int]:
        """Return the highest number that each table has given to a row."""
        return read_counters(self.connection)

    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the columns of every table."""
        return {name: tuple(table.columns.keys()) for name, table in self.tables.items()}

    def lines(self, table: str) -> Iterator[bytes]:
        """Yield the rows of a table."""
        return iter_lines(self.connection, self.tables[table])


def backup_ledger(engine: sa.Engine, path: Path, *, world: str, made_at: str) -> LedgerManifest:
    """Write all rows of one moment to a file; writers go on meanwhile."""
    with snapshot(engine, scratch=path.parent) as ledger:
        return write_archive(
            path, ledger.connection, revision=ledger.revision, world=world, made_at=made_at
        )


def restore_ledger(engine: sa.Engine, archive: Archive) -> dict[str, int]:
    """Fill an empty ledger from a backup, then upgrade it; return the rows of each table.

    Raise InputError, and change nothing, if the ledger holds a row already.
    """
    with engine.begin() as connection:
        tallies = _fill(connection, archive)
        upgrade(connection)
    return {name: tally.rows for name, tally in tallies.items()}


def move_ledger(source: sa.Engine, target: sa.Engine) -> dict[str, int]:
    """Copy a ledger into an empty one; return the rows of each table.

    Raise InputError, and leave the target empty, if the source was written to meanwhile.
    """
    with tempfile.TemporaryDirectory() as scratch, target.begin() as connection:
        with snapshot(source, scratch=Path(scratch)) as ledger:
            tallies = _fill(connection, ledger)
        _require_unchanged(source, tallies)
        upgrade(connection)
    return {name: tally.rows for name, tally in tallies.items()}


@contextmanager
def snapshot(engine: sa.Engine, *, scratch: Path) -> Iterator[OpenLedger]:
    """Open one consistent moment of a ledger for reading; `scratch` takes a copy of a SQLite file.

    The copy takes seconds, so that a long read does not keep SQLite from merging its log.
    """
    _require_ledger(engine)
    if (file := sqlite_path(engine.url)) is None:
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with engine.execution_options(**options).begin() as connection:
            yield OpenLedger.read(connection)
        return
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".ledger-") as folder:
        copy = Path(folder) / "ledger.sqlite"
        _copy_file(engine, file, copy)
        check_file(copy, is_whole=True)
        copied = open_engine(sa.URL.create("sqlite", database=str(copy)).render_as_string())
        try:
            with read_transaction(copied) as connection:
                yield OpenLedger.read(connection)
        finally:
            copied.dispose()


def _copy_file(engine: sa.Engine, file: Path, copy: Path) -> None:
    try:
        with closing(engine.raw_connection()) as source, closing(sqlite3.connect(copy)) as target:
            assert isinstance(source.driver_connection, sqlite3.Connection)
            # All pages in one step, hence of one moment, however much is written meanwhile.
            source.driver_connection.backup(target, pages=-1)
    except sqlite3.Error as error:
        raise sqlite_error(error, file) or _not_copied(file, error) from error


def _fill(connection: sa.Connection, source: RowSource) -> dict[str, Tally]:
    """Copy all rows into an empty ledger, and compare what it then holds."""
    found = read_revision(connection)
    if found not in (None, source.revision):
        _require_empty(connection)
        thing = shown_url(connection.engine.url)
        raise InputError(
            f"ledger {thing!r} has revision {found!r}, the rows have {source.revision!r}: "
            "use a new file or database, which gets the right one",
            thing=thing,
        )
    upgrade(connection, source.revision)
    _require_empty(connection)
    tables = {table.name: table for table in read_tables(connection)}
    tallies: dict[str, Tally] = {}
    columns = source.columns()
    if columns.keys() != tables.keys():
        missing = ", ".join(sorted(columns.keys() ^ tables.keys()))
        raise StorageError(f"the rows have other tables than their revision: {missing}")
    for name, table in tables.items():
        connection.execute(sa.delete(table))
        tallies[name] = tally = Tally()
        try:
            lines = tally.counted(source.lines(name))
            insert_lines(connection, table, columns[name], lines)
        except (sa.exc.DataError, sa.exc.IntegrityError) as error:
            cause = " ".join(str(error.orig).split())
            raise InputError(f"a row of {name!r} cannot be stored: {cause}", thing=name) from error
    write_counters(connection, source.counters)
    _require_equal(connection, tables.values(), tallies)
    return tallies


def _require_ledger(engine: sa.Engine) -> None:
    file = sqlite_path(engine.url)
    if file is not None and is_new(file):
        raise InputError(f"there is no ledger at {str(file)!r}: check the root", thing=str(file))


def _require_empty(connection: sa.Connection) -> None:
    for table in read_tables(connection):
        fresh = _FRESH_ROWS.get(table.name)
        if any(line != fresh for line in iter_lines(connection, table)):
            thing = shown_url(connection.engine.url)
            raise InputError(
                f"ledger {thing!r} is not empty: {table.name!r} has rows; "
                "move the file aside, or use another database",
                thing=thing,
            )


def _require_equal(
    connection: sa.Connection, tables: Iterable[sa.Table], tallies: Mapping[str, Tally]
) -> None:
    for table in tables:
        if tally_of(connection, table).digest != tallies[table.name].digest:
            thing = shown_url(connection.engine.url)
            raise StorageError(
                f"ledger {thing!r} returns other rows of {table.name!r} than were written; "
                "nothing was changed",
                thing=thing,
            )


def _require_unchanged(source: sa.Engine, tallies: Mapping[str, Tally]) -> None:
    with read_transaction(source) as connection:
        for table in read_tables(connection):
            if tally_of(connection, table).digest != tallies[table.name].digest:
                raise InputError(
                    f"{table.name!r} of the ledger was written to while it was moved: run "
                    "`news-platform pause`, wait for the runs in progress, and move again; "
                    "nothing was changed",
                    thing=table.name,
                )


def _not_copied(file: Path, error: sqlite3.Error) -> StorageError:
    return StorageError(f"cannot copy ledger {str(file)!r}: {error}", thing=str(file))
