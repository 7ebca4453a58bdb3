"""Check a ledger thoroughly and without writing to it: its pages, its schema, and every row."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from news_platform.errors import StorageError
from news_platform.storage.sql.engine import (
    checked_url,
    known_revisions,
    open_engine,
    read_revision,
    read_transaction,
    shown_url,
    sqlite_path,
)
from news_platform.storage.sql.ledger_copy import count_rows, read_tables
from news_platform.storage.sql.sqlite_file import check_file, connect_readonly, is_new

_MOST_PROBLEMS = 20


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


def check_ledger(url: str) -> LedgerCheck:
    """Read a whole ledger; raise StorageError only if it cannot be reached at all."""
    file = sqlite_path(checked_url(url))
    if file is not None:
        return _check_sqlite(file)
    engine = open_engine(url)
    try:
        with read_transaction(engine) as connection:
            revision = read_revision(connection)
            tables = read_tables(connection)
            rows = {name: count_rows(connection, table) for name, table in tables.items()}
    finally:
        engine.dispose()
    return _judged(shown_url(engine.url), revision, rows, ())


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
            problems += _page_problems(connection)
            revision = _value(connection, "SELECT version_num FROM alembic_version")
            rows = dict(_readable_rows(connection, problems))
    except sqlite3.Error as error:
        return LedgerCheck(str(file), problems=(*problems, f"cannot be read: {error}"))
    return _judged(str(file), None if revision is None else str(revision), rows, tuple(problems))


def _judged(
    ledger: str, revision: str | None, rows: Mapping[str, int], problems: tuple[str, ...]
) -> LedgerCheck:
    known = known_revisions()
    if revision is not None and revision not in known:
        problems += (
            f"revision {revision!r} is of another version of news-platform: use that version",
        )
    if rows and revision is None:
        problems += ("it has tables, but no revision: it is not a ledger of ours",)
    is_outdated = revision in known[1:]
    return LedgerCheck(ledger, revision, is_outdated, rows, problems)


def _page_problems(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
            if text != "ok":
                yield " ".join(str(text).split())
    except sqlite3.DatabaseError as error:
        yield f"the check ended early: {error}"


def _readable_rows(
    connection: sqlite3.Connection, problems: list[str]
) -> Iterator[tuple[str, int]]:
    """Yield how many rows of each table can be read, with a problem where reading ends early."""
    connection.text_factory = bytes  # text that is not UTF-8 would end the reading
    names = [
        name.decode()
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite_%' AND name <> 'alembic_version' ORDER BY name"
        )
    ]
    for name in names:
        count = 0
        try:
            for _ in connection.execute(f'SELECT * FROM "{name}"'):
                count += 1
        except sqlite3.DatabaseError as error:
            problems.append(f"{name!r} can be read up to row {count}: {error}")
        yield name, count


def _value(connection: sqlite3.Connection, query: str) -> object:
    try:
        row = connection.execute(query).fetchone()
    except sqlite3.DatabaseError:  # no such table, or damaged
        return None
    return row[0] if row else None
