"""The five tabs that show the ledger, and how a value of the ledger becomes a cell."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

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
