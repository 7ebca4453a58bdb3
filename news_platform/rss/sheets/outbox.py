"""The outbox in SQL: choose the rows a spreadsheet lacks, hold them in batches, mark them applied.

Each batch is stored as an intent, with its cells, before it is sent. Its rows are released only
when the spreadsheet is known to hold the batch. So if the outcome is unknown, or the writer died,
the same batch is sent again under the same token.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.rss.ledger.transactions import newest_seq
from news_platform.rss.sheets.access import SheetAccess
from news_platform.rss.sheets.books import current_book
from news_platform.rss.sheets.tabs import TABS, Cell, CellLimits, Tab, to_cells
from news_platform.rss.sheets.tracking import (
    INTENTS,
    SHEET_ROWS,
    WRITERS,
    FirstRows,
    is_shown,
    known_spreadsheet_id,
    read_first_rows,
)
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, LeaseTerm, claim_named, release_named

# Google's limit for the characters of a cell.
CELL_LIMIT = 50_000
# Diagnostics of this stage are about the sync itself; they are sent by the next one.
STAGE = "sheets"
# What a cell and a row add to a request besides their text. If people put a column between each
# pair of ours, a cell takes 160 bytes more: over the size that Google recommends, but well below
# the size that Google rejects.
_CELL_BYTES = 50
_ROW_BYTES = 500
_KEY = ("book", "tab", "key")
_LEASES = LeaseTable(key=WRITERS.c.book, time=WRITERS.c.until, owner=WRITERS.c.owner)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One row to send: its cells in the order of the tab's columns.

    `last_written` holds the admins' cells as last written; it is empty for a new row.
    """

    tab: str
    key: str
    cells: tuple[Cell, ...]
    last_written: Mapping[str, Cell]
    is_new: bool


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How many rows and bytes one batch holds, and how many characters of an article's text."""

    max_rows: int
    max_bytes: int
    clean_text: int = 20_000


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch to apply exactly once, and the token that identifies it in the spreadsheet."""

    id: int
    token: str
    rows: tuple[OutboxRow, ...]

    @property
    def fence(self) -> int:
        """Return the token as a positive 31-bit number, which the API accepts as a metadata id."""
        return (int(self.token[:8], 16) & 0x7FFFFFFF) or 1

    @property
    def new_rows(self) -> int:
        """Return how many rows the spreadsheet did not show before."""
        return sum(row.is_new for row in self.rows)

    @property
    def is_own_counters(self) -> bool:
        """Return whether the batch holds only the counters of earlier syncs."""
        return all(row.tab == "Diagnostics" and STAGE in row.cells[:2] for row in self.rows)


def claim_lease(
    engine: sa.Engine, spreadsheet_id: str, owner: str, *, seconds: float, now: datetime
) -> bool:
    """Become the only writer of the spreadsheet, or extend the lease; False if another one is."""
    with engine.begin() as connection:
        return claim_named(connection, _LEASES, spreadsheet_id, LeaseTerm(now, seconds, owner))


def release_lease(engine: sa.Engine, spreadsheet_id: str, owner: str) -> None:
    """Let the next writer start at once."""
    with engine.begin() as connection:
        release_named(connection, _LEASES, spreadsheet_id, owner)


def is_behind(engine: sa.Engine, access: SheetAccess) -> bool:
    """Return whether the ledger holds rows that the spreadsheet lacks, without calling Google."""
    current = current_book(engine, access.name)
    spreadsheet_id = current.id if current else known_spreadsheet_id(engine, access)
    return spreadsheet_id is None or has_pending(engine, spreadsheet_id)


def next_intent(
    engine: sa.Engine, spreadsheet_id: str, *, limits: BatchLimits, now: datetime
) -> Intent | None:
    """Return the batch whose outcome is unknown, else a new one, None if nothing is pending."""
    with engine.begin() as connection:
        is_open = (INTENTS.c.book == spreadsheet_id, INTENTS.c.applied_at.is_(None))
        left = connection.execute(sa.select(INTENTS.c.id, INTENTS.c.token).where(*is_open)).first()
        found = (left.id, left.token) if left else None
        found = found or _new_intent(connection, spreadsheet_id, limits=limits, now=now)
        if found is None:
            return None
        intent_id, token = found
        return Intent(intent_id, token, _intent_rows(connection, intent_id))


def mark_applied(engine: sa.Engine, intent: Intent, *, now: datetime) -> None:
    """Record that the spreadsheet holds the batch, and release its rows."""
    held = SHEET_ROWS.c.intent_id == intent.id
    free = {"intent_id": None, "sending": None, "sending_seq": None}
    applied = sa.update(INTENTS).where(INTENTS.c.id == intent.id).values(applied_at=now)
    with engine.begin() as connection:
        for row in intent.rows:
            if shown := _edited_cells(row):
                here = (SHEET_ROWS.c.tab == row.tab, SHEET_ROWS.c.key == row.key)
                connection.execute(sa.update(SHEET_ROWS).where(held, *here).values(shown=shown))
        # The change that was sent; a newer one in the ledger is still pending.
        seq = SHEET_ROWS.c.sending_seq
        connection.execute(sa.update(SHEET_ROWS).where(held).values(seq=seq, **free))
        connection.execute(applied)


def abandon_intents(engine: sa.Engine, spreadsheet_id: str) -> None:
    """Release the rows of batches that a full spreadsheet could not take."""
    books = sa.select(INTENTS.c.id).where(
        INTENTS.c.book == spreadsheet_id, INTENTS.c.applied_at.is_(None)
    )
    held = sa.update(SHEET_ROWS).where(SHEET_ROWS.c.intent_id.in_(books))
    with engine.begin() as connection:
        connection.execute(held.values(intent_id=None, sending=None, sending_seq=None))
        connection.execute(sa.delete(INTENTS).where(INTENTS.c.id.in_(books)))


def shown_up_to(engine: sa.Engine, spreadsheet_id: str) -> int:
    """Return the last change up to which the spreadsheet shows every row that it should."""
    oldest: list[int | None] = []
    # Read first: what changes in between belongs to the next spreadsheet.
    newest = newest_seq(engine)
    with read_transaction(engine) as connection:
        first_rows = read_first_rows(connection, spreadsheet_id)
        for tab in TABS:
            if tab.order:
                pending = _pending(spreadsheet_id, tab, first_rows=first_rows).subquery()
                least = connection.execute(sa.select(sa.func.min(pending.c.changed_seq)))
                oldest.append(least.scalar_one())
    return min([newest, *(seq - 1 for seq in oldest if seq is not None)])


def expired_intents(
    engine: sa.Engine, spreadsheet_id: str, *, before: datetime, keep: int
) -> list[Intent]:
    """Return, without their rows, the batches of which no copy can still arrive.

    They were applied before the given time, or more than `keep` batches ago.
    """
    is_applied = (INTENTS.c.book == spreadsheet_id, INTENTS.c.applied_at.is_not(None))
    newest = sa.select(INTENTS.c.id).where(*is_applied).order_by(INTENTS.c.id.desc()).limit(keep)
    is_old = sa.or_(INTENTS.c.applied_at < before, INTENTS.c.id.not_in(newest))
    chosen = sa.select(INTENTS.c.id, INTENTS.c.token).where(*is_applied, is_old)
    with read_transaction(engine) as connection:
        return [Intent(*row, rows=()) for row in connection.execute(chosen)]


def delete_intents(engine: sa.Engine, intents: Iterable[Intent]) -> None:
    """Delete batches whose fences the spreadsheet no longer holds."""
    ids = [{"deleted": intent.id} for intent in intents]
    if ids:
        with engine.begin() as connection:
            chosen = sa.delete(INTENTS).where(INTENTS.c.id == sa.bindparam("deleted"))
            connection.execute(chosen, ids)


def has_pending(engine: sa.Engine, spreadsheet_id: str) -> bool:
    """Return whether a sync would send anything besides the counters of earlier syncs."""
    with read_transaction(engine) as connection:
        is_open = (INTENTS.c.book == spreadsheet_id, INTENTS.c.applied_at.is_(None))
        if connection.execute(sa.select(INTENTS.c.id).where(*is_open).limit(1)).first():
            return True
        # Rows that were taken down and that the spreadsheet still shows.
        gone = sa.select(SHEET_ROWS.c.key).where(
            SHEET_ROWS.c.book == spreadsheet_id, SHEET_ROWS.c.seq < 0
        )
        if connection.execute(gone.limit(1)).first():
            return True
        return any(_is_pending(connection, spreadsheet_id, tab) for tab in TABS)


def _new_intent(
    connection: sa.Connection, spreadsheet_id: str, *, limits: BatchLimits, now: datetime
) -> tuple[int, str] | None:
    chosen = _chosen_rows(connection, spreadsheet_id, limits)
    if not chosen:
        return None
    row = {"book": spreadsheet_id, "token": "", "made_at": now}
    intent_id = connection.execute(
        sa.insert(INTENTS).values(row).returning(INTENTS.c.id)
    ).scalar_one()
    # The id alone would repeat if the ledger were created again for the same spreadsheet.
    text = f"{spreadsheet_id} {intent_id} {now.isoformat()}"
    token = hashlib.sha256(text.encode()).hexdigest()[:16]
    connection.execute(sa.update(INTENTS).where(INTENTS.c.id == intent_id).values(token=token))
    _hold(connection, intent_id, chosen)
    return intent_id, token


def _hold(connection: sa.Connection, intent_id: int, chosen: list[dict[str, Any]]) -> None:
    """Store the cells of the rows with the intent; all rows belong to one spreadsheet."""
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
    connection: sa.Connection, spreadsheet_id: str, limits: BatchLimits
) -> list[dict[str, Any]]:
    """Return rows of all tabs until the batch is full; a single row may exceed the size."""
    chosen: list[dict[str, Any]] = []
    size_bytes = 0
    first_rows = read_first_rows(connection, spreadsheet_id)
    for tab in TABS:
        columns = [tab.table.c[name] for name in tab.columns]
        pending = _pending(spreadsheet_id, tab, *columns, first_rows=first_rows)
        for key, seq, *values in connection.execute(pending.limit(limits.max_rows - len(chosen))):
            cells = to_cells(tab, values, CellLimits(CELL_LIMIT, limits.clean_text))
            size_bytes += _request_bytes(cells)
            if chosen and size_bytes > limits.max_bytes:
                return chosen
            row = {"book": spreadsheet_id, "tab": tab.name, "key": str(key), "seq": seq}
            chosen.append({**row, "sending": json.dumps(cells, ensure_ascii=False)})
    return chosen


def _request_bytes(cells: list[Cell]) -> int:
    """Return at most how many bytes a row takes in a request, where é is six and 😀 is twelve."""
    # requests sends JSON with ASCII escapes, as json.dumps does by default.
    return len(json.dumps(cells)) + _CELL_BYTES * len(cells) + _ROW_BYTES


def _pending(
    spreadsheet_id: str, tab: Tab, *columns: sa.Column[Any], first_rows: FirstRows
) -> sa.Select[Any]:
    """Select key, change number and the given columns of rows that are not shown as they are."""
    table, rows = tab.table, SHEET_ROWS
    key = sa.cast(table.c[tab.key], sa.Text)
    here = sa.and_(rows.c.book == spreadsheet_id, rows.c.tab == tab.name, rows.c.key == key)
    chosen = (
        sa.select(table.c[tab.key], table.c.changed_seq, *columns)
        .select_from(table.outerjoin(rows, here))
        .where(sa.func.coalesce(rows.c.seq, 0) < table.c.changed_seq)
        .order_by(table.c[tab.key])
    )
    condition = is_shown(tab, first_rows)
    return chosen if condition is None else chosen.where(condition)


def _is_pending(connection: sa.Connection, spreadsheet_id: str, tab: Tab) -> bool:
    first_rows = read_first_rows(connection, spreadsheet_id)
    chosen = _pending(spreadsheet_id, tab, first_rows=first_rows)
    # Otherwise the counters of each sync would make the next one necessary.
    if tab.name == "Diagnostics":
        chosen = chosen.where(tab.table.c.stage != STAGE)
    return connection.execute(chosen.limit(1)).first() is not None


def _intent_rows(connection: sa.Connection, intent_id: int) -> tuple[OutboxRow, ...]:
    rows = SHEET_ROWS.c
    chosen = (
        sa.select(rows.tab, rows.key, rows.sending, rows.shown, rows.seq)
        .where(rows.intent_id == intent_id)
        # Keys are texts: by length first, so that numbers sort as numbers.
        .order_by(rows.sending_seq, sa.func.length(rows.key), rows.key)
    )
    return tuple(
        OutboxRow(tab, key, tuple(json.loads(cells)), json.loads(shown or "{}"), is_new=seq == 0)
        for tab, key, cells, shown, seq in connection.execute(chosen)
    )


def _edited_cells(row: OutboxRow) -> str:
    """Return the admins' cells of a row as JSON; '' for a tab without any."""
    tab = next(tab for tab in TABS if tab.name == row.tab)
    if not tab.edited:
        return ""
    cells = dict(zip(tab.columns, row.cells, strict=True))
    return json.dumps({name: cells[name] for name in tab.edited}, ensure_ascii=False)
