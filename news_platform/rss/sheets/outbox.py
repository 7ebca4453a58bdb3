"""The outbox in SQL: what a book does not show yet, what is on its way, and whose turn it is.

Rows leave in batches. A batch is written down as an intent, cells and all, before the call, and
its rows are free again only when the book is known to hold it. So a batch that is in doubt, or
whose writer died, is sent again as the same batch, under the same token.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.rss.sheets.start import Start, read_start
from news_platform.rss.sheets.tabs import TABS, Cell, Tab, cell_of
from news_platform.rss.sheets.tracking import INTENTS, SHEET_ROWS, SHEET_TABS, WRITERS
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, LeaseTerm, claim_named, release_named

# Google's limit for the characters of a cell.
CELL_LIMIT = 50_000
# Diagnostics of this stage tell of the sync itself: they wait for the next one.
STAGE = "sheets"
# What a cell and a row cost in a request beside their text. Foreign columns between all of ours
# add 160 bytes a cell: that is more than Google advises, but well below what it refuses.
_CELL_BYTES = 50
_ROW_BYTES = 500
_KEY = ("book", "tab", "key")
_LEASES = LeaseTable(key=WRITERS.c.book, time=WRITERS.c.until, owner=WRITERS.c.owner)


@dataclass(frozen=True, slots=True)
class OutRow:
    """One row on its way: its cells in the order of the tab's columns.

    `shown` are the admin's columns as the book has them from us; empty when it never had the row.
    """

    tab: str
    key: str
    cells: tuple[Cell, ...]
    shown: Mapping[str, Cell]
    is_new: bool


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that is to be applied once, and the token by which the book knows it."""

    id: int
    token: str
    rows: tuple[OutRow, ...]

    @property
    def fence(self) -> int:
        """Return the token as a positive number of 31 bits."""
        return (int(self.token[:8], 16) & 0x7FFFFFFF) or 1

    @property
    def new_rows(self) -> int:
        """Return how many of its rows the book did not show before."""
        return sum(row.is_new for row in self.rows)

    @property
    def is_own_counters(self) -> bool:
        """Tell whether there is nothing in it but what an earlier sync counted of itself."""
        return all(row.tab == "Diagnostics" and STAGE in row.cells[:2] for row in self.rows)


def take_lease(engine: sa.Engine, book: str, owner: str, *, seconds: float, now: datetime) -> bool:
    """Become the book's one writer, or stay it; False while another one is."""
    with engine.begin() as connection:
        return claim_named(connection, _LEASES, book, LeaseTerm(now, seconds, owner))


def give_lease_back(engine: sa.Engine, book: str, owner: str) -> None:
    """Let the next writer begin at once."""
    with engine.begin() as connection:
        release_named(connection, _LEASES, book, owner)


def next_intent(
    engine: sa.Engine, book: str, *, max_rows: int, max_bytes: int, now: datetime
) -> Intent | None:
    """Return the batch whose fate is open, else a new one of rows that the book does not show."""
    with engine.begin() as connection:
        is_open = (INTENTS.c.book == book, INTENTS.c.applied_at.is_(None))
        left = connection.execute(sa.select(INTENTS.c.id, INTENTS.c.token).where(*is_open)).first()
        found = (left.id, left.token) if left else None
        found = found or _new_intent(
            connection, book, max_rows=max_rows, max_bytes=max_bytes, now=now
        )
        if found is None:
            return None
        intent_id, token = found
        return Intent(intent_id, token, _rows_of(connection, intent_id))


def settle(engine: sa.Engine, intent: Intent, *, now: datetime) -> None:
    """Note that the book holds the batch."""
    held = SHEET_ROWS.c.intent_id == intent.id
    free = {"intent_id": None, "sending": None, "sending_seq": None}
    applied = sa.update(INTENTS).where(INTENTS.c.id == intent.id).values(applied_at=now)
    with engine.begin() as connection:
        for row in intent.rows:
            if shown := _shown(row):
                here = (SHEET_ROWS.c.tab == row.tab, SHEET_ROWS.c.key == row.key)
                connection.execute(sa.update(SHEET_ROWS).where(held, *here).values(shown=shown))
        seq = SHEET_ROWS.c.sending_seq
        connection.execute(sa.update(SHEET_ROWS).where(held).values(seq=seq, **free))
        connection.execute(applied)


def old_intents(engine: sa.Engine, book: str, *, before: datetime, keep: int) -> list[Intent]:
    """Return the batches of which no copy can be under way, without their rows.

    They were applied before the moment given, or more than `keep` batches ago.
    """
    is_applied = (INTENTS.c.book == book, INTENTS.c.applied_at.is_not(None))
    newest = sa.select(INTENTS.c.id).where(*is_applied).order_by(INTENTS.c.id.desc()).limit(keep)
    is_old = sa.or_(INTENTS.c.applied_at < before, INTENTS.c.id.not_in(newest))
    chosen = sa.select(INTENTS.c.id, INTENTS.c.token).where(*is_applied, is_old)
    with read_transaction(engine) as connection:
        return [Intent(*row, rows=()) for row in connection.execute(chosen)]


def forget_intents(engine: sa.Engine, intents: Iterable[Intent]) -> None:
    """Drop batches whose fences the book no longer holds."""
    gone = [{"gone": intent.id} for intent in intents]
    if gone:
        with engine.begin() as connection:
            chosen = sa.delete(INTENTS).where(INTENTS.c.id == sa.bindparam("gone"))
            connection.execute(chosen, gone)


def has_pending(engine: sa.Engine, book: str) -> bool:
    """Tell whether a sync would send anything, the metrics of the sync itself aside."""
    with read_transaction(engine) as connection:
        open_one = sa.select(INTENTS.c.id).where(
            INTENTS.c.book == book, INTENTS.c.applied_at.is_(None)
        )
        if connection.execute(open_one.limit(1)).first():
            return True
        return any(_is_pending(connection, book, tab) for tab in TABS)


def shown_rows(engine: sa.Engine, book: str, tab: Tab) -> dict[str, Mapping[str, Cell]]:
    """Return the admin's columns of every known row as we last wrote them; empty: not yet."""
    chosen = sa.select(SHEET_ROWS.c.key, SHEET_ROWS.c.shown).where(
        *_same(SHEET_ROWS, book=book, tab=tab.name)
    )
    with read_transaction(engine) as connection:
        return {key: json.loads(shown or "{}") for key, shown in connection.execute(chosen)}


def note_shown(
    connection: sa.Connection, book: str, tab: Tab, *, key: str, shown: Mapping[str, Cell]
) -> None:
    """Note what the admin's columns of a row say now."""
    text = json.dumps(shown, ensure_ascii=False)
    where = _same(SHEET_ROWS, book=book, tab=tab.name, key=key)
    changed = sa.update(SHEET_ROWS).where(*where).values(shown=text).returning(SHEET_ROWS.c.key)
    if connection.execute(changed).one_or_none() is None:
        connection.execute(
            sa.insert(SHEET_ROWS).values(book=book, tab=tab.name, key=key, shown=text)
        )


def read_tabs(engine: sa.Engine, book: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the sheet id and the header of each tab, as they were after the last sync."""
    chosen = sa.select(SHEET_TABS.c.tab, SHEET_TABS.c.sheet_id, SHEET_TABS.c.header)
    with read_transaction(engine) as connection:
        rows = connection.execute(chosen.where(SHEET_TABS.c.book == book))
        return {tab: (sheet_id, header) for tab, sheet_id, header in rows}


def note_tab(
    engine: sa.Engine, book: str, tab: str, *, sheet_id: int, header: Iterable[str]
) -> None:
    """Remember a tab's sheet and header."""
    row = {"book": book, "tab": tab, "sheet_id": sheet_id, "header": tuple(header)}
    with engine.begin() as connection:
        connection.execute(sa.delete(SHEET_TABS).where(*_same(SHEET_TABS, book=book, tab=tab)))
        connection.execute(sa.insert(SHEET_TABS).values(**row))


def refill_tab(engine: sa.Engine, book: str, tab: str) -> None:
    """Have all rows of a tab sent again, as if it had never shown them."""
    with engine.begin() as connection:
        where = _same(SHEET_ROWS, book=book, tab=tab)
        connection.execute(sa.update(SHEET_ROWS).where(*where).values(seq=0, shown=""))


def _new_intent(
    connection: sa.Connection, book: str, *, max_rows: int, max_bytes: int, now: datetime
) -> tuple[int, str] | None:
    chosen = _chosen_rows(connection, book, max_rows=max_rows, max_bytes=max_bytes)
    if not chosen:
        return None
    made = sa.insert(INTENTS).values(book=book, token="", made_at=now).returning(INTENTS.c.id)
    intent_id = connection.execute(made).scalar_one()
    # Unlike the number alone, this does not come again when a ledger is made anew.
    token = hashlib.sha256(f"{book} {intent_id} {now.isoformat()}".encode()).hexdigest()[:16]
    connection.execute(sa.update(INTENTS).where(INTENTS.c.id == intent_id).values(token=token))
    _hold(connection, intent_id, chosen)
    return intent_id, token


def _hold(connection: sa.Connection, intent_id: int, chosen: list[dict[str, Any]]) -> None:
    """Put the rows, which are of one book, into the hands of the intent."""
    rows = SHEET_ROWS.c
    for tab in TABS:
        of_tab = {row["key"]: row for row in chosen if row["tab"] == tab.name}
        where = (rows.book == chosen[0]["book"], rows.tab == tab.name, rows.key.in_(of_tab))
        known = set(connection.execute(sa.select(rows.key).where(*where)).scalars())
        new = [{"seq": 0, **_key(row)} for key, row in of_tab.items() if key not in known]
        if new:
            connection.execute(sa.insert(SHEET_ROWS), new)
    held = (
        sa.update(SHEET_ROWS)
        .where(*(rows[name] == sa.bindparam(f"at_{name}") for name in _KEY))
        .values(intent_id=intent_id, sending=sa.bindparam("cells"), sending_seq=sa.bindparam("n"))
    )
    connection.execute(
        held,
        [{**_key(row, "at_"), "cells": row["sending"], "n": row["seq"]} for row in chosen],
    )


def _key(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": row[name] for name in _KEY}


def _chosen_rows(
    connection: sa.Connection, book: str, *, max_rows: int, max_bytes: int
) -> list[dict[str, Any]]:
    """Return rows of all tabs until the batch is full; one row alone may be over the size."""
    chosen: list[dict[str, Any]] = []
    size_bytes = 0
    start = read_start(connection, book)
    for tab in TABS:
        columns = [tab.table.c[name] for name in tab.columns]
        wanted = _pending(book, tab, *columns, start=start).limit(max_rows - len(chosen))
        for key, seq, *values in connection.execute(wanted):
            cells = [cell_of(value, limit=CELL_LIMIT) for value in values]
            sending = json.dumps(cells, ensure_ascii=False)
            size_bytes += _request_bytes(cells)
            if chosen and size_bytes > max_bytes:
                return chosen
            chosen.append(
                {"book": book, "tab": tab.name, "key": str(key), "seq": seq, "sending": sending}
            )
    return chosen


def _request_bytes(cells: list[Cell]) -> int:
    """Return at most how many bytes a row takes in a request, where é is six and 😀 is twelve."""
    return len(json.dumps(cells)) + _CELL_BYTES * len(cells) + _ROW_BYTES


def _pending(book: str, tab: Tab, *columns: sa.Column[Any], start: Start) -> sa.Select[Any]:
    """Select key, change and the named columns of what the book does not show as it is now."""
    table, rows = tab.table, SHEET_ROWS
    key = sa.cast(table.c[tab.key], sa.Text)
    here = sa.and_(rows.c.book == book, rows.c.tab == tab.name, rows.c.key == key)
    chosen = (
        sa.select(table.c[tab.key], table.c.changed_seq, *columns)
        .select_from(table.outerjoin(rows, here))
        .where(sa.func.coalesce(rows.c.seq, 0) < table.c.changed_seq)
        .order_by(table.c[tab.key])
    )
    if tab.order and tab.name in start:
        return chosen.where(table.c[tab.order] >= start[tab.name])
    return chosen


def _is_pending(connection: sa.Connection, book: str, tab: Tab) -> bool:
    chosen = _pending(book, tab, start=read_start(connection, book))
    if tab.name == "Diagnostics":
        chosen = chosen.where(tab.table.c.stage != STAGE)
    return connection.execute(chosen.limit(1)).first() is not None


def _rows_of(connection: sa.Connection, intent_id: int) -> tuple[OutRow, ...]:
    rows = SHEET_ROWS.c
    chosen = (
        sa.select(rows.tab, rows.key, rows.sending, rows.shown, rows.seq)
        .where(rows.intent_id == intent_id)
        .order_by(rows.sending_seq, sa.func.length(rows.key), rows.key)
    )
    return tuple(
        OutRow(tab, key, tuple(json.loads(cells)), json.loads(shown or "{}"), is_new=seq == 0)
        for tab, key, cells, shown, seq in connection.execute(chosen)
    )


def _shown(row: OutRow) -> str:
    tab = next(tab for tab in TABS if tab.name == row.tab)
    if not tab.edited:
        return ""
    cells = dict(zip(tab.columns, row.cells, strict=True))
    return json.dumps({name: cells[name] for name in tab.edited}, ensure_ascii=False)


def _same(table: sa.Table, **values: str) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == value for name, value in values.items())
