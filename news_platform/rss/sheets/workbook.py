"""Write the ledger to one .xlsx file under the root, for editors without a Google Sheet.

The same ledger gives the same bytes. The marker records the state of the ledger that the file was
written from, so an unchanged ledger writes nothing.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.rss.sheets.tabs import TABS, Cell, Tab, to_cell
from news_platform.storage.commit.markers import fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction

WORKBOOK_PATH = "article_sheets/articles.xlsx"
DATASET = "article_sheets"
PARTITION = "all"
# Excel's limits: characters per cell, and rows per sheet without the header.
CELL_LIMIT = 32_767
ROW_LIMIT = 1_048_575

# Increase it when the same ledger would give different bytes, so that workbooks are rewritten.
_FORMAT = "2"
# Any fixed time: the bytes must not depend on when the file was written.
_CREATED = datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None)
# In characters, as Excel measures columns.
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text"), 60),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 40),
    **dict.fromkeys(("value", "metric"), 24),
}
_DEFAULT_WIDTH = 18


@dataclass(frozen=True, slots=True)
class WorkbookReport:
    """The path of the workbook, and how many rows each tab shows and leaves out."""

    path: str
    rows: dict[str, int]
    left_out: dict[str, int]


def is_stale(engine: sa.Engine, store: ObjectStore) -> bool:
    """Return whether the ledger changed since the workbook was written, or the file is missing."""
    marker = read_markers(store, DATASET).get(PARTITION)
    if marker is None or marker.inputs != ledger_fingerprint(engine):
        return True
    return not store.exists(WORKBOOK_PATH)


def ledger_fingerprint(engine: sa.Engine) -> str:
    """Return a fingerprint of everything that the tabs show."""
    with read_transaction(engine) as connection:
        return fingerprint([_FORMAT, *(_table_state(connection, tab) for tab in TABS)])


def _table_state(connection: sa.Connection, tab: Tab) -> str:
    state = sa.select(sa.func.max(tab.table.c.changed_seq), sa.func.count())
    newest, rows = connection.execute(state.select_from(tab.table)).one()
    return f"{tab.name}:{newest}:{rows}"


def write_workbook(engine: sa.Engine, store: ObjectStore) -> WorkbookReport:
    """Write all tabs to the workbook and publish it with one PUT."""
    # Taken before the rows are read: a change in between makes the workbook stale, never wrong.
    inputs = ledger_fingerprint(engine)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workbook.xlsx"
        with read_transaction(engine) as connection:
            report = _fill(path, connection, scratch=folder)
        store.put(WORKBOOK_PATH, path)
    contents = {"files": [WORKBOOK_PATH], "rows": report.rows, "left_out": report.left_out}
    write_marker(store, DATASET, PARTITION, inputs=inputs, report=contents)
    return report


def _fill(path: Path, connection: sa.Connection, *, scratch: str) -> WorkbookReport:
    # Imported here because only this function needs it, and every process imports this module.
    import xlsxwriter

    # Rows go to a scratch file as they come, because all of them may not fit into memory.
    options = {"constant_memory": True, "tmpdir": scratch}
    rows, left_out = {}, {}
    with xlsxwriter.Workbook(str(path), options) as book:
        book.set_properties({"title": "News Platform", "created": _CREATED})
        heading = book.add_format({"bold": True, "bottom": 1})
        for tab in TABS:
            total = _count(connection, tab)
            left_out[tab.name] = max(0, total - ROW_LIMIT)
            cells = _iter_rows(connection, tab, skip=left_out[tab.name])
            rows[tab.name] = _write_tab(book, tab, cells, heading=heading)
    return WorkbookReport(WORKBOOK_PATH, rows, left_out)


def _count(connection: sa.Connection, tab: Tab) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(tab.table)).scalar_one())


def _iter_rows(connection: sa.Connection, tab: Tab, *, skip: int) -> Iterator[list[Cell]]:
    """Yield the cells of each row, oldest first, without the `skip` oldest rows."""
    columns = [tab.table.c[name] for name in tab.columns]
    order = [tab.table.c[name] for name in dict.fromkeys((tab.order or tab.key, tab.key))]
    chosen = sa.select(*columns).order_by(*order).offset(skip)
    for row in connection.execute(chosen.execution_options(yield_per=500)):
        yield [to_cell(value, limit=CELL_LIMIT) for value in row]


def _write_tab(book: Any, tab: Tab, rows: Iterator[list[Cell]], *, heading: Any) -> int:
    sheet = book.add_worksheet(tab.name)
    sheet.freeze_panes(1, 0)
    for index, name in enumerate(tab.columns):
        sheet.set_column(index, index, _WIDTHS.get(name, _DEFAULT_WIDTH))
        sheet.write_string(0, index, name, heading)
    count = 0
    for count, cells in enumerate(rows, 1):
        for index, cell in enumerate(cells):
            _write_cell(sheet, count, index, cell)
    sheet.autofilter(0, 0, count, len(tab.columns) - 1)
    return count


def _write_cell(sheet: Any, row: int, column: int, cell: Cell) -> None:
    """Write a cell by its type, so that a text never becomes a formula or a link."""
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, str):
        if cell:
            sheet.write_string(row, column, cell)
    else:
        sheet.write_number(row, column, cell)
