"""A backup of a ledger: a zip with `manifest.json` and the rows of each table as JSON lines.

The manifest has the number of rows, a digest of them and the SHA-256 of each file, so that a backup
can be verified without a database, and a ledger restored from it compared with it.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import sqlalchemy as sa

from news_platform.errors import NewsPlatformError, StorageError, require_format
from news_platform.storage.sql.ledger_rows import Tally, iter_lines, read_counters, read_tables

MANIFEST = "manifest.json"
_FORMAT = 1
# One row; an article with its text and links takes less than a megabyte.
_LONGEST_LINE = 256 << 20


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a backup holds of one table: its columns in the order of the values, and its rows."""

    columns: tuple[str, ...]
    rows: int
    digest: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class LedgerManifest:
    """What a backup holds: the schema's revision, the moment (ISO 8601), and the tables."""

    revision: str
    world: str
    made_at: str
    tables: dict[str, TableFacts]
    counters: dict[str, int]

    @property
    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(facts.rows for facts in self.tables.values())

    def to_json(self) -> bytes:
        """Return the manifest as a document."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2).encode()


class Archive:
    """An open backup."""

    def __init__(self, file: zipfile.ZipFile, path: Path) -> None:
        self._file = file
        self.path = path
        self.manifest = _read_manifest(file, path)

    @property
    def revision(self) -> str:
        """Return the revision of the schema."""
        return self.manifest.revision

    @property
    def counters(self) -> dict[str, int]:
        """Return the highest number that each table has given to a row."""
        return self.manifest.counters

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of every table."""
        return {name: facts.columns for name, facts in self.manifest.tables.items()}

    def lines(self, table: str) -> Iterator[bytes]:
        """Yield the rows of a table; raise StorageError at the end if they are not those stored."""
        tally, hashed, facts = Tally(), hashlib.sha256(), self.manifest.tables[table]
        try:
            with self._file.open(_member(table)) as rows:
                while line := rows.readline(_LONGEST_LINE):
                    hashed.update(line)
                    tally.add(line := line.removesuffix(b"\n"))
                    yield line
        except (zipfile.BadZipFile, KeyError, EOFError, OSError) as error:
            raise _damaged(self.path, f"{_member(table)}: {error}") from error
        if (tally.rows, tally.digest, hashed.hexdigest()) != (
            facts.rows,
            facts.digest,
            facts.sha256,
        ):
            raise _damaged(self.path, f"{_member(table)} differs from {MANIFEST}")

    def verify(self) -> None:
        """Read everything; raise StorageError if a row is missing or changed."""
        for table in self.manifest.tables:
            for _ in self.lines(table):
                pass


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a backup; raise StorageError if the file is not one, or is damaged."""
    try:
        file = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise _damaged(path, f"it cannot be opened as a zip: {error}") from error
    with file:
        yield Archive(file, path)


def write_archive(
    path: Path, connection: sa.Connection, *, revision: str, world: str, made_at: str
) -> LedgerManifest:
    """Write the rows that this connection sees; the file appears only when it is whole."""
    building = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(building, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            tables = {
                table.name: _write_table(file, connection, table)
                for table in read_tables(connection)
            }
            manifest = LedgerManifest(revision, world, made_at, tables, read_counters(connection))
            file.writestr(MANIFEST, manifest.to_json())
        with open_archive(building) as written:
            written.verify()
        with building.open("rb") as stored:
            os.fsync(stored.fileno())
        building.replace(path)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        building.unlink(missing_ok=True)
    return manifest


def _write_table(file: zipfile.ZipFile, connection: sa.Connection, table: sa.Table) -> TableFacts:
    tally, hashed = Tally(), hashlib.sha256()
    with file.open(_member(table.name), "w", force_zip64=True) as target:
        for line in tally.counted(iter_lines(connection, table)):
            hashed.update(stored := line + b"\n")
            _write(target, stored)
    columns = tuple(column.name for column in table.columns)
    return TableFacts(columns, tally.rows, tally.digest, hashed.hexdigest())


def _write(target: IO[bytes], line: bytes) -> None:
    target.write(line)


def _read_manifest(file: zipfile.ZipFile, path: Path) -> LedgerManifest:
    try:
        document = json.loads(file.read(MANIFEST))
        require_format(document.pop("format", None), _FORMAT, path=str(path))
        tables = {
            name: TableFacts(**{**facts, "columns": tuple(facts["columns"])})
            for name, facts in document.pop("tables").items()
        }
        return LedgerManifest(**document, tables=tables)
    except NewsPlatformError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise _damaged(path, f"cannot read {MANIFEST}: {error}") from error


def _member(table: str) -> str:
    return f"tables/{table}.jsonl"


def _damaged(path: Path, cause: str) -> StorageError:
    message = f"{str(path)!r} is not a whole backup of a ledger: {cause}; use another backup"
    return StorageError(message, thing=str(path))


def _not_written(path: Path, error: OSError) -> StorageError:
    cause = error.strerror or str(error)
    return StorageError(f"cannot write the backup {str(path)!r}: {cause}", thing=str(path))
