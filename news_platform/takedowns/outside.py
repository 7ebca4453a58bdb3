"""Blank covered addresses in the databases and logs of a folder outside the root.

Dagster keeps previews of rows in the metadata of its events, and what a run printed in log files.
A table row or a line that names a covered page is replaced as a whole; the events stay.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from news_platform.errors import StoreUnavailable
from news_platform.storage.sql.sqlite_file import is_database
from news_platform.takedowns.evidence import StoredTraces
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.mentions import host_needles, may_name_pages, names_page
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart

DATASET = "dagster_events"
BLANK = "[taken down]"
_LOGS = (".out", ".err", ".log")
# The files beside a database must not be opened by anybody else.
_DATABASES = (".db", ".sqlite")
# Dagster itself writes to these files.
_WAIT_SECONDS = 30
# Cells that are searched at once.
_CELLS = 2_000


def takedown_part(folder: Path) -> TakedownPart:
    """Return the part of all databases and logs under a folder; each file is a partition."""
    return SimplePart(DATASET, partial(find_files, folder), partial(clean_file, folder))


def find_files(folder: Path, takedowns: Takedowns) -> Mapping[str, int]:
    """Return how many rows or lines of each file name a covered page."""
    naming = _Naming(takedowns)
    found: dict[str, int] = {}
    for path in sorted(folder.rglob("*")) if takedowns else ():
        if path.is_file() and not path.is_symlink() and (count := _count(path, naming)):
            found[str(path.relative_to(folder))] = count
    return found


def verify_files(folder: Path, evidence: StoredTraces) -> None:
    """Look at every database and log under a folder."""
    for name in find_files(folder, evidence.takedowns):
        evidence.find(str(folder / name), "an address in an event or a log")


class _Naming:
    """Tells which texts name a covered page, quickly for many texts at once."""

    def __init__(self, takedowns: Takedowns) -> None:
        self._takedowns, self._needles = takedowns, host_needles(takedowns)

    def filter(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it names a covered page."""
        likely = may_name_pages(texts, self._needles)
        return [
            may and names_page(text, self._takedowns)
            for text, may in zip(texts, likely, strict=True)
        ]

    def blank_lines(self, text: str) -> str:
        """Return a text with every line blank that names a covered page."""
        lines = text.split("\n")
        named = zip(lines, self.filter(lines), strict=True)
        return "\n".join(BLANK if is_named else line for line, is_named in named)


def _count(path: Path, naming: _Naming) -> int:
    if _is_database(path):
        with closing(_opened(path)) as database:
            return sum(1 for _ in _iter_cells(database, naming))
    if path.suffix in _LOGS:
        return sum(naming.filter(path.read_text("utf-8", "replace").splitlines()))
    return 0


def _is_database(path: Path) -> bool:
    return path.suffix in _DATABASES and is_database(path)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)


def _iter_cells(
    database: sqlite3.Connection, naming: _Naming
) -> Iterator[tuple[str, str, int, str]]:
    """Yield the table, column, row and text of every cell that names a covered page."""
    tables = database.execute("select name from sqlite_master where type = 'table'").fetchall()
    for (table,) in tables:
        columns = database.execute(f'pragma table_info("{table}")').fetchall()
        for _, column, kind, *_ in columns:
            if kind.upper().partition("(")[0] in ("TEXT", "VARCHAR", "CLOB", ""):
                for rowid, text in _iter_named(database, table, column, naming):
                    yield table, column, rowid, text


def _iter_named(
    database: sqlite3.Connection, table: str, column: str, naming: _Naming
) -> Iterator[tuple[int, str]]:
    # Shorter texts name no page: a host has a dot between two labels.
    query = f'select rowid, "{column}" from "{table}" where length("{column}") > 3'
    rows = database.execute(query)
    while batch := rows.fetchmany(_CELLS):
        texts = [_searched(str(text)) for _, text in batch]
        for (rowid, text), is_named in zip(batch, naming.filter(texts), strict=True):
            if is_named:
                yield rowid, str(text)


def _searched(text: str) -> str:
    """Return a text without the escapes of JSON inside JSON, as far as addresses have them."""
    return text.replace("\\/", "/").replace("\\n", "\n").replace("\\u2026", "…")


def clean_file(folder: Path, name: str, takedowns: Takedowns) -> RemovedData:
    """Blank what names a covered page in one file."""
    path, naming = folder / name, _Naming(takedowns)
    if not path.is_file() or not takedowns:
        return RemovedData()
    before = path.stat().st_size
    clean = _clean_database if _is_database(path) else _clean_log
    rows = clean(path, naming)
    after = path.stat().st_size
    return RemovedData(rows, max(0, before - after), after)


def _clean_database(path: Path, naming: _Naming) -> int:
    try:
        with closing(_opened(path)) as database:
            database.execute("pragma secure_delete = on")
            cells = list(_iter_cells(database, naming))
            for table, column, rowid, text in cells:
                change = f'update "{table}" set "{column}" = ? where rowid = ?'
                database.execute(change, (_blanked(text, naming), rowid))
            database.execute("vacuum")
            database.execute("pragma wal_checkpoint(truncate)")
    except sqlite3.OperationalError as error:
        message = f"cannot rewrite {str(path)!r}: {error}; apply again when Dagster is idle"
        raise StoreUnavailable(message, thing=str(path)) from error
    return len(cells)


def _blanked(text: str, naming: _Naming) -> str:
    """Return a text, most often JSON, in which every line that names a covered page is blank."""
    try:
        return json.dumps(_without(json.loads(text), naming))
    except ValueError:
        return naming.blank_lines(text)


def _without(document: object, naming: _Naming) -> object:
    if isinstance(document, str):
        # JSON inside JSON, such as the records of a table, loses its fields and not its form.
        return _blanked(document, naming) if document[:1] in "{[" else naming.blank_lines(document)
    if isinstance(document, list):
        return [_without(part, naming) for part in document]
    if isinstance(document, dict):
        pairs = ((naming.blank_lines(key), value) for key, value in document.items())
        return {key: _without(value, naming) for key, value in pairs}
    return document


def _clean_log(path: Path, naming: _Naming) -> int:
    text = path.read_text("utf-8", "replace")
    # In place: whoever follows the file keeps it open.
    path.write_text(naming.blank_lines(text), "utf-8")
    return sum(naming.filter(text.split("\n")))
