"""The outbox in SQL: choose the rows a spreadsheet lacks, hold them as an intent, mark it done.

An intent is one batch. It is stored with its cells as `sending` before it is sent, and becomes
`done` only when the spreadsheet is known to hold it. So if the outcome is unknown, or the writer
died, the same batch is sent again under the same token.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from news_platform.rss.ledger.tables import METADATA, RAW, SEQUENCE
from news_platform.rss.sheets.books import (
    FEEDS_TAB,
    SHEET_BOOKS,
    TABS,
    Cell,
    CellLimits,
    SheetBook,
    SyncOptions,
    Tab,
    read_chain,
    to_cells,
)
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import upsert

# One row for each ledger row that a spreadsheet shows. `book` is the id of the spreadsheet, `seq`
# the change it shows (0: to be sent again), `shown` the admins' cells as last written.
SHEET_ROWS = sa.Table(
    "sheet_rows",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("tab", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("shown", sa.Text, nullable=False, server_default=""),
    # Finds the rows that are gone, before every batch.
    sa.Index("sheet_rows_seq", "seq", "book"),
)
# Batches that are `sending` or `done`; `rows` has the rows of one that is sending, as JSON.
SHEET_INTENTS = sa.Table(
    "sheet_intents",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("book", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("rows", sa.Text, nullable=False),
)

# `seq` of a row that was taken down: the spreadsheet still shows it and must not.
GONE = -1
# Diagnostics of this stage are about the sync itself; they are sent by the next one.
STAGE = "sheets"
# Google's limit for the characters of a cell.
CELL_LIMIT = 50_000
# What a cell and a row add to a request besides their text. If people put a column between each
# pair of ours, a cell takes 160 bytes more: over the size that Google recommends, but well below
# the size that Google rejects.
_CELL_BYTES = 50
_ROW_BYTES = 500
# SQLite accepts 32,766 parameters per statement, versions before 3.32 only 999.
_CHUNK = 500
_SENDING, _DONE = "sending", "done"


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row to send: the change it shows, and its cells in the order of the tab's columns.

    A row that is gone has no cells. `last_written` holds the admins' cells as last written.
    """

    tab: str
    key: str
    seq: int
    cells: tuple[Cell, ...] = ()
    last_written: Mapping[str, Cell] = field(default_factory=dict)
    is_new: bool = False

    @property
    def is_own_counter(self) -> bool:
        """Return whether the row is a counter of an earlier sync."""
        return self.tab == "Diagnostics" and STAGE in self.cells[:2]


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch to apply exactly once, and the token that identifies it in the spreadsheet."""

    token: str
    rows: tuple[SheetRow, ...]

    @property
    def fence(self) -> int:
        """Return the token as a positive 31-bit number, which the API accepts as a metadata id."""
        return (int(self.token[:8], 16) & 0x7FFFFFFF) or 1

    def is_in(self, fences: Mapping[int, str]) -> bool:
        """Return whether a spreadsheet with these fences holds the batch."""
        return fences.get(self.fence) == self.token


def is_behind(engine: sa.Engine, name: str) -> bool:
    """Return whether a sync would send anything besides the counters of earlier syncs.

    `name` is the id or title from the settings. Google is not called.
    """
    with read_transaction(engine) as connection:
        books = read_chain(connection, name)
        pending = [_pending(tab, books).where(*_not_own(tab)) for tab in TABS if books]
        return not books or _is_waiting(connection, [book.id for book in books], pending)


def _is_waiting(
    connection: sa.Connection, ids: Sequence[str], pending: Iterable[sa.Select[Any]]
) -> bool:
    """Return whether spreadsheets have an open batch, rows to blank, or rows to come."""
    is_gone = (SHEET_ROWS.c.book.in_(ids), SHEET_ROWS.c.seq == GONE)
    waiting = (_open_intents(*ids), sa.select(SHEET_ROWS.c.key).where(*is_gone), *pending)
    return any(connection.execute(one.limit(1)).first() for one in waiting)


def _not_own(tab: Tab) -> list[sa.ColumnElement[bool]]:
    """Leave out own counters: those of each sync would make the next one necessary."""
    return [tab.table.c.stage != STAGE] if tab.name == "Diagnostics" else []


def open_intent(engine: sa.Engine, spreadsheet_id: str) -> Intent | None:
    """Return the batch whose outcome is unknown, if there is one."""
    with read_transaction(engine) as connection:
        return _read_open(connection, spreadsheet_id)


def next_intent(engine: sa.Engine, book: SheetBook, options: SyncOptions) -> Intent | None:
    """Return the batch whose outcome is unknown, else a new one; None if nothing is pending."""
    # Looked for without the lock of a write, for which poller and workers would wait.
    if _is_complete(engine, book):
        return None
    with engine.begin() as connection:
        # On PostgreSQL the lock keeps two writers from choosing the same rows.
        locked = sa.select(SHEET_BOOKS.c.book).where(SHEET_BOOKS.c.book == book.id)
        connection.execute(locked.with_for_update())
        if found := _read_open(connection, book.id):
            return found
        books = read_chain(connection, book.name)
        is_current = books[0].id == book.id
        pending = _pending_rows(connection, books, options) if is_current else ()
        rows = _fit(chain(_gone_rows(connection, book.id), pending), options)
        return _add_intent(connection, book.id, rows) if rows else None


def _is_complete(engine: sa.Engine, book: SheetBook) -> bool:
    """Return whether a spreadsheet shows everything, and record up to which change it does."""
    with read_transaction(engine) as connection:
        # Read before the rows: a change in between is pending for the next batch.
        newest = connection.execute(sa.select(SEQUENCE.c.value)).scalar_one()
        books = read_chain(connection, book.name)
        is_current = books[0].id == book.id
        pending = [_pending(tab, books) for tab in TABS if is_current]
        if _is_waiting(connection, [book.id], pending):
            return False
    if is_current and books[0].shown_up_to != newest:
        with engine.begin() as connection:
            _mark_shown(connection, book.id, newest)
    return True


def mark_done(engine: sa.Engine, intent: Intent, *, keep: int) -> None:
    """Record that the spreadsheet holds the batch; forget all but the newest `keep` batches."""
    intents = SHEET_INTENTS.c
    is_mine = (intents.token == intent.token, intents.state == _SENDING)
    chosen = sa.select(intents.book, intents.rows).where(*is_mine).with_for_update()
    with engine.begin() as connection:
        # Read again: a takedown may have removed rows, or another writer has recorded the batch.
        found = connection.execute(chosen).one_or_none()
        if found is None:
            return
        _write_shown(connection, found.book, _parse_rows(found.rows))
        done = sa.update(SHEET_INTENTS).where(*is_mine)
        connection.execute(done.values(state=_DONE, rows=""))
        is_done = (intents.book == found.book, intents.state == _DONE)
        newest = sa.select(intents.id).where(*is_done).order_by(intents.id.desc()).limit(keep)
        connection.execute(sa.delete(SHEET_INTENTS).where(*is_done, intents.id.not_in(newest)))


def drop_intents(engine: sa.Engine, spreadsheet_id: str) -> None:
    """Forget the batch that a full spreadsheet could not take; its rows are pending again."""
    is_open = (SHEET_INTENTS.c.book == spreadsheet_id, SHEET_INTENTS.c.state == _SENDING)
    with engine.begin() as connection:
        connection.execute(sa.delete(SHEET_INTENTS).where(*is_open))


def read_tokens(engine: sa.Engine, spreadsheet_id: str) -> set[str]:
    """Return the tokens of the batches of which a late copy may still arrive."""
    chosen = sa.select(SHEET_INTENTS.c.token).where(SHEET_INTENTS.c.book == spreadsheet_id)
    with read_transaction(engine) as connection:
        return set(connection.execute(chosen).scalars())


def shows_articles(engine: sa.Engine, spreadsheet_id: str) -> bool:
    """Return whether a spreadsheet shows any row besides feeds and settings."""
    rows = SHEET_ROWS.c
    ordered = rows.tab.in_([tab.name for tab in TABS if tab.order])
    chosen = sa.select(rows.key).where(rows.book == spreadsheet_id, ordered, rows.seq > 0)
    with read_transaction(engine) as connection:
        return connection.execute(chosen.limit(1)).first() is not None


def resend_tab(engine: sa.Engine, spreadsheet_id: str, tab: str) -> None:
    """Have the next sync send all rows of a tab again."""
    rows = SHEET_ROWS.c
    known = (rows.book == spreadsheet_id, rows.tab == tab, rows.seq != GONE)
    with engine.begin() as connection:
        connection.execute(sa.update(SHEET_ROWS).where(*known).values(seq=0, shown=""))
        _mark_shown(connection, spreadsheet_id, 0)


def count_sending(connection: sa.Connection) -> int:
    """Return how many rows are in batches whose outcome is unknown."""
    chosen = sa.select(SHEET_INTENTS.c.rows).where(SHEET_INTENTS.c.state == _SENDING)
    return sum(len(json.loads(rows)) for rows in connection.execute(chosen).scalars())


def read_last_written(engine: sa.Engine, spreadsheet_id: str) -> dict[str, Mapping[str, Cell]]:
    """Return the admins' cells of every known feed as last written; empty before the first write.

    A feed in a batch whose outcome is unknown is known, too.
    """
    rows = SHEET_ROWS.c
    chosen = sa.select(rows.key, rows.shown)
    with read_transaction(engine) as connection:
        sending = _read_open(connection, spreadsheet_id)
        sent = sending.rows if sending else ()
        known = {row.key: "" for row in sent if row.tab == FEEDS_TAB.name}
        where = (rows.book == spreadsheet_id, rows.tab == FEEDS_TAB.name)
        known.update((key, shown) for key, shown in connection.execute(chosen.where(*where)))
    return {key: json.loads(shown or "{}") for key, shown in known.items()}


def write_last_written(
    connection: sa.Connection, spreadsheet_id: str, key: str, cells: Mapping[str, Cell]
) -> None:
    """Record the admins' cells of a feed."""
    row = {"book": spreadsheet_id, "tab": FEEDS_TAB.name, "key": key}
    shown = {"shown": json.dumps(cells, ensure_ascii=False)}
    added = upsert(connection, SHEET_ROWS).values({**row, **shown})
    connection.execute(added.on_conflict_do_update(index_elements=list(row), set_=shown))


def mark_copies_gone(engine: sa.Engine) -> None:
    """Mark articles that turned out to be copies of others, of which editors see one row."""
    copies = sa.select(sa.cast(RAW.c.row_id, sa.Text)).where(RAW.c.status == "duplicate")
    rows = SHEET_ROWS.c
    shown = (rows.tab == "Articles", rows.seq != GONE, rows.key.in_(copies))
    with engine.begin() as connection:
        connection.execute(sa.update(SHEET_ROWS).where(*shown).values(seq=GONE, shown=""))


def mark_gone(
    connection: sa.Connection,
    *,
    rows: Collection[int],
    index: Collection[str],
    feeds: Collection[str],
) -> int:
    """Mark what spreadsheets show of deleted ledger rows, and drop cells that wait to be sent."""
    keys = {
        "Articles": set(map(str, rows)),
        "Raw": set(map(str, rows)),
        "ArticlesIndex": set(index),
        "Feeds": set(feeds),
        "Analyses": set(map(str, rows)),
    }
    _drop_from_intents(connection, keys)
    marked = 0
    for tab, values in keys.items():
        of_tab = iter(values)
        while chunk := list(islice(of_tab, _CHUNK)):
            shown = (SHEET_ROWS.c.tab == tab, SHEET_ROWS.c.key.in_(chunk))
            changed = sa.update(SHEET_ROWS).where(*shown).values(seq=GONE, shown="")
            marked += connection.execute(changed).rowcount
    return marked


def _drop_from_intents(connection: sa.Connection, keys: Mapping[str, set[str]]) -> None:
    """Remove rows from batches that are being sent, and record them as perhaps shown."""
    chosen = sa.select(SHEET_INTENTS).where(SHEET_INTENTS.c.state == _SENDING)
    for intent in connection.execute(chosen).all():
        kept: list[SheetRow] = []
        dropped: list[SheetRow] = []
        for row in _parse_rows(intent.rows):
            is_dropped = row.seq != GONE and row.key in keys.get(row.tab, ())
            (dropped if is_dropped else kept).append(row)
        if dropped:
            mine = sa.update(SHEET_INTENTS).where(SHEET_INTENTS.c.id == intent.id)
            connection.execute(mine.values(rows=_format_rows(kept)))
            _write_shown(connection, intent.book, dropped)


def _open_intents(*spreadsheet_ids: str) -> sa.Select[Any]:
    return sa.select(SHEET_INTENTS.c.token, SHEET_INTENTS.c.rows).where(
        SHEET_INTENTS.c.book.in_(spreadsheet_ids), SHEET_INTENTS.c.state == _SENDING
    )


def _read_open(connection: sa.Connection, spreadsheet_id: str) -> Intent | None:
    found = connection.execute(_open_intents(spreadsheet_id)).first()
    return Intent(found.token, _parse_rows(found.rows)) if found else None


def _add_intent(
    connection: sa.Connection, spreadsheet_id: str, rows: tuple[SheetRow, ...]
) -> Intent:
    intent = Intent(uuid4().hex[:16], rows)
    row = {"book": spreadsheet_id, "token": intent.token, "rows": _format_rows(rows)}
    connection.execute(sa.insert(SHEET_INTENTS).values(state=_SENDING, **row))
    return intent


def _format_rows(rows: Collection[SheetRow]) -> str:
    return json.dumps([asdict(row) for row in rows], ensure_ascii=False)


def _parse_rows(text: str) -> tuple[SheetRow, ...]:
    return tuple(SheetRow(**{**row, "cells": tuple(row["cells"])}) for row in json.loads(text))


def _write_shown(connection: sa.Connection, book: str, rows: Collection[SheetRow]) -> None:
    """Record what the spreadsheet shows of these rows; those that are blank now are forgotten."""
    insert = upsert(connection, SHEET_ROWS)
    shown = insert.on_conflict_do_update(
        index_elements=["book", "tab", "key"],
        set_={"seq": insert.excluded.seq, "shown": insert.excluded.shown},
    )
    sent = [
        {"book": book, "tab": row.tab, "key": row.key, "seq": row.seq, "shown": _edited_cells(row)}
        for row in rows
        if row.seq != GONE
    ]
    if sent:
        connection.execute(shown, sent)
    blank = [{"at_tab": row.tab, "at_key": row.key} for row in rows if row.seq == GONE]
    if blank:
        columns = SHEET_ROWS.c
        connection.execute(
            sa.delete(SHEET_ROWS).where(
                columns.book == book,
                columns.tab == sa.bindparam("at_tab"),
                columns.key == sa.bindparam("at_key"),
            ),
            blank,
        )


def _edited_cells(row: SheetRow) -> str:
    """Return the admins' cells of a row as JSON; '' for a tab without any."""
    if row.tab != FEEDS_TAB.name:
        return ""
    cells = dict(zip(FEEDS_TAB.columns, row.cells, strict=True))
    return json.dumps({name: cells[name] for name in FEEDS_TAB.edited}, ensure_ascii=False)


def _fit(rows: Iterable[SheetRow], options: SyncOptions) -> tuple[SheetRow, ...]:
    """Return as many rows as one batch takes; a single row may exceed the size."""
    fitting: list[SheetRow] = []
    size_bytes = 0
    for row in islice(rows, options.max_rows):
        size_bytes += _request_bytes(row.cells)
        if fitting and size_bytes > options.max_bytes:
            break
        fitting.append(row)
    return tuple(fitting)


def _request_bytes(cells: Collection[Cell]) -> int:
    """Return at most how many bytes a row takes in a request, where é is six and 😀 is twelve."""
    # requests sends JSON with ASCII escapes, as json.dumps does by default.
    return len(json.dumps(cells)) + _CELL_BYTES * len(cells) + _ROW_BYTES


def _gone_rows(connection: sa.Connection, spreadsheet_id: str) -> Iterator[SheetRow]:
    rows = SHEET_ROWS.c
    chosen = sa.select(rows.tab, rows.key, rows.seq)
    where = (rows.book == spreadsheet_id, rows.seq == GONE)
    return (SheetRow(*row) for row in connection.execute(chosen.where(*where)))


def _pending_rows(
    connection: sa.Connection, books: Sequence[SheetBook], options: SyncOptions
) -> Iterator[SheetRow]:
    limits = CellLimits(CELL_LIMIT, options.clean_text_limit)
    for tab in TABS:
        columns = [tab.table.c[name] for name in tab.columns]
        chosen = _pending(tab, books, *columns).limit(options.max_rows)
        for key, seq, shown_seq, shown, *values in connection.execute(chosen):
            cells = tuple(to_cells(tab, values, limits))
            last = json.loads(shown or "{}")
            yield SheetRow(tab.name, str(key), seq, cells, last, is_new=shown_seq is None)


def _pending(
    tab: Tab, books: Sequence[SheetBook], *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """Select rows of a tab that no spreadsheet shows as they are, and what the newest one shows."""
    current, *older = books
    table, here, there = tab.table, SHEET_ROWS.c, SHEET_ROWS.alias().c
    key = sa.cast(table.c[tab.key], sa.Text)
    is_here = sa.and_(here.book == current.id, here.tab == tab.name, here.key == key)
    chosen = (
        sa.select(table.c[tab.key], table.c.changed_seq, here.seq, here.shown, *columns)
        .select_from(table.outerjoin(SHEET_ROWS, is_here))
        .where(sa.func.coalesce(here.seq, 0) < table.c.changed_seq)
        .order_by(table.c[tab.key])
    )
    if tab.order is None:
        return chosen
    is_there = sa.exists().where(
        there.book.in_([book.id for book in older]),
        there.tab == tab.name,
        there.key == key,
        there.seq >= table.c.changed_seq,
    )
    # By the index of changes; ordered by its key alone, the whole table would be read.
    changed = sa.select(table.c[tab.key]).where(table.c.changed_seq > current.shown_up_to)
    return chosen.where(table.c[tab.key].in_(changed), ~is_there)


def _mark_shown(connection: sa.Connection, spreadsheet_id: str, seq: int) -> None:
    mine = sa.update(SHEET_BOOKS).where(SHEET_BOOKS.c.book == spreadsheet_id)
    connection.execute(mine.values(shown_up_to=seq))
