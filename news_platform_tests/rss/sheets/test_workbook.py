"""The ledger as an .xlsx file: all tabs, unchanged texts, the same bytes from the same ledger."""

import openpyxl
import pytest
import sqlalchemy as sa

from news_platform.rss.sheets import workbook
from news_platform.rss.sheets.tabs import CUT_MARK, TABS
from news_platform.rss.sheets.workbook import WORKBOOK_PATH, is_stale, write_workbook
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.rss.ledger_rows import (
    add_article,
    add_feed,
    add_metric,
    change_article,
    set_config,
)


@pytest.fixture
def filled(sqlite_ledger: sa.Engine) -> sa.Engine:
    add_feed(sqlite_ledger, "https://outlet.example/feed")
    add_article(sqlite_ledger, title="First", authors=("Ann", "Bo"))
    add_metric(sqlite_ledger, "new", 1)
    set_config(sqlite_ledger, "ledger_version", "1")
    return sqlite_ledger


def opened(store: ObjectStore) -> openpyxl.Workbook:
    assert store.local_folder is not None
    return openpyxl.load_workbook(store.local_folder / WORKBOOK_PATH)


def cells(store: ObjectStore, tab: str) -> list[dict[str, object]]:
    header, *rows = opened(store)[tab].iter_rows(values_only=True)
    return [dict(zip(map(str, header), row, strict=True)) for row in rows]


def test_every_tab_has_its_header_frozen_and_its_rows(
    filled: sa.Engine, local_store: ObjectStore
) -> None:
    report = write_workbook(filled, local_store)
    book = opened(local_store)
    assert book.sheetnames == [tab.name for tab in TABS]
    assert report.rows == dict.fromkeys(book.sheetnames, 1)
    for tab in TABS:
        sheet = book[tab.name]
        assert [cell.value for cell in sheet[1]] == list(tab.columns)
        assert sheet.freeze_panes == "A2" and sheet.auto_filter.ref
    assert book["Raw"].column_dimensions["L"].width > book["Raw"].column_dimensions["A"].width


def test_cells_show_what_the_ledger_holds(filled: sa.Engine, local_store: ObjectStore) -> None:
    write_workbook(filled, local_store)
    [article] = cells(local_store, "Raw")
    assert (article["row_id"], article["title"]) == (1, "First")
    assert article["authors"] == '["Ann", "Bo"]'
    assert article["found_at"] == "2025-11-03T20:00:00Z"
    assert cells(local_store, "Diagnostics")[0]["value"] == 1
    assert cells(local_store, "ArticlesIndex")[0]["is_duplicate"] is False


@pytest.mark.parametrize("text", ["=1+1", "+x", "@x", "-1", "https://a.example", "😀", "مرحبا"])
def test_a_text_arrives_as_the_same_text(
    filled: sa.Engine, local_store: ObjectStore, text: str
) -> None:
    change_article(filled, 1, title=text)
    write_workbook(filled, local_store)
    cell = opened(local_store)["Raw"].cell(row=2, column=12)
    assert (cell.value, cell.data_type, cell.hyperlink) == (text, "s", None)


def test_a_text_over_excels_limit_is_cut_and_marked(
    filled: sa.Engine, local_store: ObjectStore
) -> None:
    change_article(filled, 1, clean_text="x" * 60_000, title="a\x01b")
    write_workbook(filled, local_store)
    [article] = cells(local_store, "Raw")
    assert len(str(article["clean_text"])) == 32_767
    assert str(article["clean_text"]).endswith(CUT_MARK)
    assert article["title"] == "ab"


def test_the_same_ledger_gives_the_same_bytes_and_is_not_stale(
    filled: sa.Engine, local_store: ObjectStore
) -> None:
    assert is_stale(filled, local_store)
    write_workbook(filled, local_store)
    first = local_store.read(WORKBOOK_PATH)
    assert not is_stale(filled, local_store)
    write_workbook(filled, local_store)
    assert local_store.read(WORKBOOK_PATH) == first


def test_a_change_of_the_ledger_or_a_lost_file_makes_it_stale(
    filled: sa.Engine, local_store: ObjectStore
) -> None:
    write_workbook(filled, local_store)
    change_article(filled, 1, title="Second")
    assert is_stale(filled, local_store)
    write_workbook(filled, local_store)
    whole = local_store.read(WORKBOOK_PATH)
    local_store.delete([WORKBOOK_PATH])
    assert is_stale(filled, local_store)
    write_workbook(filled, local_store)
    assert local_store.read(WORKBOOK_PATH) == whole


def test_past_excels_rows_the_newest_are_shown_and_the_rest_counted(
    filled: sa.Engine, local_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_article(filled, title="Second")
    monkeypatch.setattr(workbook, "ROW_LIMIT", 1)
    report = write_workbook(filled, local_store)
    assert [article["title"] for article in cells(local_store, "Raw")] == ["Second"]
    assert [article["row_id_raw"] for article in cells(local_store, "ArticlesIndex")] == [2]
    assert report.left_out["Raw"] == 1
