"""The spreadsheets that show the ledger one after the other, and the lease of their one writer.

The spreadsheets under one name of the settings form a chain. When one is full, the next goes on:
a row of an ordered tab is in the newest spreadsheet that it changed for, feeds and settings are
complete in each of them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import METADATA, Moment
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, upsert

# `book` is the id of the spreadsheet, `number` its place in the chain. `tabs` has the sheet id and
# header of each tab after the last sync, as JSON. Of ordered tabs, all changes up to `shown_up_to`
# are in this spreadsheet or an earlier one. `closed_at` is set when the spreadsheet is gone.
SHEET_BOOKS = sa.Table(
    "sheet_books",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("tabs", sa.Text, nullable=False, server_default="{}"),
    sa.Column("shown_up_to", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("closed_at", Moment),
)
SHEET_WRITERS = sa.Table(
    "sheet_writers",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until", Moment, nullable=False),
)
# The lease of the one writer of a chain, by the name of the chain.
LEASES = LeaseTable(
    key=SHEET_WRITERS.c.name, time=SHEET_WRITERS.c.until, owner=SHEET_WRITERS.c.owner
)

KnownTabs = Mapping[str, tuple[int, tuple[str, ...]]]
"""The sheet id and the header of each tab after the last sync, by the tab's name."""

_NUMBER = re.compile(r" \(\d+\)\Z")


@dataclass(frozen=True, slots=True)
class SheetBook:
    """One spreadsheet of the chain under one id or title of the settings."""

    id: str
    name: str
    number: int
    url: str
    shown_up_to: int = 0


def read_chain(connection: sa.Connection, name: str) -> list[SheetBook]:
    """Return the spreadsheets under a name that are not gone, newest first."""
    books = SHEET_BOOKS.c
    chosen = (
        sa.select(books.book, books.name, books.number, books.url, books.shown_up_to)
        .where(books.name == name, books.closed_at.is_(None))
        .order_by(books.number.desc())
    )
    return [SheetBook(*row) for row in connection.execute(chosen)]


def read_books(engine: sa.Engine, name: str) -> list[SheetBook]:
    """Return the chain under a name, newest first; the first one is written."""
    with read_transaction(engine) as connection:
        return read_chain(connection, name)


def next_number(engine: sa.Engine, name: str) -> int:
    """Return the number of the next spreadsheet; the numbers of closed ones are not used again."""
    newest = sa.select(sa.func.max(SHEET_BOOKS.c.number)).where(SHEET_BOOKS.c.name == name)
    with read_transaction(engine) as connection:
        return int(connection.execute(newest).scalar_one() or 0) + 1


def next_title(title: str, number: int) -> str:
    """Return the title of a further spreadsheet: `Desk (2)` after `Desk`, `Desk (3)` after that."""
    return f"{_NUMBER.sub('', title) if number > 2 else title} ({number})"


def add_book(connection: sa.Connection, book: SheetBook) -> None:
    """Record a spreadsheet as the newest of its chain; one that was known keeps its tabs."""
    chain = {"name": book.name, "number": book.number, "closed_at": None}
    new = {"book": book.id, "url": book.url, "shown_up_to": book.shown_up_to, **chain}
    added = upsert(connection, SHEET_BOOKS).values(new)
    connection.execute(added.on_conflict_do_update(index_elements=["book"], set_=chain))


def close_book(engine: sa.Engine, book: SheetBook, *, now: datetime) -> None:
    """Record that a spreadsheet is gone: its rows are sent again to the one that is written."""
    gone = sa.update(SHEET_BOOKS).where(SHEET_BOOKS.c.book == book.id)
    with engine.begin() as connection:
        connection.execute(gone.values(closed_at=now))


def read_known_tabs(engine: sa.Engine, spreadsheet_id: str) -> KnownTabs:
    """Return the tabs of a spreadsheet as they were after the last sync."""
    chosen = sa.select(SHEET_BOOKS.c.tabs).where(SHEET_BOOKS.c.book == spreadsheet_id)
    with read_transaction(engine) as connection:
        tabs = json.loads(connection.execute(chosen).scalar_one_or_none() or "{}")
    return {name: (sheet_id, tuple(header)) for name, (sheet_id, header) in tabs.items()}


def write_known_tabs(engine: sa.Engine, spreadsheet_id: str, tabs: KnownTabs) -> None:
    """Record the tabs of a spreadsheet."""
    changed = sa.update(SHEET_BOOKS).where(SHEET_BOOKS.c.book == spreadsheet_id)
    with engine.begin() as connection:
        connection.execute(changed.values(tabs=json.dumps(tabs, ensure_ascii=False)))
