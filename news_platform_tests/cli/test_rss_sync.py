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
    assert [row[0] for row in book.titled("Config").rows] == ["key", "ledger_version"]
