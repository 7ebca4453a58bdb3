"""Access from the settings, and the errors for a wrong key or spreadsheet."""

from base64 import b64encode
from traceback import format_exception

import pytest

from news_platform.errors import ConfigError
from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.rss.sheets.google import ApiClient, open_spreadsheet
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)

TIMING = CallTiming(lambda: 0.0, lambda _: None)


@pytest.mark.parametrize("key", ["/no/such/file.json", "{not json", '{"type": "other"}'])
def test_a_key_that_cannot_be_read_names_its_setting(key: str) -> None:
    with pytest.raises(ConfigError, match="GOOGLE_SERVICE_ACCOUNT_JSON"):
        ApiClient(SheetAccess(key, spreadsheet_id="b"), TIMING)


def test_a_key_in_another_coding_is_not_shown() -> None:
    key = b64encode(b'{"private_key": "PLANTED"}' * 100).decode()
    with pytest.raises(ConfigError, match="GOOGLE_SERVICE_ACCOUNT_JSON") as caught:
        ApiClient(SheetAccess(key, spreadsheet_id="b"), TIMING)
    told = "".join(format_exception(caught.value))
    assert key[:40] not in told and "File name too long" in told


def test_a_book_that_does_not_exist_names_its_setting() -> None:
    with sheets_server(SheetsEmulator()) as url:
        access = SheetAccess(service_account_key(url), spreadsheet_id="none", endpoint=url)
        with pytest.raises(ConfigError, match="SPREADSHEET_ID='none'"):
            open_spreadsheet(ApiClient(access, TIMING))


@pytest.mark.parametrize(
    ("by", "scopes"),
    [
        ({"spreadsheet_id": "book-1"}, {"spreadsheets"}),
        ({"spreadsheet_title": "News"}, {"spreadsheets", "drive.file"}),
    ],
)
def test_no_more_is_asked_of_google_than_the_book_needs(
    by: dict[str, str], scopes: set[str]
) -> None:
    emulator = SheetsEmulator()
    emulator.new_book("News")
    with sheets_server(emulator) as url:
        access = SheetAccess(service_account_key(url), **by, endpoint=url)
        open_spreadsheet(ApiClient(access, TIMING))
    assert {scope.rpartition("/")[2] for scope in emulator.scopes} == scopes
