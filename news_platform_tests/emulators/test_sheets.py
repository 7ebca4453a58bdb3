"""The Sheets emulator answers unmodified gspread as the discovery documents say."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import gspread
import pytest
import requests
from gspread.exceptions import APIError

from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.rss.sheets.google import ApiClient, open_spreadsheet
from news_platform_tests.emulators.sheets import a1
from news_platform_tests.emulators.sheets.discovery import NotAsDocumented, check
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
    """Yield an empty spreadsheet opened with gspread."""
    book = emulator.new_book("Book")
    access = SheetAccess(service_account_key(url), spreadsheet_id=book.id, endpoint=url)
    client = ApiClient(access, CallTiming(lambda: 0.0, lambda _: None, calls=1000))
    return client.gspread.open_by_key(book.id)


def test_a_book_is_created_once_and_found_by_its_title(emulator: SheetsEmulator, url: str) -> None:
    access = SheetAccess(service_account_key(url), spreadsheet_title="News", endpoint=url)
    client = ApiClient(access, CallTiming(lambda: 0.0, lambda _: None, calls=1000))
    first, second = open_spreadsheet(client), open_spreadsheet(client)
    assert first.id == second.id and len(emulator.books) == 1


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


def test_metadata_of_a_book_is_limited_as_google_documents(sheet: gspread.Spreadsheet) -> None:
    def add(metadata_id: int, value: str) -> None:
        metadata = {"metadataId": metadata_id, "metadataKey": "k", "metadataValue": value}
        made = {**metadata, "location": {"spreadsheet": True}, "visibility": "DOCUMENT"}
        body = {"createDeveloperMetadata": {"developerMetadata": made}}
        sheet.batch_update({"requests": [body]})

    add(1, "x" * 29_998)
    add(2, "")
    with pytest.raises(APIError, match="exceeds 30000 characters"):
        add(3, "")


@pytest.mark.parametrize(
    ("requests_", "message"),
    [
        ([{"addSheet": {"colour": "red"}}], "unknown field"),
        ([{"updateCells": {"rows": [], "fields": 7}}], "fields"),
        ([{"addChart": {}}], "does not support 'addChart'"),
    ],
)
def test_a_request_that_is_not_as_documented_is_refused(
    sheet: gspread.Spreadsheet, requests_: list[Any], message: str
) -> None:
    with pytest.raises(APIError, match=message):
        sheet.batch_update({"requests": requests_})


@pytest.mark.parametrize(("size", "status"), [(1_000, 200), (1_001, 413)])
def test_a_request_past_the_size_limit_is_refused_in_googles_words(
    emulator: SheetsEmulator, sheet: gspread.Spreadsheet, url: str, size: int, status: int
) -> None:
    emulator.max_request_bytes = 1_000
    bearer = {"Authorization": f"Bearer {_token(url)}"}
    path = f"{url}/v4/spreadsheets/{sheet.id}:batchUpdate"
    answer = requests.post(path, data=b'{"requests": []}'.ljust(size), headers=bearer, timeout=10)
    assert answer.status_code == status and emulator.largest_request_bytes == size
    if status == 413:
        assert answer.json()["error"] == {
            "code": 413,
            "message": "Request payload size exceeds the limit: 1000 bytes.",
            "status": "INVALID_ARGUMENT",
        }


def _token(url: str) -> str:
    return str(requests.post(f"{url}/token", timeout=10).json()["access_token"])


def append(sheet: gspread.Spreadsheet, text: str) -> None:
    row = {"values": [{"userEnteredValue": {"stringValue": text}}]}
    cells = {"sheetId": sheet.sheet1.id, "rows": [row], "fields": "userEnteredValue"}
    sheet.batch_update({"requests": [{"appendCells": cells}]})


def test_faults_happen_before_after_and_late(
    emulator: SheetsEmulator, sheet: gspread.Spreadsheet
) -> None:
    emulator.faults.planned = deque(["over_quota", "before", "after", "late"])
    emulator.faults.latest = 1
    for text in ("quota", "before", "after"):
        with pytest.raises(APIError):
            append(sheet, text)
    with pytest.raises(requests.ConnectionError):
        append(sheet, "late")
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


def test_a_book_that_is_not_shared_with_us_is_refused(
    emulator: SheetsEmulator, sheet: gspread.Spreadsheet, url: str
) -> None:
    bearer = {"Authorization": f"Bearer {_token(url)}"}
    emulator.books[sheet.id].permissions.clear()
    answer = requests.get(f"{url}/v4/spreadsheets/{sheet.id}", headers=bearer, timeout=10)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    listed = requests.get(f"{url}/drive/v3/files", headers=bearer, timeout=10)
    assert listed.json()["files"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"addChart": {"chart": {}}},
        {"sortRange": {"range": {"sheetId": 0}, "sortSpecs": [{"dimensionIndex": 99}]}},
        {"deleteDimension": {}},
        {"updateSheetProperties": {"properties": {"sheetId": 0}, "fields": "a("}},
        {"repeatCell": {"range": {"sheetId": 9}, "cell": {}, "fields": "*"}},
    ],
)
def test_a_change_that_the_emulator_cannot_make_is_a_clean_400(
    sheet: gspread.Spreadsheet, change: dict[str, Any]
) -> None:
    with pytest.raises(APIError) as caught:
        sheet.batch_update({"requests": [change]})
    assert caught.value.response.status_code == 400
    error = caught.value.response.json()["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT") and error["message"]
