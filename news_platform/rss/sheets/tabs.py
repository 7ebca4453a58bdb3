"""The five tabs that show the ledger, and how a value of the ledger becomes a cell."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.ledger.tables import (
    ARTICLES_INDEX,
    CONFIG,
    DIAGNOSTICS,
    FEEDS,
    FEEDS_COLUMNS,
    INDEX_COLUMNS,
    RAW,
    RAW_COLUMNS,
)

Cell = str | int | float | bool

Request = dict[str, Any]

# Stands at the end of a cell that was cut, so that nobody takes it for the whole text.
CUT_MARK = " …[cut]"

# Neither XML nor a sheet's cell can hold these; a tab and a line end are fine.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: its name and columns, and the table of the ledger that it shows.

    `key` is the ledger's key; `key_column` is the column that bears it, or None where rows are
    only ever added. `edited` names the columns whose owner is the admin.
    """

    name: str
    table: sa.Table
    columns: tuple[str, ...]
    key: str
    key_column: str | None
    edited: tuple[str, ...] = ()
    # The number by which rows grow newer; None: every book shows all rows, however old.
    order: str | None = None


FEEDS_TAB = Tab(
    "Feeds",
    FEEDS,
    FEEDS_COLUMNS,
    key="feed_url_canon",
    key_column="feed_url_canon",
    edited=("lang", "status", "notes"),
)
TABS = (
    FEEDS_TAB,
    Tab("Raw", RAW, RAW_COLUMNS, key="row_id", key_column="row_id", order="row_id"),
    Tab(
        "ArticlesIndex",
        ARTICLES_INDEX,
        INDEX_COLUMNS,
        key="url_hash",
        key_column="url_hash",
        order="row_id_raw",
    ),
    Tab(
        "Diagnostics",
        DIAGNOSTICS,
        ("run_at", "stage", "metric", "value", "notes"),
        key="id",
        key_column=None,
        order="id",
    ),
    Tab(
        "Config",
        CONFIG,
        ("key", "value", "updated_at"),
        key="key",
        key_column="key",
    ),
)


def cell_of(value: object, *, limit: int) -> Cell:
    """Return what a cell shows: numbers as such, moments and lists as text, nothing as ''."""
    if isinstance(value, bool | int | float):
        return value
    return cut(_text_of(value), limit)


def _text_of(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, tuple):
        return _UNPRINTABLE.sub("", json.dumps(value, ensure_ascii=False)) if value else ""
    return _UNPRINTABLE.sub("", str(value))


def cut(text: str, limit: int) -> str:
    """Cut a text to so many UTF-16 units, as sheets count them, and mark the cut."""
    if len(text) * 2 <= limit:
        return text
    units = text.encode("utf-16-le")
    if len(units) <= limit * 2:
        return text
    kept = units[: (limit - len(CUT_MARK)) * 2]
    return kept.decode("utf-16-le", errors="ignore") + CUT_MARK


@dataclass(frozen=True, slots=True)
class Layout:
    """The place of each of our columns in a tab; `missing` ones are added right of `width`."""

    places: dict[str, int]
    width: int
    missing: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


def layout_of(tab: Tab, header: Sequence[Cell], *, before: Sequence[str] = ()) -> Layout:
    """Read a header row; `before` is what it said after the last sync.

    A column of ours that is gone while a new name stands in the row was renamed: writing on would
    fill a second column beside it, so this is an error, as is a column that stands there twice.
    """
    names = [str(cell).strip() for cell in header]
    _refuse_doubles(tab, names)
    places = {name: names.index(name) for name in tab.columns if name in names}
    missing = tuple(name for name in tab.columns if name not in places)
    _refuse_renamed(tab, names, missing=missing, before=before)
    if any(names) and tab.key_column in missing:
        raise InputError(
            f"tab {tab.name!r} has no column {tab.key_column!r}, so its rows cannot be told apart: "
            "undo the change, or delete the tab to have it made anew",
            thing=tab.name,
        )
    return Layout(places, len(names), missing, tuple(names))


def _refuse_doubles(tab: Tab, names: Sequence[str]) -> None:
    for name in tab.columns:
        if names.count(name) > 1:
            raise InputError(
                f"tab {tab.name!r} has {names.count(name)} columns {name!r}: rename all but one",
                thing=tab.name,
            )


def _refuse_renamed(
    tab: Tab, names: Sequence[str], *, missing: Sequence[str], before: Sequence[str]
) -> None:
    lost = [name for name in missing if name in before]
    new = [name for name in names if name and name not in before and name not in tab.columns]
    if lost and new:
        raise InputError(
            f"tab {tab.name!r}: column {lost[0]!r} is gone and {new[0]!r} is new: "
            f"if it was renamed, name it {lost[0]!r} again",
            thing=tab.name,
        )


def column_letter(place: int) -> str:
    """Return the letters of a column, counted from 0: 0 is A, 26 is AA."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def quoted(title: str) -> str:
    """Return a tab's title as A1 ranges want it."""
    return "'" + title.replace("'", "''") + "'"


def key_text(cell: Cell) -> str:
    """Return a key as the ledger writes it: a sheet may give back 7.0 for 7."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def cells_request(sheet_id: int, row_index: int, place: int, cells: Sequence[Cell]) -> Request:
    """Return the request that writes cells side by side."""
    start = {"sheetId": sheet_id, "rowIndex": row_index, "columnIndex": place}
    rows = [{"values": [cell_data(cell) for cell in cells]}]
    return {"updateCells": {"start": start, "rows": rows, "fields": "userEnteredValue"}}


def cell_data(cell: Cell) -> Request:
    """Return a cell as the value it is: a text is never read as a formula, a date or a number."""
    if isinstance(cell, bool):
        return {"userEnteredValue": {"boolValue": cell}}
    if isinstance(cell, str):
        return {"userEnteredValue": {"stringValue": cell}} if cell else {}
    return {"userEnteredValue": {"numberValue": cell}}
