"""Back up a ledger that is in use, restore it elsewhere, move it to another database, or check it.

The first three take one consistent moment of the ledger as a SQLite file while others go on
writing. A backup is a zip of that file and a manifest with its SHA-256, so that it can be verified
without a database. What was written is read back and compared before it counts: a backup before it
gets its name, a restored or moved ledger before it is committed.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.errors import InputError, NewsPlatformError, StorageError, require_format
from news_platform.storage.sql.engine import (
    checked_url,
    known_revisions,
    migrate,
    open_engine,
    read_revision,
    read_transaction,
    shown_url,
    sqlite_path,
    upgrade,
)
from news_platform.storage.sql.sqlite_file import (
    check_file,
    connect_readonly,
    count_readable_rows,
    is_new,
    iter_page_problems,
    sqlite_error,
)

# What damaged zip files raise: bits decide on the method, the password and the place of a member.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, RuntimeError)
_MANIFEST, _LEDGER, _FORMAT = "manifest.json", "ledger.sqlite", 1
_ROWS = 1_000  # fetched, and inserted, at a time
_VERSION_TABLE = "alembic_version"
# It has one row in a new ledger, too.
_SEQUENCE_TABLE = "ledger_sequence"


@dataclass(frozen=True, slots=True)
class LedgerManifest:
    """What a backup holds: the schema's revision, its moment (ISO 8601), and rows by table."""

    revision: str
    world: str
    made_at: str
    tables: Mapping[str, int]
    sha256: str

    @property
    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(self.tables.values())


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """What a check found: the revision, the readable rows of each table, and what is wrong.

    `is_outdated` means that the next process that opens the ledger upgrades it.
    """

    ledger: str
    revision: str | None = None
    is_outdated: bool = False
    rows: Mapping[str, int] | None = None
    problems: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Return whether there is no ledger yet."""
        return self.revision is None and not self.problems


TableDigests = Mapping[str, tuple[int, int]]
"""The number of rows of each table, and a digest that does not depend on their order."""


def backup_ledger(engine: sa.Engine, path: Path, *, world: str, made_at: str) -> LedgerManifest:
    """Write all rows of one moment to a file; writers go on meanwhile."""
    try:
        with _scratch(path.parent) as folder:
            file, building = _take_snapshot(engine, folder), folder / path.name
            with _opened(file) as copied, read_transaction(copied) as rows:
                revision, digests = _revision(rows), _digests(rows)
            counts = {name: count for name, (count, _) in digests.items()}
            manifest = LedgerManifest(revision, world, made_at, counts, _sha256(file))
            document = json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=2)
            with zipfile.ZipFile(building, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.write(file, _LEDGER)
                archive.writestr(_MANIFEST, document)
            with unpacked(building, folder=path.parent), building.open("rb") as stored:
                os.fsync(stored.fileno())
            building.replace(path)
    except OSError as error:
        cause = error.strerror or str(error)
        message = f"cannot write the backup {str(path)!r}: {cause}"
        raise StorageError(message, thing=str(path)) from error
    return manifest


def restore_ledger(engine: sa.Engine, path: Path) -> dict[str, int]:
    """Fill an empty ledger from a backup; return the rows of each table.

    Raise InputError, and change nothing, if the ledger holds a row already.
    """
    with unpacked(path) as file:
        return _fill(engine, file)


def move_ledger(source: sa.Engine, target: sa.Engine) -> dict[str, int]:
    """Copy a ledger into an empty one; return the rows of each table.

    Raise InputError, and leave the target empty, if the source was written to meanwhile.
    """
    with _scratch() as folder:
        return _fill(target, _take_snapshot(source, folder), still_equal=source)


def read_manifest(path: Path) -> LedgerManifest:
    """Return what a backup says of itself; raise StorageError if the file is not a backup."""
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read(_MANIFEST))
        require_format(document.pop("format", None), _FORMAT, path=str(path))
        return LedgerManifest(**document)
    except NewsPlatformError:
        raise
    except (zipfile.BadZipFile, OSError) as error:
        raise _not_whole(path, f"it cannot be opened as a zip: {error}") from error
    except (*_DAMAGED, TypeError, AttributeError) as error:
        raise _not_whole(path, f"cannot read {_MANIFEST}: {error}") from error


@contextmanager
def unpacked(path: Path, *, folder: Path | None = None) -> Iterator[Path]:
    """Unpack the ledger of a backup for a while; raise StorageError if it is not as it was."""
    manifest = read_manifest(path)
    with _scratch(folder) as held:
        ledger = held / _LEDGER
        try:
            with (
                zipfile.ZipFile(path) as archive,
                archive.open(_LEDGER) as source,
                ledger.open("wb") as target,
            ):
                shutil.copyfileobj(source, target, 1 << 20)
        except _DAMAGED as error:
            raise _not_whole(path, f"{_LEDGER}: {error}") from error
        if _sha256(ledger) != manifest.sha256:
            raise _not_whole(path, f"{_LEDGER} differs from {_MANIFEST}")
        yield ledger


@contextmanager
def _scratch(parent: Path | None = None) -> Iterator[Path]:
    """Yield a folder for copies of the ledger, which goes even if this process is killed."""
    with tempfile.TemporaryDirectory(dir=parent, prefix=".ledger-") as folder:
        # It waits until the pipe is closed, by whatever ends this process.
        words = ("sh", "-c", 'cat; rm -rf -- "$1"', "sh", folder)
        cleaner = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        try:
            yield Path(folder)
        finally:
            cleaner.communicate()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _not_whole(path: Path, cause: str) -> StorageError:
    message = f"{str(path)!r} is not a whole backup of a ledger: {cause}; use another backup"
    return StorageError(message, thing=str(path))


def _take_snapshot(engine: sa.Engine, folder: Path) -> Path:
    """Copy one consistent moment of a ledger to a SQLite file in a folder and return its path."""
    file, copy = sqlite_path(engine.url), folder / _LEDGER
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
    with _opened(file) as copied:
        with read_transaction(copied) as rows:
            _revision(rows)
            taken = _digests(rows)
        # Only the copy: the ledger that it was taken from stays as it is.
        migrate(copied)
        with read_transaction(copied) as rows, target.begin() as connection:
            counts = _copy_rows(rows, connection)
            if still_equal is not None:
                _require_unchanged(still_equal, taken)
    return counts


def _copy_rows(source: sa.Connection, target: sa.Connection) -> dict[str, int]:
    """Copy all rows into an empty ledger, and compare what it then holds."""
    upgrade(target)
    _require_empty(target)
    tables, given = read_tables(target), read_tables(source)
    if tables.keys() != given.keys() or _revision(source) != _revision(target):
        thing = shown_url(source.engine.url)
        cause = "its tables are not those of this version of news-platform"
        raise StorageError(f"cannot copy ledger {thing!r}: {cause}; use its version", thing=thing)
    for name, table in tables.items():
        target.execute(sa.delete(table))
        try:
            for rows in _iter_chunks(source, given[name]):
                values = [dict(zip(row._fields, map(_portable, row), strict=True)) for row in rows]
                target.execute(sa.insert(table), values)
        except (sa.exc.DataError, sa.exc.IntegrityError) as error:
            cause = " ".join(str(error.orig).split())
            raise InputError(f"a row of {name!r} cannot be stored: {cause}", thing=name) from error
    _write_counters(target, read_counters(source))
    digests = _digests(source)
    if differing := _differing(target, digests):
        thing = shown_url(target.engine.url)
        cause = f"returns other rows of {differing!r} than were written"
        raise StorageError(f"ledger {thing!r} {cause}; nothing was changed", thing=thing)
    return {name: count for name, (count, _) in digests.items()}


def _require_empty(target: sa.Connection) -> None:
    thing = shown_url(target.engine.url)
    for name, table in read_tables(target).items():
        if name != _SEQUENCE_TABLE and target.execute(sa.select(table).limit(1)).first():
            raise InputError(
                f"ledger {thing!r} is not empty: {name!r} has rows; "
                "move the file aside, or use another database",
                thing=thing,
            )


def _require_unchanged(source: sa.Engine, digests: TableDigests) -> None:
    with read_transaction(source) as connection:
        name = _differing(connection, digests)
    if name is not None:
        raise InputError(
            f"{name!r} of the ledger was written to while it was moved: run "
            "`news-platform pause`, wait for the runs in progress, and move again; "
            "nothing was changed",
            thing=name,
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


def _portable(value: object) -> object:
    """Return a value of either database in a form that both store: moments in UTC, plain bytes.

    SQLite stores no time zone; all our moments are UTC.
    """
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return bytes(value) if isinstance(value, memoryview) else value


def _digests(connection: sa.Connection) -> TableDigests:
    """Return the digest of every table, the same on SQLite and PostgreSQL for the same rows."""
    return {name: _digest(connection, table) for name, table in read_tables(connection).items()}


def _digest(connection: sa.Connection, table: sa.Table) -> tuple[int, int]:
    count = total = 0
    for rows in _iter_chunks(connection, table):
        for row in rows:
            count += 1
            text = repr([*map(_portable, row)])
            # A sum, not an XOR, in which two equal rows would cancel each other.
            total += int.from_bytes(hashlib.sha256(text.encode()).digest())
    return count, total % (1 << 256)


def _differing(connection: sa.Connection, digests: TableDigests) -> str | None:
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
    """Continue the numbers of rows where the counters stand."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DELETE FROM sqlite_sequence")
        added = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)")
        for table, number in counters.items():
            connection.execute(added, {"name": table, "seq": number})
        return
    for table, (column, counter) in _postgres_counters(connection).items():
        # SQLite keeps no counter of a table whose numbers it may use again.
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


def check_ledger(url: str) -> LedgerCheck:
    """Read a whole ledger without writing to it: its pages, its schema, and every row.

    Raise StorageError only if it cannot be reached at all.
    """
    file = sqlite_path(checked_url(url))
    if file is not None:
        return _check_sqlite(file)
    engine = open_engine(url)
    try:
        with read_transaction(engine) as connection:
            revision = read_revision(connection)
            rows = {name: count for name, (count, _) in _digests(connection).items()}
    finally:
        engine.dispose()
    return _checked_schema(shown_url(engine.url), revision, rows, ())


def _check_sqlite(file: Path) -> LedgerCheck:
    problems: list[str] = []
    try:
        check_file(file)
    except StorageError as error:
        problems.append(str(error).partition(": run ")[0])
    if is_new(file):
        return LedgerCheck(str(file), problems=tuple(problems))
    try:
        with closing(connect_readonly(file)) as connection:
            problems += iter_page_problems(connection)
            rows = count_readable_rows(connection, problems)
            version = f"SELECT version_num FROM {_VERSION_TABLE}"
            has_version = rows.pop(_VERSION_TABLE, 0) > 0
            revision = connection.execute(version).fetchone()[0] if has_version else None
    except sqlite3.Error as error:
        return LedgerCheck(str(file), problems=(*problems, f"cannot be read: {error}"))
    return _checked_schema(str(file), revision, rows, tuple(problems))


def _checked_schema(
    ledger: str, revision: str | None, rows: Mapping[str, int], problems: tuple[str, ...]
) -> LedgerCheck:
    known = known_revisions()
    if revision is not None and revision not in known:
        problems += (
            f"revision {revision!r} is of another version of news-platform: use that version",
        )
    if rows and revision is None:
        problems += ("it has tables, but no revision: it is not a ledger of ours",)
    return LedgerCheck(ledger, revision, revision in known[1:], rows, problems)
