"""The six tabs that show the ledger: their columns, their cells, and where the columns are."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.full_text import cut_at_word_end
from news_platform.rss.ledger.newsroom_tables import ANALYSES
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
"""One request of a batchUpdate, as the Sheets API defines it."""

# Ends a truncated cell, so that no reader takes it for the whole text.
CUT_MARK = " …[cut]"

# Neither XML nor a spreadsheet cell can hold these characters; tabs and line ends are allowed.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: its name and columns, and the ledger table it shows.

    `key` is the key of the ledger table; `key_column` is the column that holds it, or None where
    rows are only appended. `edited` names the columns that admins may change.
    """

    name: str
    table: sa.Table
    columns: tuple[str, ...]
    key: str
    key_column: str | None
    edited: tuple[str, ...] = ()
    # The column that grows with newer rows; None: every spreadsheet shows all rows.
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
        # These rows never change, so the tab does not need their id to find them again.
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
    Tab(
        "Analyses",
        ANALYSES,
        ("row_id", "summary", "keywords", "sentiment", "topics", "model", "analysed_at"),
        key="row_id",
        key_column="row_id",
        order="row_id",
    ),
)
# The tabs with a row per article, whose `order` is the article's row_id.
ARTICLE_TABS = tuple(tab for tab in TABS if tab.name in ("Raw", "ArticlesIndex", "Analyses"))


@dataclass(frozen=True, slots=True)
class CellLimits:
    """How many characters a cell may have, and how many of an article's text are shown."""

    cell: int
    clean_text: int = 20_000


def to_cells(tab: Tab, values: Sequence[object], limits: CellLimits) -> list[Cell]:
    """Return a ledger row as the cells of a tab; the ledger itself holds the whole text."""
    return [
        to_cell(shown_value(name, value, limits), limit=limits.cell)
        for name, value in zip(tab.columns, values, strict=True)
    ]


def shown_value(name: str, value: object, limits: CellLimits) -> object:
    """Return the value of a column as far as it is shown."""
    if name == "clean_text" and isinstance(value, str):
        return cut_at_word_end(value, limits.clean_text)
    return value


def to_cell(value: object, *, limit: int) -> Cell:
    """Return a ledger value as a cell: numbers stay, times and lists become text, None is ''."""
    if isinstance(value, bool | int | float):
        return value
    return truncate(_to_text(value), limit)


def _to_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, tuple):
        return _UNPRINTABLE.sub("", json.dumps(value, ensure_ascii=False)) if value else ""
    return _UNPRINTABLE.sub("", str(value))


def truncate(text: str, limit: int) -> str:
    """Truncate a text to `limit` UTF-16 units, as spreadsheets count, and append the mark."""
    # A character is at most two units, so short texts need no encoding.
    if len(text) * 2 <= limit:
        return text
    units = text.encode("utf-16-le")
    if len(units) <= limit * 2:
        return text
    kept = units[: (limit - len(CUT_MARK)) * 2]
    return kept.decode("utf-16-le", errors="ignore") + CUT_MARK


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The positions of our columns in a tab; `missing` ones are added to the right of `width`."""

    positions: dict[str, int]
    width: int
    missing: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


def parse_header(tab: Tab, header: Sequence[Cell], *, before: Sequence[str] = ()) -> ColumnLayout:
    """Parse a header row; `before` is the header after the last sync.

    If one of our columns is gone and an unknown name is there, the column was renamed. Writing on
    would fill a second column next to it, so this is an error, as is a duplicate column.
    """
    names = [str(cell).strip() for cell in header]
    _reject_duplicates(tab, names)
    positions = {name: names.index(name) for name in tab.columns if name in names}
    missing = tuple(name for name in tab.columns if name not in positions)
    _reject_renamed(tab, names, missing=missing, before=before)
    if any(names) and tab.key_column in missing:
        raise InputError(
            f"tab {tab.name!r} has no column {tab.key_column!r}, which identifies its rows: "
            "undo the change, or delete the tab so that it is created again",
            thing=tab.name,
        )
    return ColumnLayout(positions, len(names), missing, tuple(names))


def _reject_duplicates(tab: Tab, names: Sequence[str]) -> None:
    for name in tab.columns:
        if names.count(name) > 1:
            raise InputError(
                f"tab {tab.name!r} has {names.count(name)} columns {name!r}: rename all but one",
                thing=tab.name,
            )


def _reject_renamed(
    tab: Tab, names: Sequence[str], *, missing: Sequence[str], before: Sequence[str]
) -> None:
    lost = [name for name in missing if name in before]
    new = [name for name in names if name and name not in before and name not in tab.columns]
    if lost and new:
        raise InputError(
            f"tab {tab.name!r}: column {lost[0]!r} is gone and {new[0]!r} is new: "
            f"if it was renamed, rename it back to {lost[0]!r}",
            thing=tab.name,
        )


def column_letter(index: int) -> str:
    """Return the letters of a column by its index: 0 is A, 26 is AA."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def quote_title(title: str) -> str:
    """Quote a tab's title for an A1 range."""
    return "'" + title.replace("'", "''") + "'"


def key_text(cell: Cell) -> str:
    """Return a key as the ledger writes it; a spreadsheet may return 7.0 for 7."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def cells_request(
    sheet_id: int, row_index: int, column_index: int, cells: Sequence[Cell]
) -> Request:
    """Return the request that writes adjacent cells of one row."""
    start = {"sheetId": sheet_id, "rowIndex": row_index, "columnIndex": column_index}
    # Only the values are written: formats that people set stay.
    rows = [{"values": [cell_data(cell) for cell in cells]}]
    return {"updateCells": {"start": start, "rows": rows, "fields": "userEnteredValue"}}


def cell_data(cell: Cell) -> Request:
    """Return a typed cell value, so that a text is never read as a formula, date or number."""
    if isinstance(cell, bool):
        return {"userEnteredValue": {"boolValue": cell}}
    if isinstance(cell, str):
        # Without a value the cell is blank, which an empty text is not.
        return {"userEnteredValue": {"stringValue": cell}} if cell else {}
    return {"userEnteredValue": {"numberValue": cell}}
