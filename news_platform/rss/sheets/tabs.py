"""The six tabs that show the ledger: their columns and widths, and ledger values as cells."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import (
    ANALYSES,
    ARTICLES_INDEX,
    CONFIG,
    DIAGNOSTICS,
    FEEDS,
    RAW,
)
from news_platform.text.normalize import cut_at_word_end

Cell = str | int | float | bool

# Ends a truncated cell, so that no reader takes it for the whole text.
CUT_MARK = " …[cut]"

# Neither XML nor a spreadsheet cell can hold these characters; tabs and line ends are allowed.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# In characters, as Excel measures columns.
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text", "summary"), 60),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 40),
    **dict.fromkeys(("value", "metric"), 24),
}
_DEFAULT_WIDTH = 18


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: its name and columns, and the ledger table it shows, with the key of its rows.

    `edited` names the columns that admins may change. `order` is the column that grows with newer
    rows: such a tab is divided among spreadsheets, a tab without it is complete in each of them.
    """

    name: str
    table: sa.Table
    columns: tuple[str, ...]
    key: str
    edited: tuple[str, ...] = ()
    order: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Return whether rows can be found again by their key; without one they never change."""
        return self.key in self.columns


def _columns(table: sa.Table, last: str) -> tuple[str, ...]:
    """Return the columns that a tab shows; those after `last` are not for editors."""
    names = table.columns.keys()
    return tuple(names[: names.index(last) + 1])


FEEDS_TAB = Tab(
    "Feeds", FEEDS, _columns(FEEDS, "checked_at"), "feed_url_canon", ("lang", "status", "notes")
)
RAW_TAB = Tab("Raw", RAW, _columns(RAW, "last_seen_rss"), "row_id", order="row_id")
INDEX_TAB = Tab(
    "ArticlesIndex",
    ARTICLES_INDEX,
    _columns(ARTICLES_INDEX, "rev_n"),
    "url_hash",
    order="row_id_raw",
)
# The number of a row is not shown.
DIAGNOSTICS_TAB = Tab(
    "Diagnostics", DIAGNOSTICS, _columns(DIAGNOSTICS, "notes")[1:], "id", order="id"
)
CONFIG_TAB = Tab("Config", CONFIG, _columns(CONFIG, "updated_at"), "key")
ANALYSES_TAB = Tab(
    "Analyses", ANALYSES, _columns(ANALYSES, "analysed_at"), "row_id", order="row_id"
)
TABS = (FEEDS_TAB, RAW_TAB, INDEX_TAB, DIAGNOSTICS_TAB, CONFIG_TAB, ANALYSES_TAB)


@dataclass(frozen=True, slots=True)
class CellLimits:
    """How many characters a cell may have, and how many of an article's text are shown."""

    cell: int
    clean_text: int = 20_000


def column_width(name: str) -> int:
    """Return the width of a column in characters: texts are wide, URLs medium."""
    return _WIDTHS.get(name, _DEFAULT_WIDTH)


def to_cells(tab: Tab, values: Sequence[object], limits: CellLimits) -> list[Cell]:
    """Return a ledger row as the cells of a tab; the ledger itself holds the whole text."""
    return [to_cell(name, value, limits) for name, value in zip(tab.columns, values, strict=True)]


def to_cell(name: str, value: object, limits: CellLimits) -> Cell:
    """Return a column's value as a cell: numbers stay, times and lists become text, None is ''."""
    if isinstance(value, bool | int | float):
        return value
    if name == "clean_text" and isinstance(value, str):
        value = cut_at_word_end(value, limits.clean_text)
    return truncate(_to_text(value), limits.cell)


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
