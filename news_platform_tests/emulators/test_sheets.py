"""The Sheets emulator answers gspread, as it is, the way the discovery documents say."""

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gspread
import pytest
import requests
from gspread.exceptions import APIError
from gspread.utils import ValueInputOption, ValueRenderOption

from news_platform.rss.sheets import Access, Timing, open_book
from news_platform_tests.emulators.sheets import a1
from news_platform_tests.emulators.sheets.discovery import NotAsDocumented, check
from news_platform_tests.emulators.sheets.faults import Quota
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)


@pytest.fixture
def emulator() -> SheetsEmulator:
    return SheetsEmulator(clock=lambda: 0.0, reads_per_minute=1000, writes_per_minute=1000)


@pytest.fixture
def url(emulator: SheetsEmulator) -> Iterator[str]:
    with sheets_server(emulator) as url:
        yield url


@pytest.fixture
def sheet(emulator: SheetsEmulator, url: str) -> gspread.Spreadsheet:
    """Give an empty book through gspread."""
    book = emulator.new_book("Book")
    access = Access(service_account_key(url), spreadsheet_id=book.id, endpoint=url)
    opened = open_book(access, Timing(lambda: 0.0, lambda _: None, calls=1000))
    return opened._sheet


def test_a_book_is_created_once_and_found_by_its_title(emulator: SheetsEmulator, url: str) -> None:
    access = Access(service_account_key(url), spreadsheet_title="News", endpoint=url)
    timing = Timing(lambda: 0.0, lambda _: None, calls=1000)
    first, second = open_book(access, timing), open_book(access, timing)
    assert first.id == second.id and len(emulator.books) == 1


def test_values_are_written_and_read_in_all_forms(sheet: gspread.Spreadsheet) -> None:
    tab = sheet.sheet1
    tab.update([["a", 1], ["b", 2.5]], "A1:B2")
    assert tab.get_all_values(value_render_option=ValueRenderOption.unformatted) == [
        ["a", 1],
        ["b", 2.5],
    ]
    tab.batch_update([{"range": "B1", "values": [[7]]}, {"range": "C2", "values": [[True]]}])
    assert tab.get("A1:C2") == [["a", 7], ["b", 2.5, True]]
    assert tab.col_values(1) == ["a", "b"] and tab.row_values(1) == ["a", 7]
    tab.batch_clear(["A1:A1"])
    assert tab.get("A1:C1") == [["", 7]]
    tab.clear()
    assert tab.get_all_values() == [[]]


def test_append_goes_below_the_table_that_touches_the_range(sheet: gspread.Spreadsheet) -> None:
    tab = sheet.sheet1
    tab.update([["head"], ["one"]], "A1:A2")
    tab.update([["far below"]], "A5")
    answer: Any = tab.append_row(["two"], table_range="A1")
    assert answer["updates"]["updatedRange"] == "Sheet1!A3"
    assert tab.col_values(1) == ["head", "one", "two", "", "far below"]


@pytest.mark.parametrize(
    ("option", "cell"),
    [(ValueInputOption.raw, "=1+1"), (ValueInputOption.user_entered, "#FORMULA =1+1")],
)
def test_only_a_typed_text_becomes_a_formula(
    sheet: gspread.Spreadsheet, option: ValueInputOption, cell: str
) -> None:
    sheet.sheet1.update([["=1+1"]], "A1", value_input_option=option)
    assert sheet.sheet1.acell("A1").value == cell


def test_tabs_are_added_renamed_sorted_frozen_and_deleted(sheet: gspread.Spreadsheet) -> None:
    tab = sheet.add_worksheet("Tab", rows=10, cols=3)
    tab.update([["n"], [3], [1], [2]], "A1")
    tab.freeze(rows=1)
    tab.sort((1, "asc"), range="A2:C10")
    tab.set_basic_filter("A1:C4")
    tab.update_title("Renamed")
    tab.delete_rows(2)
    tab.add_cols(1)
    tab.insert_row(["top"], 1)
    assert sheet.worksheet("Renamed").col_values(1) == ["top", "n", 2, 3]
    sheet.del_worksheet(tab)
    assert [found.title for found in sheet.worksheets()] == ["Sheet1"]


def test_a_batch_is_applied_whole_or_not_at_all(
    emulator: SheetsEmulator, sheet: gspread.Spreadsheet
) -> None:
    new = {"addSheet": {"properties": {"title": "New"}}}
    with pytest.raises(APIError, match="No grid with id: 99"):
        sheet.batch_update({"requests": [new, {"deleteSheet": {"sheetId": 99}}]})
    assert [found.title for found in sheet.worksheets()] == ["Sheet1"]


def test_a_metadata_id_is_taken_once(sheet: gspread.Spreadsheet) -> None:
    metadata = {"metadataId": 5, "metadataKey": "k", "visibility": "DOCUMENT"}
    made = {"developerMetadata": {**metadata, "location": {"spreadsheet": True}}}
    sheet.batch_update({"requests": [{"createDeveloperMetadata": made}]})
    with pytest.raises(APIError, match="already exists"):
        sheet.batch_update({"requests": [{"createDeveloperMetadata": made}]})


@pytest.mark.parametrize(
    ("requests_", "message"),
    [
        ([{"addSheet": {"colour": "red"}}], "unknown field"),
        ([{"updateCells": {"rows": [], "fields": 7}}], "fields"),
        ([{"addChart": {}}], "does not know 'addChart'"),
    ],
)
def test_a_request_that_is_not_as_documented_is_refused(
    sheet: gspread.Spreadsheet, requests_: list[Any], message: str
) -> None:
    with pytest.raises(APIError, match=message):
        sheet.batch_update({"requests": requests_})


def test_limits_of_cells_and_of_books_are_kept(sheet: gspread.Spreadsheet) -> None:
    with pytest.raises(APIError, match="50000 characters"):
        sheet.sheet1.update([["x" * 50_001]], "A1", value_input_option=ValueInputOption.raw)
    with pytest.raises(APIError, match="above 10000000 cells"):
        sheet.add_worksheet("Large", rows=1_000_000, cols=11)


def test_an_unknown_book_is_not_found(emulator: SheetsEmulator, url: str) -> None:
    path = f"{url}/v4/spreadsheets/none"
    assert requests.get(path, timeout=10).status_code == 401
    granted = requests.post(f"{url}/token", timeout=10).json()
    bearer = {"Authorization": f"Bearer {granted['access_token']}"}
    answer = requests.get(path, headers=bearer, timeout=10)
    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")


def test_the_quota_counts_calls_of_one_window() -> None:
    moments = iter([0.0, 1.0, 2.0, 61.0])
    quota = Quota(2, lambda: next(moments))
    assert [quota.admits() for _ in range(4)] == [True, True, False, True]


def test_faults_happen_before_after_and_late(
    emulator: SheetsEmulator, sheet: gspread.Spreadsheet
) -> None:
    emulator.faults.planned = deque(["over_quota", "before", "after", "late"])
    emulator.faults.latest = 1
    for text in ("quota", "before", "after"):
        with pytest.raises(APIError):
            sheet.sheet1.append_row([text])
    with pytest.raises(requests.ConnectionError):
        sheet.sheet1.append_row(["late"])
    assert sheet.sheet1.col_values(1) == ["after", "late"]


@pytest.mark.parametrize(
    "message", [{"sheets": {}}, {"sheets": [{"properties": {"index": "1"}}]}, {"none": 1}, []]
)
def test_the_walker_refuses_what_the_discovery_document_does_not_know(message: object) -> None:
    with pytest.raises(NotAsDocumented):
        check("sheets.v4", "Spreadsheet", message)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Raw", a1.Range("Raw")),
        ("'a!b'!A1:B2", a1.Range("a!b", 0, 0, 2, 2)),
        ("Raw!AA:AB", a1.Range("Raw", 0, 26, None, 28)),
        ("Raw!1:1", a1.Range("Raw", 0, 0, 1, None)),
        ("'it''s'!C3", a1.Range("it's", 2, 2, 3, 3)),
        ("B2", a1.Range(None, 1, 1, 2, 2)),
    ],
)
def test_a1_ranges_are_read(text: str, found: a1.Range) -> None:
    assert a1.parse(text) == found


def test_it_starts_alone_on_a_port_with_faults_as_told(tmp_path: Path) -> None:
    module, key = "news_platform_tests.emulators.sheets", tmp_path / "key.json"
    command = [sys.executable, "-m", module, "--key", str(key), "--fault-share", "1", "--seed", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        path = f"{url}/v4/spreadsheets/x"
        assert requests.get(path, timeout=10).status_code == 401
        granted = requests.post(f"{url}/token", timeout=10).json()
        bearer = {"Authorization": f"Bearer {granted['access_token']}"}
        assert requests.get(path, headers=bearer, timeout=10).status_code in (429, 503)
        server.kill()
    assert url in key.read_text("utf-8")
