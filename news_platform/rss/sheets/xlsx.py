"""Write rows of the ledger as the tabs of one .xlsx file, in constant memory."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from news_platform.rss.sheets.tabs import Cell, CellLimits, Tab, column_width, to_cell

# Excel's limits: characters per cell, and rows per sheet without the header.
CELL_LIMIT = 32_767
ROW_LIMIT = 1_048_575

# Any fixed time: the bytes must not depend on when the file was written.
_CREATED = datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None)
# Excel knows no dates before its own first year.
_FIRST_YEAR = 1900
_DATE_FORMAT = "yyyy-mm-dd hh:mm:ss"


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
            tab.name: _write_tab(book, (tab, rows), limits, heading=heading, moment=moment)
            for tab, rows in tabs
        }


def _write_tab(book: Any, given: TabRows, limits: CellLimits, *, heading: Any, moment: Any) -> int:
    tab, rows = given
    sheet = book.add_worksheet(tab.name)
    sheet.freeze_panes(1, 0)
    for index, name in enumerate(tab.columns):
        sheet.set_column(index, index, column_width(name))
        sheet.write_string(0, index, name, heading)
    count = 0
    for values in rows:
        count += 1
        for index, (name, value) in enumerate(zip(tab.columns, values, strict=True)):
            if isinstance(value, datetime) and value.year >= _FIRST_YEAR:
                # Excel has no time zones: all times are UTC, as in the ledger.
                when = value.astimezone(UTC).replace(tzinfo=None, microsecond=0)
                sheet.write_datetime(count, index, when, moment)
            else:
                _write_cell(sheet, count, index, to_cell(name, value, limits))
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
