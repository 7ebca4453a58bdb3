"""The ledger as an .xlsx file: all tabs, unchanged texts, the same bytes from the same ledger."""

from datetime import UTC, datetime, timedelta

import openpyxl
import pytest
import sqlalchemy as sa

from news_platform.rss.ledger.tables import ARTICLES_INDEX
from news_platform.rss.sheets.books import CUT_MARK, TABS
from news_platform.rss.sheets.workbook import (
    WORKBOOK_PATH,
    WorkbookOptions,
    is_stale,
    write_workbook,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.rss.ledger_rows import (
    NOW,
    add_analysis,
    add_article,
    add_articles,
    add_feed,
    add_metric,
    change_article,
    set_config,
)


@pytest.fixture
def filled(sqlite_ledger: sa.Engine) -> sa.Engine:
    add_feed(sqlite_ledger, "https://outlet.example/feed")
    add_article(sqlite_ledger, title="First", authors=("Ann", "Bo"), stored_at=NOW)
    add_metric(sqlite_ledger, "new", 1)
    set_config(sqlite_ledger, "ledger_version", "1")
    add_analysis(sqlite_ledger, 1)
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
    [article] = cells(local_store, "Raw")
    assert (article["row_id"], article["title"]) == (1, "First")
    assert article["authors"] == "Ann, Bo"
    assert article["found_at"] == datetime(2025, 11, 3, 20)  # noqa: DTZ001  Excel knows no zones
    assert cells(local_store, "Diagnostics")[0]["value"] == 1
    assert cells(local_store, "ArticlesIndex")[0]["is_duplicate"] is False


def test_editors_read_one_row_per_text_newest_first(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    words = "The council voted. " * 40
    old, new = NOW - timedelta(days=2), NOW - timedelta(days=1)
    add_article(sqlite_ledger, title="Old", stored_at=NOW, published_at=old, source="a.example",
                clean_text=words, section="City", language="en", authors=("Ann", "Bo"))  # fmt: skip
    add_article(sqlite_ledger, title="Copy", stored_at=NOW, status="duplicate")
    add_article(sqlite_ledger, title="New", stored_at=NOW, published_at=new, is_paywalled=True,
                summary="In short.", category_guess="sports")  # fmt: skip
    add_article(sqlite_ledger, title="Waits", status="pending")
    with sqlite_ledger.begin() as connection:
        is_copy = ARTICLES_INDEX.c.row_id_raw == 2
        copied = {"row_id_raw": 1, "reason": "text", "is_duplicate": True}
        connection.execute(sa.update(ARTICLES_INDEX).where(is_copy).values(copied))
    write_workbook(sqlite_ledger, local_store)
    first, second = cells(local_store, "Articles")
    assert opened(local_store).sheetnames[0] == "Articles"
    assert (first["Day"], first["Title"], first["Summary"]) == ("2025-11-02", "New", "In short.")
    assert (first["Topic"], first["Status"], first["Copies"]) == ("sports", "behind a paywall", 0)
    assert (second["Day"], second["Source"], second["Topic"]) == ("2025-11-01", "a.example", "City")
    assert (second["Authors"], second["Language"]) == ("Ann, Bo", "en")
    assert (second["Copies"], second["Status"]) == (1, "complete")
    assert len(str(second["Summary"])) <= 302 and str(second["Summary"]).endswith("council …")
    title = opened(local_store)["Articles"]["C"][1]
    assert title.hyperlink is not None
    assert title.hyperlink.target == first["Link"] == "https://outlet.example/3"


def test_a_text_arrives_as_the_same_text(filled: sa.Engine, local_store: ObjectStore) -> None:
    texts = ["=1+1", "+x", "@x", "-1", "https://a.example", "😀", "مرحبا"]
    for text in texts:
        add_article(filled, title=text)
    write_workbook(filled, local_store)
    shown = opened(local_store)["Raw"]["L"][2:]
    assert [cell.value for cell in shown] == texts
    assert {(cell.data_type, cell.hyperlink) for cell in shown} == {("s", None)}


def test_a_text_over_excels_limit_is_cut_and_marked(
    filled: sa.Engine, local_store: ObjectStore
) -> None:
    change_article(filled, 1, clean_text="x" * 60_000, title="a\x01b")
    write_workbook(filled, local_store, WorkbookOptions(clean_text_limit=60_000))
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


def test_a_text_is_shown_up_to_its_limit_and_dates_are_dates(
    filled: sa.Engine, local_store: ObjectStore
) -> None:
    change_article(
        filled, 1, clean_text="one two three", published_at=datetime(1, 1, 1, tzinfo=UTC)
    )
    write_workbook(filled, local_store, WorkbookOptions(clean_text_limit=8))
    [article] = cells(local_store, "Raw")
    assert (article["clean_text"], article["published_at"]) == ("one two", "0001-01-01T00:00:00Z")
    cell = opened(local_store)["Raw"].cell(row=2, column=8)
    assert (cell.data_type, cell.number_format) == ("d", "yyyy-mm-dd hh:mm:ss")


def test_the_newest_rows_are_shown_and_other_files_are_spared(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    add_articles(sqlite_ledger, [{"title": f"Title {n}"} for n in range(5)])
    local_store.put("article_sheets/notes.xlsx", b"by hand")
    options = WorkbookOptions(rows_per_book=2)
    report = write_workbook(sqlite_ledger, local_store, options)
    assert (report.rows["Raw"], report.left_out["Raw"]) == (2, 3)
    assert [row["title"] for row in cells(local_store, "Raw")] == ["Title 3", "Title 4"]
    assert not is_stale(sqlite_ledger, local_store, options)
    assert local_store.read("article_sheets/notes.xlsx") == b"by hand"
