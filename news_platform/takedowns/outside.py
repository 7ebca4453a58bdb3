"""Blank covered addresses in the databases and logs of a folder outside the root.

Dagster keeps previews of rows in the metadata of its events, and what a run printed in log files.
A table row or a line that names a covered page is replaced as a whole; the events stay.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from news_platform.errors import StoreUnavailable
from news_platform.takedowns.evidence import StoredTraces
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart

DATASET = "dagster_events"
BLANK = "[taken down]"
_SQLITE = b"SQLite format 3\0"
_LOGS = (".out", ".err", ".log")
# Dagster itself writes to these files.
_WAIT_SECONDS = 30


def takedown_part(folder: Path) -> TakedownPart:
    """Return the part of all databases and logs under a folder; each file is a partition."""
    return SimplePart(DATASET, partial(find_files, folder), partial(clean_file, folder))


def find_files(folder: Path, takedowns: Takedowns) -> Mapping[str, int]:
    """Return how many rows or lines of each file name a covered page."""
    needles = _needles(takedowns)
    found: dict[str, int] = {}
    for path in sorted(folder.rglob("*")) if needles else ():
        if path.is_file() and not path.is_symlink() and (count := _count(path, needles)):
            found[str(path.relative_to(folder))] = count
    return found


def _needles(takedowns: Takedowns) -> list[str]:
    return [needle.decode() for needle in StoredTraces.of(takedowns).needles]


def _count(path: Path, needles: list[str]) -> int:
    if _is_database(path):
        with closing(_opened(path)) as database:
            return sum(1 for _ in _iter_cells(database, needles))
    if path.suffix in _LOGS:
        lines = path.read_text("utf-8", "replace").splitlines()
        return sum(any(needle in line for needle in needles) for line in lines)
    return 0


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)


def _iter_cells(
    database: sqlite3.Connection, needles: list[str]
) -> Iterator[tuple[str, str, int, str]]:
    """Yield the table, column, row and text of every cell that names a covered page."""
    tables = database.execute("select name from sqlite_master where type = 'table'").fetchall()
    for (table,) in tables:
        columns = database.execute(f'pragma table_info("{table}")').fetchall()
        for _, column, kind, *_ in columns:
            if kind.upper() not in ("TEXT", "VARCHAR", "CLOB", ""):
                continue
            test = " or ".join(f'instr("{column}", ?)' for _ in needles)
            query = f'select rowid, "{column}" from "{table}" where {test}'
            for rowid, text in database.execute(query, needles).fetchall():
                yield table, column, rowid, str(text)


def clean_file(folder: Path, name: str, takedowns: Takedowns) -> RemovedData:
    """Blank what names a covered page in one file."""
    path, needles = folder / name, _needles(takedowns)
    if not path.is_file() or not needles:
        return RemovedData()
    before = path.stat().st_size
    clean = _clean_database if _is_database(path) else _clean_log
    rows = clean(path, needles)
    after = path.stat().st_size
    return RemovedData(rows, max(0, before - after), after)


def _clean_database(path: Path, needles: list[str]) -> int:
    try:
        with closing(_opened(path)) as database:
            database.execute("pragma secure_delete = on")
            cells = list(_iter_cells(database, needles))
            for table, column, rowid, text in cells:
                change = f'update "{table}" set "{column}" = ? where rowid = ?'
                database.execute(change, (blanked(text, needles), rowid))
            database.execute("vacuum")
            database.execute("pragma wal_checkpoint(truncate)")
    except sqlite3.OperationalError as error:
        message = f"cannot rewrite {str(path)!r}: {error}; apply again when Dagster is idle"
        raise StoreUnavailable(message, thing=str(path)) from error
    return len(cells)


def blanked(text: str, needles: list[str]) -> str:
    """Return a text, most often JSON, in which every line that names a covered page is blank."""
    try:
        return json.dumps(_without(json.loads(text), needles))
    except ValueError:
        return _blank_lines(text, needles)


def _without(document: object, needles: list[str]) -> object:
    if isinstance(document, str):
        return _blank_lines(document, needles)
    if isinstance(document, list):
        return [_without(part, needles) for part in document]
    if isinstance(document, dict):
        pairs = ((_blank_lines(key, needles), value) for key, value in document.items())
        return {key: _without(value, needles) for key, value in pairs}
    return document


def _blank_lines(text: str, needles: list[str]) -> str:
    if not any(needle in text for needle in needles):
        return text
    lines = text.split("\n")
    return "\n".join(BLANK if any(it in line for it in needles) else line for line in lines)


def _clean_log(path: Path, needles: list[str]) -> int:
    text = path.read_text("utf-8", "replace")
    # In place: whoever follows the file keeps it open.
    path.write_text(_blank_lines(text, needles), "utf-8")
    return sum(any(needle in line for needle in needles) for line in text.split("\n"))
