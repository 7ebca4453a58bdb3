"""The Sheets emulator returns typed values and formulas as Sheets does."""

from collections.abc import Iterator
from typing import Any

import gspread
import pytest
from gspread.utils import DateTimeOption, ValueInputOption, ValueRenderOption

from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.rss.sheets.api_client import ApiClient
from news_platform_tests.emulators.sheets.calculation import Calculation
from news_platform_tests.emulators.sheets.cells import Formula, Value, display, typed, unformatted
from news_platform_tests.emulators.sheets.changes import Book
from news_platform_tests.emulators.sheets.grid import Sheet
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)


@pytest.mark.parametrize(
    ("text", "shown", "value"),
    [
        ("1.0", "1", 1),
        ("0042", "42", 42),
        ("-1.50", "-1.5", -1.5),
        ("+7", "7", 7),
        ("2,000,000.01", "2,000,000.01", 2_000_000.01),
        ("1,000", "1,000", 1000),
        ("12,34", "12,34", "12,34"),
        ("5%", "5%", 0.05),
        ("1e5", "1.00E+05", 100_000),
        ("1e999", "1e999", "1e999"),
        ("3_1_0", "3_1_0", "3_1_0"),
        ("nan", "nan", "nan"),
        (".", ".", "."),
        ("e5", "e5", "e5"),
        ("true", "TRUE", True),
        ("2020-01-01", "2020-01-01", 43831),
        ("2020-01-01 12:00:00", "2020-01-01 12:00:00", 43831.5),
        ("1/2/1999", "1/2/1999", 36162),
        ("2020-02-30", "2020-02-30", "2020-02-30"),
        ("2020-01-01T12:00:00Z", "2020-01-01T12:00:00Z", "2020-01-01T12:00:00Z"),
        ("'=1+1", "=1+1", "=1+1"),
        ("=", "=", "="),
        ("", "", ""),
    ],
)
def test_a_typed_text_is_kept_as_sheets_keeps_it(text: str, shown: str, value: Value) -> None:
    found = typed(text)
    assert (display(found), unformatted(found)) == (shown, value)
    assert type(unformatted(found)) is type(value)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1.0, "1"),
        (1 / 3, "0.3333333333"),
        (1 / 1024, "0.0009765625"),
        (100 / 3, "33.33333333"),
        (123_456_789_012_345, "123456789012345"),
        (1e15, "1E+15"),
        (-0.5, "-0.5"),
    ],
)
def test_a_number_is_shown_with_ten_significant_digits(number: float, shown: str) -> None:
    assert display(number) == shown


def _computed(formula: str) -> Value:
    own = Sheet(0, "Own")
    own.put(0, 0, [[1, 2, "x"], [3, True, "7"], [typed("2020-01-01"), None, Formula("=1/0")]])
    other = Sheet(1, "It's other")
    other.put(0, 0, [[40]])
    own.put(9, 9, [[typed(formula)]])
    return Calculation([own, other]).value(own, 9, 9)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("=1+1", 2),
        ("= 4/2 ", 2),
        ("=2+3*4^2/2-1", 25),
        ("=-2^2", 4),
        ("=(1+2)*3%", 0.09),
        ("=10-2-3", 5),
        ('="a"&1&"b""c"', 'a1b"c'),
        ("=1=1", True),
        ('="A"="a"', True),
        ("=1<>2", True),
        ('="b">"a"', True),
        ("=A1", 1),
        ("=$A$1+b1", 3),
        ("=J1", None),
        ("=A1+J1", 1),
        ("=SUM(A1:B2)", 6),
        ("=SUM(A:A)", 43835),
        ("=sum(1, 2; 3)", 6),
        ("=SUM(A1:B2, 4)", 10),
        ("='It''s other'!A1+2", 42),
        ("='it''s other'!A1", 40),
        ("=AVERAGE(A1:B1)", 1.5),
        ("=MIN(A1:B2)+MAX(A1:B2)", 4),
        ("=COUNT(A1:C2)", 3),
        ("=COUNTA(A1:C2)", 6),
        ('=CONCATENATE("n ", A1, C1)', "n 1x"),
        ('=HYPERLINK("https://example.org", "label")', "label"),
        ('=HYPERLINK("https://example.org")', "https://example.org"),
        ('=IF(A1=1, "yes", 1/0)', "yes"),
        ("=IF(FALSE, 1)", False),
        ('=IFERROR(1/0, "none")', "none"),
        ("=IFERROR(1/0)", None),
        ("=AND(TRUE, A1)", True),
        ("=OR(FALSE, 0)", False),
        ("=NOT(FALSE)", True),
        ("=ROUND(2.5)", 3),
        ("=ROUND(-1.25, 1)", -1.3),
        ('=LEN(UPPER("abc"))', 3),
        ('=TRIM("  a   b ")&LOWER("C")', "a bc"),
        ('=C2+"1"', 8),
        ("+A1", 1),
    ],
)
def test_a_formula_is_computed(formula: str, value: Value) -> None:
    assert _computed(formula) == value


@pytest.mark.parametrize(
    ("formula", "error"),
    [
        ("=1/0", "#DIV/0!"),
        ("=AVERAGE(B3)", "#DIV/0!"),
        ("=C3", "#DIV/0!"),
        ("=SUM(A1:C3)", "#DIV/0!"),
        ("=C1+1", "#VALUE!"),
        ("=A1:B2", "#VALUE!"),
        ("=NOSUCH(1)", "#NAME?"),
        ("=QUERY(A1:B2)", "#NAME?"),
        ("=nothing", "#NAME?"),
        ("=ABS()", "#N/A"),
        ("=IF(1)", "#N/A"),
        ("=Missing!A1", "#REF!"),
        ("=ZZ1", "#REF!"),
        ("=A2000", "#REF!"),
        ("=J10", "#REF!"),
        ("=#REF!+1", "#REF!"),
        ("=10^400", "#NUM!"),
        ("=(-1)^0.5", "#NUM!"),
        ("=1+", "#ERROR!"),
        ("=(1", "#ERROR!"),
        ("=1)", "#ERROR!"),
        ("={1,2}", "#ERROR!"),
        ('="open', "#ERROR!"),
        ("=SUM(1,,2)", "#ERROR!"),
        ("+49 30 123", "#ERROR!"),
        ("=" + "(" * 5000 + "1" + ")" * 5000, "#ERROR!"),
    ],
)
def test_a_formula_that_fails_has_the_error_value_of_sheets(formula: str, error: str) -> None:
    assert _computed(formula) == error


@pytest.fixture
def sheet() -> Iterator[gspread.Spreadsheet]:
    """Yield an empty spreadsheet opened with gspread."""
    emulator = SheetsEmulator(reads_per_minute=1000, writes_per_minute=1000)
    with sheets_server(emulator) as url:
        book = emulator.new_book("Book")
        access = SheetAccess(service_account_key(url), spreadsheet_id=book.id, endpoint=url)
        client = ApiClient(access, CallTiming(lambda: 0.0, lambda _: None, calls=1000))
        yield client.gspread.open_by_key(book.id)


def _read(sheet: gspread.Spreadsheet, option: ValueRenderOption, **options: Any) -> Any:
    return sheet.sheet1.get("A1:E1", value_render_option=option, **options)


def test_all_render_options_return_what_sheets_returns(sheet: gspread.Spreadsheet) -> None:
    row = [["=1/4", "=A1*2", "2020-01-01", "TRUE", '=HYPERLINK("https://example.org","x")']]
    sheet.sheet1.update(row, "A1", value_input_option=ValueInputOption.user_entered)
    assert _read(sheet, ValueRenderOption.formatted) == [["0.25", "0.5", "2020-01-01", "TRUE", "x"]]
    assert _read(sheet, ValueRenderOption.unformatted) == [[0.25, 0.5, 43831, True, "x"]]
    assert _read(
        sheet,
        ValueRenderOption.unformatted,
        date_time_render_option=DateTimeOption.formatted_string,
    ) == [[0.25, 0.5, "2020-01-01", True, "x"]]
    assert _read(sheet, ValueRenderOption.formula) == [[*row[0][:2], 43831, True, row[0][4]]]


def test_a_raw_text_is_never_a_formula(sheet: gspread.Spreadsheet) -> None:
    sheet.sheet1.update([["=1+1"]], "A1", value_input_option=ValueInputOption.raw)
    assert _read(sheet, ValueRenderOption.formatted) == [["=1+1"]]


def _book(*rows: list[str]) -> Book:
    book = Book("b", "Book")
    book.sheets[0].put(0, 0, [[typed(text) for text in row] for row in rows])
    return book


def _change(book: Book, name: str, dimension: str, start: int, end: int) -> tuple[Value, ...]:
    span = {"sheetId": 0, "dimension": dimension, "startIndex": start, "endIndex": end}
    book.apply([{name: {"range": span}}])
    return book.sheets[0].rows[0]


def test_references_follow_inserted_and_deleted_rows_and_columns() -> None:
    formulas = ["=A3", "=SUM($A$2:A4)", "=A1", '=B:B&"A3"', "=Sheet1!A3"]
    grown = _change(_book(formulas), "insertDimension", "ROWS", 2, 4)
    assert grown == ("=A5", "=SUM($A$2:A6)", "=A1", '=B:B&"A3"', "=Sheet1!A5")
    shrunk = _change(_book(formulas), "deleteDimension", "ROWS", 2, 3)
    assert shrunk == ("=#REF!", "=SUM($A$2:A3)", "=A1", '=B:B&"A3"', "=#REF!")
    wider = _change(_book(["=B1", "=SUM(A1:C1)"]), "insertDimension", "COLUMNS", 1, 2)
    assert wider == ("=C1", None, "=SUM(A1:D1)")


def test_sorting_goes_by_the_values_of_formulas() -> None:
    book = _book(["=3*3"], ["=1"], ["5"], ["=1/0"])
    area = {"sheetId": 0, "startRowIndex": 0, "endRowIndex": 4}
    specs = [{"dimensionIndex": 0, "sortOrder": "ASCENDING"}]
    book.apply([{"sortRange": {"range": area, "sortSpecs": specs}}])
    assert [row[0] for row in book.sheets[0].rows] == ["=1", 5, "=3*3", "=1/0"]
