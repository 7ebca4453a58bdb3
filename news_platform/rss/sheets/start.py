"""Which rows a new book begins with: all of them, or the newest that fill half of it.

A book that replaces a full one must have room for what is to come. What it leaves out stays in the
older book as it is; Config tells with which rows a book begins.
"""

import json
from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import CONFIG, DIAGNOSTICS, INDEX_COLUMNS, RAW, RAW_COLUMNS
from news_platform.rss.ledger.transactions import write_config, write_transaction
from news_platform.rss.sheets.tabs import TABS
from news_platform.rss.sheets.tracking import SHEET_ROWS
from news_platform.storage.sql.engine import read_transaction

Start = Mapping[str, int]
"""The first number that each tab shows, by the tab's name; a tab that is not named shows all."""

_CELLS_AN_ARTICLE = len(RAW_COLUMNS) + len(INDEX_COLUMNS)


def begin_book(engine: sa.Engine, book: str, *, max_cells: int, now: datetime) -> None:
    """Decide with which rows a book begins, unless it has begun."""
    with read_transaction(engine) as connection:
        shows = sa.select(SHEET_ROWS.c.key).where(SHEET_ROWS.c.book == book).limit(1)
        if read_start(connection, book) or connection.execute(shows).first():
            return
        start = _start(connection, max_cells=max_cells // 2)
    if start:
        with write_transaction(engine) as change:
            write_config(change, _config_key(book), json.dumps(start), now=now)


def read_start(connection: sa.Connection, book: str) -> Start:
    """Return with which rows a book begins; empty: with all."""
    chosen = sa.select(CONFIG.c.value).where(CONFIG.c.key == _config_key(book))
    start: Start = json.loads(connection.execute(chosen).scalar_one_or_none() or "{}")
    return start


def count_left_out(engine: sa.Engine, book: str) -> int:
    """Return how many rows of the ledger are older than what the book begins with."""
    with read_transaction(engine) as connection:
        start = read_start(connection, book)
        return sum(
            _count(connection, tab.table, tab.table.c[tab.order] < start[tab.name])
            for tab in TABS
            if tab.order and tab.name in start
        )


def _start(connection: sa.Connection, *, max_cells: int) -> Start:
    cells = sum(len(tab.columns) * _count(connection, tab.table) for tab in TABS)
    if cells <= max_cells:
        return {}
    whole = sum(len(t.columns) * _count(connection, t.table) for t in TABS if t.order is None)
    articles = max((max_cells - whole) // _CELLS_AN_ARTICLE, 1)
    newest = sa.select(RAW.c.row_id, RAW.c.found_at).order_by(RAW.c.row_id.desc())
    oldest = connection.execute(newest.offset(articles - 1).limit(1)).first()
    if oldest is None:
        return {}
    before = DIAGNOSTICS.c.run_at < oldest.found_at
    last = connection.execute(sa.select(sa.func.max(DIAGNOSTICS.c.id)).where(before)).scalar_one()
    return {
        "Raw": oldest.row_id,
        "ArticlesIndex": oldest.row_id,
        "Diagnostics": (last or 0) + 1,
    }


def _count(connection: sa.Connection, table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
    chosen = sa.select(sa.func.count()).select_from(table).where(*where)
    return int(connection.execute(chosen).scalar_one())


def _config_key(book: str) -> str:
    return f"first rows of {book}"
