"""The spreadsheets that show the ledger one after the other, and how they may be called.

The spreadsheets under one name of the settings form a chain, which has one writer at a time. When
one is full, the next goes on: a row of an ordered tab is in the newest spreadsheet that it changed
for, feeds and settings are complete in each of them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import METADATA, Moment
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, upsert


@dataclass(frozen=True, slots=True)
class SheetAccess:
    """The account, the spreadsheet by id or title, and an `endpoint` to call instead of Google."""

    service_account: str = field(repr=False)
    spreadsheet_id: str | None = None
    spreadsheet_title: str = ""
    endpoint: str | None = None

    @property
    def name(self) -> str:
        """Return the id or title from the settings."""
        return self.spreadsheet_id or self.spreadsheet_title


@dataclass(frozen=True, slots=True)
class CallTiming:
    """A clock in seconds, a sleep function, and the limits of the calls to Google."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    # Reads per window, and as many writes: the default is Google's quota per user.
    calls: int = 60
    window_seconds: float = 60.0
    timeout_seconds: float = 120.0
    tries: int = 8


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How much goes into one call and one spreadsheet, and when to give up."""

    max_rows: int = 1_000
    # Google recommends at most 2 MB per request.
    max_bytes: int = 2_000_000
    # Characters of an article's text that are shown; the ledger holds all of it.
    clean_text_limit: int = 20_000
    # Google's limit is 10 million cells per spreadsheet.
    max_cells: int = 9_500_000
    # How long a writer that died keeps others out; the lease is extended before every batch.
    lease_seconds: float = 600.0
    # No copy of a batch arrives after 300 others, which take a quarter of an hour at Google's
    # quota. A spreadsheet holds 30,000 characters of metadata, 35 per fence.
    max_fences: int = 300
    # With the backoff between them, the tries take seven and a half minutes.
    tries: int = 12


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
