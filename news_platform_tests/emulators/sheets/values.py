"""The values methods: get, update, append and clear, and their batch forms."""

from dataclasses import replace
from itertools import zip_longest
from typing import Any

from news_platform_tests.emulators.sheets.a1 import Range, parse, written
from news_platform_tests.emulators.sheets.changes import Body, Book
from news_platform_tests.emulators.sheets.grid import Sheet, Value


def get_values(book: Book, text: str, *, major: str = "ROWS") -> Body:
    """Answer values.get."""
    found = parse(text)
    sheet = book.titled(found.title)
    values = sheet.get(found) if major == "ROWS" else _columns(sheet.get(found))
    shown: Body = {"range": written(sheet.title, _closed(sheet, found)), "majorDimension": major}
    return {**shown, "values": values} if values else shown


def batch_get(book: Book, ranges: list[str]) -> Body:
    """Answer values.batchGet."""
    return {"spreadsheetId": book.id, "valueRanges": [get_values(book, text) for text in ranges]}


def update_values(book: Book, text: str, body: Body, *, option: str) -> Body:
    """Answer values.update; the grid must be large enough."""
    found = parse(text)
    sheet = book.titled(found.title)
    values = _entered(body, option)
    sheet.put(found.top, found.left, values)
    return _updated(book, sheet, replace(found, title=None), values)


def batch_update_values(book: Book, body: Body) -> Body:
    """Answer values.batchUpdate."""
    option = body["valueInputOption"]
    answers = [update_values(book, item["range"], item, option=option) for item in body["data"]]
    return {
        "spreadsheetId": book.id,
        "responses": answers,
        "totalUpdatedCells": sum(answer["updatedCells"] for answer in answers),
    }


def append_values(book: Book, text: str, body: Body, *, option: str) -> Body:
    """Answer values.append: write below the table that touches the range.

    The table ends at the first empty row at or below the range's start.
    """
    found = parse(text)
    sheet = book.titled(found.title)
    values = _entered(body, option)
    bottom = found.top
    while bottom < len(sheet.rows) and any(cell not in (None, "") for cell in sheet.rows[bottom]):
        bottom += 1
    sheet.row_count = max(sheet.row_count, bottom + len(values))
    sheet.put(bottom, found.left, values)
    table = Range(None, found.top, found.left, bottom, _width(sheet))
    answer: Body = {"spreadsheetId": book.id}
    if bottom > found.top:
        answer["tableRange"] = written(sheet.title, table)
    updates = _updated(book, sheet, Range(None, bottom, found.left), values)
    return {**answer, "updates": updates}


def clear_values(book: Book, text: str) -> Body:
    """Answer values.clear."""
    return {"spreadsheetId": book.id, "clearedRange": _clear(book, text)}


def batch_clear(book: Book, ranges: list[str]) -> Body:
    """Answer values.batchClear."""
    return {"spreadsheetId": book.id, "clearedRanges": [_clear(book, text) for text in ranges]}


def _columns(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip_longest(*rows, fillvalue="")]


def _clear(book: Book, text: str) -> str:
    found = parse(text)
    sheet = book.titled(found.title)
    closed = _closed(sheet, found)
    for index, row in enumerate(sheet.rows[closed.top : closed.bottom], closed.top):
        kept = enumerate(row)
        outside = closed.right or sheet.column_count
        sheet.rows[index] = tuple(
            None if closed.left <= place < outside else value for place, value in kept
        )
    return written(sheet.title, closed)


def _closed(sheet: Sheet, found: Range) -> Range:
    return replace(
        found,
        bottom=sheet.row_count if found.bottom is None else found.bottom,
        right=sheet.column_count if found.right is None else found.right,
    )


def _width(sheet: Sheet) -> int:
    return max((len(row) for row in sheet.rows), default=1) or 1


def _entered(body: Body, option: str) -> list[list[Value]]:
    return [[_value(value, option) for value in row] for row in body.get("values", [])]


def _value(value: Any, option: str) -> Value:
    """Return the value to store: unchanged with RAW, otherwise as if a person had typed it."""
    if option == "RAW" or not isinstance(value, str):
        kept: Value = value
        return kept
    if value.startswith(("=", "+")):
        return f"#FORMULA {value}"
    try:
        return float(value)
    except ValueError:
        return value


def _updated(book: Book, sheet: Sheet, at: Range, values: list[list[Value]]) -> Body:
    width = max(map(len, values), default=0)
    area = Range(None, at.top, at.left, at.top + len(values), at.left + width)
    return {
        "spreadsheetId": book.id,
        "updatedRange": written(sheet.title, area),
        "updatedRows": len(values),
        "updatedColumns": width,
        "updatedCells": sum(map(len, values)),
    }
