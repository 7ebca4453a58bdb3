"""`news-platform rss sync` and `ensure`, with the workbook and with a Google Sheet."""

from pathlib import Path

import pytest

from news_platform_tests.cli.runner import Commands
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)

RSS = Commands("rss")


def test_without_google_a_workbook_is_written(tmp_path: Path) -> None:
    RSS.json(tmp_path / "root", "ensure")
    first = RSS.json(tmp_path / "root", "sync")
    assert (first["written"], first["rows"]) == (True, 1)
    place = str(first["workbook"]).removeprefix("file://")
    before = Path(place).read_bytes()
    second = RSS.json(tmp_path / "root", "sync")
    assert (second["written"], second["rows"]) == (False, 0)
    assert Path(place).read_bytes() == before


def test_the_sentence_says_whether_the_workbook_was_written(tmp_path: Path) -> None:
    RSS.json(tmp_path / "root", "ensure")
    place = tmp_path / "root" / "article_sheets" / "articles.xlsx"
    assert RSS.text(tmp_path / "root", "sync").strip() == f"wrote 1 row: {place}"
    assert RSS.text(tmp_path / "root", "sync").strip() == f"nothing to write: {place}"


def test_the_sentence_says_what_went_to_the_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = SheetsEmulator()
    with sheets_server(emulator) as url:
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_JSON", service_account_key(url))
        monkeypatch.setenv("SPREADSHEET_TITLE", "News")
        monkeypatch.setenv("NEWS_PLATFORM_SHEETS_ENDPOINT", url)
        RSS.json(tmp_path / "root", "ensure")
        place = "https://docs.google.com/spreadsheets/d/book-1"
        wrote = f"wrote 1 row (1 new, 0 changed): {place}"
        assert RSS.text(tmp_path / "root", "sync").strip() == wrote
        assert RSS.text(tmp_path / "root", "sync").strip() == f"nothing to write: {place}"
        [book] = emulator.books.values()
        book.titled("Feeds").append([["no address"]])
        assert RSS.text(tmp_path / "root", "sync").strip() == f"0 edits taken, 1 refused: {place}"


def test_with_google_the_sheet_is_made_and_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = SheetsEmulator()
    with sheets_server(emulator) as url:
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_JSON", service_account_key(url))
        monkeypatch.setenv("SPREADSHEET_TITLE", "News")
        monkeypatch.setenv("NEWS_PLATFORM_SHEETS_ENDPOINT", url)
        assert "docs.google.com" in str(RSS.json(tmp_path / "root", "ensure")["sheet"])
        assert RSS.json(tmp_path / "root", "sync")["appended"] == 1
    [book] = emulator.books.values()
    assert [row[0] for row in book.titled("Config").rows] == [
        "key",
        "ledger_version",
    ]


def test_an_admins_address_passes_discovery(
    tmp_path: Path, sample_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = SheetsEmulator()
    feed = "https://wire.meridian.example/rss.xml"
    monkeypatch.setenv("NEWS_PLATFORM_SAMPLE", "1")
    monkeypatch.setenv("NEWS_PLATFORM_SAMPLE_WORLD", str(sample_world))
    with sheets_server(emulator) as url:
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_JSON", service_account_key(url))
        monkeypatch.setenv("SPREADSHEET_TITLE", "News")
        monkeypatch.setenv("NEWS_PLATFORM_SHEETS_ENDPOINT", url)
        RSS.json(tmp_path / "root", "ensure")
        [book] = emulator.books.values()
        book.titled("Feeds").append([[feed]])
        assert RSS.json(tmp_path / "root", "sync")["updated"] == 1
    [_, row] = book.titled("Feeds").rows
    assert row[:4] == (feed, feed, "en", "active")
