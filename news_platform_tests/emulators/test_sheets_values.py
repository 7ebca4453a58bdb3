"""The Sheets emulator returns typed values as Sheets does."""

from collections.abc import Iterator
from typing import Any

import gspread
import pytest
from gspread.utils import DateTimeOption, ValueInputOption, ValueRenderOption

from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.rss.sheets.google import ApiClient
from news_platform_tests.emulators.sheets.cells import Value, display, typed, unformatted
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
    row = [["0.25", "2020-01-01", "TRUE", "=1/4"]]
    sheet.sheet1.update(row, "A1", value_input_option=ValueInputOption.user_entered)
    # The emulator keeps formulas, but does not compute them.
    shown = {
        ValueRenderOption.formatted: ["0.25", "2020-01-01", "TRUE", "#NAME?"],
        ValueRenderOption.unformatted: [0.25, 43831, True, "#NAME?"],
        ValueRenderOption.formula: [0.25, 43831, True, "=1/4"],
    }
    assert {option: _read(sheet, option)[0] for option in shown} == shown
    as_text = {"date_time_render_option": DateTimeOption.formatted_string}
    assert _read(sheet, ValueRenderOption.unformatted, **as_text)[0][1] == "2020-01-01"


def test_a_raw_text_is_never_a_formula(sheet: gspread.Spreadsheet) -> None:
    sheet.sheet1.update([["=1+1"]], "A1", value_input_option=ValueInputOption.raw)
    assert _read(sheet, ValueRenderOption.formatted) == [["=1+1"]]
