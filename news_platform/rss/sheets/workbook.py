"""Write the ledger to an .xlsx file under the root, for editors without a Google Sheet.

The workbook shows the feeds and the newest rows. Their number is bounded, so a change costs a
bounded time. The same ledger gives the same bytes, and an unchanged ledger writes nothing.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.rss.sheets.books import (
    ARTICLES_TAB,
    TABS,
    Cell,
    CellLimits,
    Tab,
    column_width,
    to_cell,
)
from news_platform.storage.commit.markers import fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.build_filters import cleaned_later

FOLDER = "article_sheets"

# Excel's limits: characters per cell, and rows per sheet without the header.
CELL_LIMIT = 32_767
ROW_LIMIT = 1_048_575

# Any fixed time: the bytes must not depend on when the file was written.
_CREATED = datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None)
# Excel knows no dates before its own first year.
_FIRST_YEAR = 1900
_DATE_FORMAT = "yyyy-mm-dd hh:mm:ss"
_LINK = ARTICLES_TAB.columns.index("Link")
# Excel follows no longer ones.
_LONGEST_LINK = 2_000


TabRows = tuple[Tab, Iterable[Sequence[object]]]
"""A tab of a book with its ledger rows, each with the values of the tab's columns."""


def write_xlsx(path: Path, tabs: Iterable[TabRows], *, clean_text: int) -> dict[str, int]:
    """Write a book and return the number of rows of each tab.

    The same rows give the same bytes. Rows go to a scratch file beside the book as they come.
    """
    # Imported here because only this function needs it, and every process imports this module.
    import xlsxwriter

    limits = CellLimits(CELL_LIMIT, clean_text)
    options = {"constant_memory": True, "tmpdir": str(path.parent)}
    with xlsxwriter.Workbook(str(path), options) as book:
        book.set_properties({"title": "News Platform", "created": _CREATED})
        heading = book.add_format({"bold": True, "bottom": 1})
        moment = book.add_format({"num_format": _DATE_FORMAT})
        return {
            tab.name: _write_tab(book, tab, rows, limits, heading=heading, moment=moment)
            for tab, rows in tabs
        }


def _write_tab(
    book: Any,
    tab: Tab,
    rows: Iterable[Sequence[object]],
    limits: CellLimits,
    *,
    heading: Any,
    moment: Any,
) -> int:
    sheet = book.add_worksheet(tab.name)
    sheet.freeze_panes(1, 0)
    for index, name in enumerate(tab.columns):
        sheet.set_column(index, index, column_width(name))
        sheet.write_string(0, index, name, heading)
    count = 0
    for values in rows:
        count += 1
        for index, (name, value) in enumerate(zip(tab.columns, values, strict=True)):
            cell = to_cell(name, value, limits)
            if name == "Title" and str(cell) and len(link := str(values[_LINK])) <= _LONGEST_LINK:
                sheet.write_url(count, index, link, string=str(cell))
            elif name != "Day" and isinstance(value, datetime) and value.year >= _FIRST_YEAR:
                # Excel has no time zones: all times are UTC, as in the ledger.
                when = value.astimezone(UTC).replace(tzinfo=None, microsecond=0)
                sheet.write_datetime(count, index, when, moment)
            else:
                _write_cell(sheet, count, index, cell)
    sheet.autofilter(0, 0, count, len(tab.columns) - 1)
    return count


def _write_cell(sheet: Any, row: int, column: int, cell: Cell) -> None:
    """Write a cell by its type, so that a text never becomes a formula."""
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, str):
        if cell:
            sheet.write_string(row, column, cell)
    else:
        sheet.write_number(row, column, cell)


WORKBOOK_PATH = f"{FOLDER}/articles.xlsx"
DATASET = "article_sheets"
PARTITION = "all"

# Increase it when the same ledger would give different bytes, so that workbooks are rewritten.
_FORMAT = "5"


@dataclass(frozen=True, slots=True)
class WorkbookOptions:
    """Rows of a tab, and characters of a text."""

    # Spreadsheet programs open a book of this size within seconds.
    rows_per_book: int = 20_000
    clean_text_limit: int = 20_000


@dataclass(frozen=True, slots=True)
class WorkbookReport:
    """The path of the workbook, and how many rows each of its tabs shows and leaves out."""

    path: str
    rows: dict[str, int]
    left_out: dict[str, int]


_DEFAULTS = WorkbookOptions()


def is_stale(engine: sa.Engine, store: ObjectStore, options: WorkbookOptions = _DEFAULTS) -> bool:
    """Return whether the ledger changed since the workbook was written, or that is gone."""
    marker = read_markers(store, DATASET).get(PARTITION)
    if marker is None or marker.inputs != ledger_fingerprint(engine, options):
        return True
    return not store.exists(WORKBOOK_PATH)


def ledger_fingerprint(engine: sa.Engine, options: WorkbookOptions = _DEFAULTS) -> str:
    """Return a fingerprint of everything that the workbook shows."""
    shape = f"{_FORMAT}:{options.rows_per_book}:{options.clean_text_limit}"
    with read_transaction(engine) as connection:
        return fingerprint([shape, *(_table_state(connection, tab) for tab in TABS)])


def _table_state(connection: sa.Connection, tab: Tab) -> str:
    state = sa.select(sa.func.max(tab.table.c.changed_seq), sa.func.count())
    newest, rows = connection.execute(state.select_from(tab.table)).one()
    return f"{tab.name}:{newest}:{rows}"


def write_workbook(
    engine: sa.Engine, store: ObjectStore, options: WorkbookOptions = _DEFAULTS
) -> WorkbookReport:
    """Write the workbook with one PUT."""
    with cleaned_later(store, {DATASET: ["all"]}):
        return write_workbook_now(engine, store, options)


def write_workbook_now(
    engine: sa.Engine, store: ObjectStore, options: WorkbookOptions = _DEFAULTS
) -> WorkbookReport:
    """Write the workbook while a takedown is served, from a ledger that is clean already."""
    # Taken before the rows are read: a change in between makes the workbook stale, never wrong.
    inputs = ledger_fingerprint(engine, options)
    with read_transaction(engine) as connection:
        firsts = {
            tab.name: _first_of_newest(connection, tab, options.rows_per_book)
            for tab in TABS
            if tab.order
        }
        tabs = [(tab, _iter_rows(connection, tab, first=firsts.get(tab.name))) for tab in TABS]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "workbook.xlsx"
            rows = write_xlsx(file, tabs, clean_text=options.clean_text_limit)
            store.put(WORKBOOK_PATH, file)
        left_out = {tab.name: _count(connection, tab) - rows[tab.name] for tab in TABS}
    report = {"files": [WORKBOOK_PATH], "rows": rows, "left_out": left_out}
    write_marker(store, DATASET, PARTITION, inputs=inputs, report=report)
    return WorkbookReport(WORKBOOK_PATH, rows, left_out)


def _first_of_newest(connection: sa.Connection, tab: Tab, rows: int) -> int | None:
    """Return where the newest rows of a tab begin; None if it shows all."""
    order = tab.table.c[tab.order or tab.key]
    chosen = sa.select(order).order_by(order.desc()).offset(min(rows, ROW_LIMIT) - 1).limit(1)
    return connection.execute(chosen).scalar_one_or_none()


def _count(connection: sa.Connection, tab: Tab) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(tab.table)).scalar_one())


def _iter_rows(connection: sa.Connection, tab: Tab, *, first: int | None) -> Iterator[sa.Row[Any]]:
    """Yield the rows of a tab from `first` on, oldest first; those for editors newest first."""
    table = tab.table.c
    columns, ordering = [table[name] for name in tab.columns], table[tab.order or tab.key]
    order = (table.Day.desc(), ordering.desc()) if tab is ARTICLES_TAB else (ordering,)
    chosen = sa.select(*columns).order_by(*order, table[tab.key]).limit(ROW_LIMIT)
    if first is not None:
        chosen = chosen.where(ordering >= first)
    yield from connection.execute(chosen.execution_options(yield_per=500))
