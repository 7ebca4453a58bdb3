"""The spreadsheets that show the ledger one after the other: when one is full, the next goes on.

A new spreadsheet shows every feed and setting, and those rows of the other tabs that changed after
the last change its predecessor shows. So each change is in one of them, and none is in both.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.newsroom_tables import SHEET_BOOKS
from news_platform.rss.ledger.transactions import write_config, write_transaction
from news_platform.rss.sheets.tabs import TABS
from news_platform.rss.sheets.tracking import CHANGED_AFTER, SHEET_ROWS, first_rows_key
from news_platform.storage.sql.engine import read_transaction

_NUMBER = re.compile(r" \(\d+\)\Z")


@dataclass(frozen=True, slots=True)
class SheetBook:
    """One spreadsheet in the row of those under one id or title of the settings."""

    id: str
    number: int
    url: str


def current_book(engine: sa.Engine, name: str) -> SheetBook | None:
    """Return the spreadsheet that continues a full one; None if none has been continued."""
    books = SHEET_BOOKS.c
    chosen = (
        sa.select(books.book, books.number, books.url)
        .where(books.name == name, books.closed_at.is_(None))
        .order_by(books.number.desc())
        .limit(1)
    )
    with read_transaction(engine) as connection:
        row = connection.execute(chosen).one_or_none()
    return SheetBook(*row) if row else None


def last_number(engine: sa.Engine, name: str) -> int:
    """Return the number of the newest spreadsheet, closed or not; 1 if none is recorded."""
    newest = sa.select(sa.func.max(SHEET_BOOKS.c.number)).where(SHEET_BOOKS.c.name == name)
    with read_transaction(engine) as connection:
        return int(connection.execute(newest).scalar_one() or 1)


def next_title(title: str, number: int) -> str:
    """Return the title of a further spreadsheet: `Desk (2)` after `Desk`, `Desk (3)` after that."""
    return f"{_NUMBER.sub('', title) if number > 2 else title} ({number})"


def write_next_book(
    engine: sa.Engine,
    name: str,
    *,
    old: SheetBook,
    new: SheetBook,
    changed_after: int,
    now: datetime,
) -> None:
    """Close a full spreadsheet and open the next, with the links between them in Config."""
    with write_transaction(engine) as change:
        connection = change.connection
        for book, closed_at in ((old, now), (new, None)):
            row = {"name": name, "number": book.number, "url": book.url, "closed_at": closed_at}
            where = SHEET_BOOKS.c.book == book.id
            known = sa.update(SHEET_BOOKS).where(where).values(**row).returning(SHEET_BOOKS.c.book)
            if connection.execute(known).one_or_none() is None:
                connection.execute(
                    sa.insert(SHEET_BOOKS).values(book=book.id, opened_at=now, **row)
                )
            write_config(change, f"spreadsheet {book.number} of {name}", book.url, now=now)
        _copy_shown(connection, old.id, new.id, changed_after=changed_after)
        first: Mapping[str, int] = {CHANGED_AFTER: changed_after}
        write_config(change, first_rows_key(new.id), json.dumps(first), now=now)


def _copy_shown(connection: sa.Connection, old: str, new: str, *, changed_after: int) -> None:
    """Have the new spreadsheet leave out the later changes that the old one shows, too."""
    rows = SHEET_ROWS.c
    ordered = [tab.name for tab in TABS if tab.order]
    shown = sa.select(sa.literal(new), rows.tab, rows.key, rows.seq).where(
        rows.book == old, rows.seq > changed_after, rows.tab.in_(ordered)
    )
    connection.execute(sa.delete(SHEET_ROWS).where(rows.book == new))
    connection.execute(sa.insert(SHEET_ROWS).from_select(["book", "tab", "key", "seq"], shown))


def close_book(engine: sa.Engine, book: SheetBook, *, now: datetime) -> None:
    """Record that a spreadsheet is gone, so that its predecessor is opened again."""
    with engine.begin() as connection:
        gone = sa.update(SHEET_BOOKS).where(SHEET_BOOKS.c.book == book.id)
        connection.execute(gone.values(closed_at=now))
