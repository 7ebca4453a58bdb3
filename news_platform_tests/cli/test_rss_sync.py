"""`news-platform rss sync` and `ensure`, with the workbook and with a Google Sheet."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from news_platform.cli.rss import rss
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)


def run(command: str, root: Path) -> dict[str, object]:
    result = CliRunner().invoke(rss, [command, "--root", str(root), "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, object] = json.loads(result.stdout)
    return document


def said(command: str, root: Path) -> str:
    result = CliRunner().invoke(rss, [command, "--root", str(root)])
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_without_google_a_workbook_is_written(tmp_path: Path) -> None:
    run("ensure", tmp_path / "root")
    first = run("sync", tmp_path / "root")
    assert (first["written"], first["rows"]) == (True, 1)
    place = str(first["workbook"]).removeprefix("file://")
    before = Path(place).read_bytes()
    second = run("sync", tmp_path / "root")
    assert (second["written"], second["rows"]) == (False, 0)
    assert Path(place).read_bytes() == before


def test_the_sentence_says_whether_the_workbook_was_written(tmp_path: Path) -> None:
    run("ensure", tmp_path / "root")
    place = tmp_path / "root" / "article_sheets" / "articles.xlsx"
    assert said("sync", tmp_path / "root") == f"wrote 1 row: {place}"
    assert said("sync", tmp_path / "root") == f"nothing to write: {place}"


def test_the_sentence_says_what_went_to_the_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = SheetsEmulator()
    with sheets_server(emulator) as url:
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_JSON", service_account_key(url))
        monkeypatch.setenv("SPREADSHEET_TITLE", "News")
        monkeypatch.setenv("NEWS_PLATFORM_SHEETS_ENDPOINT", url)
        run("ensure", tmp_path / "root")
        place = "https://docs.google.com/spreadsheets/d/book-1"
        assert said("sync", tmp_path / "root") == f"wrote 1 row (1 new, 0 changed): {place}"
        assert said("sync", tmp_path / "root") == f"nothing to write: {place}"
        [book] = emulator.books.values()
        book.titled("Feeds").append([["no address"]])
        assert said("sync", tmp_path / "root") == f"0 edits taken, 1 refused: {place}"


def test_with_google_the_sheet_is_made_and_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = SheetsEmulator()
    with sheets_server(emulator) as url:
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_JSON", service_account_key(url))
        monkeypatch.setenv("SPREADSHEET_TITLE", "News")
        monkeypatch.setenv("NEWS_PLATFORM_SHEETS_ENDPOINT", url)
        assert "docs.google.com" in str(run("ensure", tmp_path / "root")["sheet"])
        assert run("sync", tmp_path / "root")["appended"] == 1
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
        run("ensure", tmp_path / "root")
        [book] = emulator.books.values()
        book.titled("Feeds").append([[feed]])
        assert run("sync", tmp_path / "root")["updated"] == 1
    [_, row] = book.titled("Feeds").rows
    assert row[:4] == (feed, feed, "en", "active")
