"""The tables that track what each spreadsheet shows, with the reads and writes that share them.

They hold which rows a spreadsheet starts with, its tabs after the last sync, and the admins' cells
as they were last written or read. The batches of rows are in outbox.py.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import (
    CONFIG,
    DIAGNOSTICS,
    INDEX_COLUMNS,
    METADATA,
    RAW,
    RAW_COLUMNS,
    Moment,
    Texts,
)
from news_platform.rss.ledger.transactions import read_config, write_config, write_transaction
from news_platform.rss.sheets.access import SheetAccess
from news_platform.rss.sheets.tabs import TABS, Cell, Tab
from news_platform.storage.sql.engine import read_transaction

# One row for each ledger row that a spreadsheet shows or is about to show. `book` is the id of the
# spreadsheet, `seq` the change it shows (0: none yet), `shown` the admins' cells as last written.
# While an intent holds the row, `sending` has its cells as JSON and `sending_seq` their change.
SHEET_ROWS = sa.Table(
    "sheet_rows",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("tab", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("shown", sa.Text, nullable=False, server_default=""),
    sa.Column("intent_id", sa.Integer),
    sa.Column("sending_seq", sa.BigInteger),
    sa.Column("sending", sa.Text),
    sa.Index("sheet_rows_intent", "intent_id"),
)

# Batches that were sent or are about to be; `applied_at` is empty until the outcome is known.
INTENTS = sa.Table(
    "sheet_intents",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("book", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("made_at", Moment, nullable=False),
    sa.Column("applied_at", Moment),
    # Ids of deleted rows are not used again, on SQLite as on PostgreSQL.
    sqlite_autoincrement=True,
)

SHEET_TABS = sa.Table(
    "sheet_tabs",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("tab", sa.Text, primary_key=True),
    sa.Column("sheet_id", sa.Integer, nullable=False),
    sa.Column("header", Texts, nullable=False),
)

# Leases: the one writer of each spreadsheet.
WRITERS = sa.Table(
    "sheet_writers",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until", Moment, nullable=False),
)

# `SHEET_ROWS.seq` of a row that the spreadsheet still shows and must not.
GONE = -1
_CHUNK = 500

FirstRows = Mapping[str, int]
"""The first value of `Tab.order` that each tab shows, by tab name; other tabs show all rows."""

_CELLS_PER_ARTICLE = len(RAW_COLUMNS) + len(INDEX_COLUMNS)


def known_spreadsheet_id(engine: sa.Engine, access: SheetAccess) -> str | None:
    """Return the id from the settings, or the one recorded for the title; None before a sync."""
    return access.spreadsheet_id or read_config(engine, _id_key(access))


def write_spreadsheet_id(
    engine: sa.Engine, access: SheetAccess, spreadsheet_id: str, *, now: datetime
) -> None:
    """Record which spreadsheet the title in the settings refers to."""
    with write_transaction(engine) as change:
        write_config(change, _id_key(access), spreadsheet_id, now=now)


def _id_key(access: SheetAccess) -> str:
    return f"spreadsheet_id of {access.name}"


def choose_first_rows(
    engine: sa.Engine, spreadsheet_id: str, *, max_cells: int, now: datetime
) -> None:
    """Decide which rows a new spreadsheet starts with: all, or the newest that fill half of it.

    A spreadsheet that replaces a full one needs room for future rows. Older rows stay in the older
    spreadsheet; Config shows which rows the new one starts with.
    """
    with read_transaction(engine) as connection:
        rows = sa.select(SHEET_ROWS.c.key).where(SHEET_ROWS.c.book == spreadsheet_id).limit(1)
        if read_first_rows(connection, spreadsheet_id) or connection.execute(rows).first():
            return
        # Half, so that there is room for the rows to come.
        first_rows = _first_rows(connection, max_cells=max_cells // 2)
    if first_rows:
        with write_transaction(engine) as change:
            write_config(change, _first_rows_key(spreadsheet_id), json.dumps(first_rows), now=now)


def read_first_rows(connection: sa.Connection, spreadsheet_id: str) -> FirstRows:
    """Return which rows a spreadsheet starts with; an empty mapping means all."""
    chosen = sa.select(CONFIG.c.value).where(CONFIG.c.key == _first_rows_key(spreadsheet_id))
    first_rows: FirstRows = json.loads(connection.execute(chosen).scalar_one_or_none() or "{}")
    return first_rows


def count_left_out(engine: sa.Engine, spreadsheet_id: str) -> int:
    """Return how many ledger rows are older than the first rows of the spreadsheet."""
    with read_transaction(engine) as connection:
        first_rows = read_first_rows(connection, spreadsheet_id)
        return sum(
            _count(connection, tab.table, tab.table.c[tab.order] < first_rows[tab.name])
            for tab in TABS
            if tab.order and tab.name in first_rows
        )


def _first_rows(connection: sa.Connection, *, max_cells: int) -> FirstRows:
    cells = sum(len(tab.columns) * _count(connection, tab.table) for tab in TABS)
    if cells <= max_cells:
        return {}
    # Feeds and Config are complete in every spreadsheet; articles get the room that is left.
    unordered = sum(len(t.columns) * _count(connection, t.table) for t in TABS if t.order is None)
    articles = max((max_cells - unordered) // _CELLS_PER_ARTICLE, 1)
    newest = sa.select(RAW.c.row_id, RAW.c.found_at).order_by(RAW.c.row_id.desc())
    oldest = connection.execute(newest.offset(articles - 1).limit(1)).first()
    if oldest is None:
        return {}
    # Diagnostics start when the first of these articles was found.
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


def _first_rows_key(spreadsheet_id: str) -> str:
    return f"first rows of {spreadsheet_id}"


def read_known_tabs(
    engine: sa.Engine, spreadsheet_id: str
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the sheet id and the header of each tab after the last sync, by tab name."""
    chosen = sa.select(SHEET_TABS.c.tab, SHEET_TABS.c.sheet_id, SHEET_TABS.c.header)
    with read_transaction(engine) as connection:
        rows = connection.execute(chosen.where(SHEET_TABS.c.book == spreadsheet_id))
        return {tab: (sheet_id, header) for tab, sheet_id, header in rows}


def write_known_tab(
    engine: sa.Engine, spreadsheet_id: str, tab: str, *, sheet_id: int, header: Iterable[str]
) -> None:
    """Record the sheet id and the header of a tab."""
    row = {"book": spreadsheet_id, "tab": tab, "sheet_id": sheet_id, "header": tuple(header)}
    where = same_row(SHEET_TABS, book=spreadsheet_id, tab=tab)
    with engine.begin() as connection:
        connection.execute(sa.delete(SHEET_TABS).where(*where))
        connection.execute(sa.insert(SHEET_TABS).values(**row))


def resend_tab(engine: sa.Engine, spreadsheet_id: str, tab: str) -> None:
    """Have the next sync send all rows of a tab again."""
    where = same_row(SHEET_ROWS, book=spreadsheet_id, tab=tab)
    with engine.begin() as connection:
        connection.execute(sa.update(SHEET_ROWS).where(*where).values(seq=0, shown=""))


def read_last_written(
    engine: sa.Engine, spreadsheet_id: str, tab: Tab
) -> dict[str, Mapping[str, Cell]]:
    """Return the admins' cells of every known row as last written; empty before the first write."""
    where = same_row(SHEET_ROWS, book=spreadsheet_id, tab=tab.name)
    chosen = sa.select(SHEET_ROWS.c.key, SHEET_ROWS.c.shown).where(*where)
    with read_transaction(engine) as connection:
        return {key: json.loads(shown or "{}") for key, shown in connection.execute(chosen)}


def write_last_written(
    connection: sa.Connection,
    spreadsheet_id: str,
    tab: Tab,
    *,
    key: str,
    cells: Mapping[str, Cell],
) -> None:
    """Record the admins' cells of a row."""
    text = json.dumps(cells, ensure_ascii=False)
    where = same_row(SHEET_ROWS, book=spreadsheet_id, tab=tab.name, key=key)
    changed = sa.update(SHEET_ROWS).where(*where).values(shown=text).returning(SHEET_ROWS.c.key)
    if connection.execute(changed).one_or_none() is None:
        connection.execute(
            sa.insert(SHEET_ROWS).values(book=spreadsheet_id, tab=tab.name, key=key, shown=text)
        )


def same_row(table: sa.Table, **values: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions under which the columns have these values."""
    return tuple(table.c[name] == value for name, value in values.items())


def mark_gone(
    connection: sa.Connection,
    *,
    rows: Collection[int],
    index: Collection[str],
    feeds: Collection[str],
) -> int:
    """Mark what spreadsheets show of deleted ledger rows, and drop cells that wait to be sent."""
    keys = {
        "Raw": [str(row) for row in rows],
        "ArticlesIndex": list(index),
        "Feeds": list(feeds),
    }
    marked = 0
    for tab, values in keys.items():
        for start in range(0, len(values), _CHUNK):
            shown = sa.and_(
                SHEET_ROWS.c.tab == tab, SHEET_ROWS.c.key.in_(values[start : start + _CHUNK])
            )
            gone = {"seq": GONE, "shown": "", "sending": None, "sending_seq": None}
            changed = sa.update(SHEET_ROWS).where(shown).values(**gone, intent_id=None)
            marked += connection.execute(changed).rowcount
    return marked
