"""The ledger as one .xlsx file under the root: the editors' view where there is no Google Sheet.

The same ledger gives the same bytes. What the file was made from stands in its marker, so a ledger
that did not change writes nothing.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import xlsxwriter

from news_platform.rss.sheets.tabs import TABS, Cell, Tab, cell_of
from news_platform.storage.commit.markers import fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction

WORKBOOK_PATH = "article_sheets/articles.xlsx"
DATASET = "article_sheets"
PARTITION = "all"
# Excel's own limits: characters in a cell, rows in a sheet without the header.
CELL_LIMIT = 32_767
ROW_LIMIT = 1_048_575

# Grows when the same ledger would give another file.
_FORMAT = "2"
# Any fixed moment: the file's bytes must not tell when it was made.
_CREATED = datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text"), 60),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 40),
    **dict.fromkeys(("value", "metric"), 24),
}
_DEFAULT_WIDTH = 18


@dataclass(frozen=True, slots=True)
class WorkbookReport:
    """Where the workbook lies and how many rows each tab shows."""

    path: str
    rows: dict[str, int]
    left_out: dict[str, int]


def is_stale(engine: sa.Engine, store: ObjectStore) -> bool:
    """Tell whether the ledger changed since the workbook was written, or the file is gone."""
    marker = read_markers(store, DATASET).get(PARTITION)
    if marker is None or marker.inputs != ledger_fingerprint(engine):
        return True
    return not store.exists(WORKBOOK_PATH)


def ledger_fingerprint(engine: sa.Engine) -> str:
    """Return one name for the state of everything the tabs show."""
    with read_transaction(engine) as connection:
        return fingerprint([_FORMAT, *(_table_state(connection, tab) for tab in TABS)])


def _table_state(connection: sa.Connection, tab: Tab) -> str:
    state = sa.select(sa.func.max(tab.table.c.changed_seq), sa.func.count())
    newest, rows = connection.execute(state.select_from(tab.table)).one()
    return f"{tab.name}:{newest}:{rows}"


def write_workbook(engine: sa.Engine, store: ObjectStore) -> WorkbookReport:
    """Write all tabs to the workbook, which appears whole or not at all."""
    inputs = ledger_fingerprint(engine)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "workbook.xlsx"
        with read_transaction(engine) as connection:
            report = _fill(made, connection, scratch=folder)
        store.put(WORKBOOK_PATH, made)
    shown = {"files": [WORKBOOK_PATH], "rows": report.rows, "left_out": report.left_out}
    write_marker(store, DATASET, PARTITION, inputs=inputs, report=shown)
    return report


def _fill(made: Path, connection: sa.Connection, *, scratch: str) -> WorkbookReport:
    options = {"constant_memory": True, "tmpdir": scratch}
    rows, left_out = {}, {}
    with xlsxwriter.Workbook(str(made), options) as book:
        book.set_properties({"title": "News Platform", "created": _CREATED})
        heading = book.add_format({"bold": True, "bottom": 1})
        for tab in TABS:
            total = _count(connection, tab)
            left_out[tab.name] = max(0, total - ROW_LIMIT)
            cells = _rows(connection, tab, skip=left_out[tab.name])
            rows[tab.name] = _write_tab(book, tab, cells, heading=heading)
    return WorkbookReport(WORKBOOK_PATH, rows, left_out)


def _count(connection: sa.Connection, tab: Tab) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(tab.table)).scalar_one())


def _rows(connection: sa.Connection, tab: Tab, *, skip: int) -> Iterator[list[Cell]]:
    """Give the cells of each row, oldest first; past the limit the oldest are skipped."""
    columns = [tab.table.c[name] for name in tab.columns]
    order = [tab.table.c[name] for name in dict.fromkeys((tab.order or tab.key, tab.key))]
    chosen = sa.select(*columns).order_by(*order).offset(skip)
    for row in connection.execute(chosen.execution_options(yield_per=500)):
        yield [cell_of(value, limit=CELL_LIMIT) for value in row]


def _write_tab(book: Any, tab: Tab, rows: Iterator[list[Cell]], *, heading: Any) -> int:
    sheet = book.add_worksheet(tab.name)
    sheet.freeze_panes(1, 0)
    for place, name in enumerate(tab.columns):
        sheet.set_column(place, place, _WIDTHS.get(name, _DEFAULT_WIDTH))
        sheet.write_string(0, place, name, heading)
    count = 0
    for count, cells in enumerate(rows, 1):
        for place, cell in enumerate(cells):
            _write_cell(sheet, count, place, cell)
    sheet.autofilter(0, 0, count, len(tab.columns) - 1)
    return count


def _write_cell(sheet: Any, row: int, place: int, cell: Cell) -> None:
    """Write a cell as what it is: a text that looks like a formula or a link stays a text."""
    if isinstance(cell, bool):
        sheet.write_boolean(row, place, cell)
    elif isinstance(cell, str):
        if cell:
            sheet.write_string(row, place, cell)
    else:
        sheet.write_number(row, place, cell)
