"""The values methods that we and gspread need: get and batchGet."""

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from news_platform_tests.emulators.sheets.a1 import Range, parse, written
from news_platform_tests.emulators.sheets.cells import Formula, Value, display, unformatted
from news_platform_tests.emulators.sheets.changes import Body, Book
from news_platform_tests.emulators.sheets.grid import Invalid, Sheet


@dataclass(frozen=True, slots=True)
class Reading:
    """How values are returned, by the names of the API's query parameters."""

    majorDimension: str = "ROWS"
    valueRenderOption: str = "FORMATTED_VALUE"
    dateTimeRenderOption: str = "SERIAL_NUMBER"

    def __post_init__(self) -> None:
        for name, known in _READING.items():
            if getattr(self, name) not in known:
                raise Invalid(f"Invalid value at '{name}': {getattr(self, name)!r}")

    def shown(self, value: Value) -> Value:
        """Return a value as the options ask; formulas are kept, but not computed."""
        if isinstance(value, Formula):
            return value if self.valueRenderOption == "FORMULA" else "#NAME?"
        if self.valueRenderOption == "FORMATTED_VALUE":
            return display(value)
        return unformatted(value)


_READING = {
    "majorDimension": ("ROWS", "COLUMNS"),
    "valueRenderOption": ("FORMATTED_VALUE", "UNFORMATTED_VALUE", "FORMULA"),
    "dateTimeRenderOption": ("SERIAL_NUMBER", "FORMATTED_STRING"),
}


def get_values(book: Book, text: str, reading: Reading) -> Body:
    """Answer values.get."""
    found = parse(text)
    sheet = book.titled(found.title)
    rows = sheet.get(found, reading.shown)
    values = rows if reading.majorDimension == "ROWS" else _columns(rows)
    area = written(sheet.title, _closed(sheet, found))
    answer: Body = {"range": area, "majorDimension": reading.majorDimension}
    return {**answer, "values": values} if values else answer


def batch_get(book: Book, ranges: list[str], reading: Reading) -> Body:
    """Answer values.batchGet."""
    found = [get_values(book, text, reading) for text in ranges]
    return {"spreadsheetId": book.id, "valueRanges": found}


def _columns(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip_longest(*rows, fillvalue="")]


def _closed(sheet: Sheet, found: Range) -> Range:
    return replace(
        found,
        bottom=sheet.row_count if found.bottom is None else found.bottom,
        right=sheet.column_count if found.right is None else found.right,
    )
