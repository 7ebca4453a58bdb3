"""The outbox against the emulated Google Sheet: everything arrives once, whatever goes wrong."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier

import pytest
import sqlalchemy as sa

from news_platform.errors import ConfigError, Conflict
from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.rss.sheets import outbox
from news_platform.rss.sheets.calls import Doubt
from news_platform.rss.sheets.google import FENCE_KEY
from news_platform.rss.sheets.outbox import take_lease
from news_platform.rss.sheets.start import begin_book
from news_platform.rss.sheets.sync import SyncOptions
from news_platform.rss.sheets.tabs import CUT_MARK, TABS
from news_platform_tests.emulators.sheets.changes import MAX_METADATA_CHARACTERS
from news_platform_tests.emulators.sheets.faults import Fault, Faults
from news_platform_tests.rss.ledger_rows import (
    NOW,
    add_article,
    add_articles,
    add_feed,
    add_metric,
    change_article,
    set_config,
)
from news_platform_tests.rss.sheets.harness import Desk, differences, open_desk


@pytest.fixture
def desk(sqlite_ledger: sa.Engine) -> Iterator[Desk]:
    add_feed(sqlite_ledger, "https://outlet.example/feed")
    add_article(sqlite_ledger)
    add_metric(sqlite_ledger, "new", 1)
    set_config(sqlite_ledger, "ledger_version", "1")
    with open_desk(sqlite_ledger) as desk:
        yield desk


def test_a_new_book_gets_its_tabs_headers_filters_and_all_rows(desk: Desk) -> None:
    report = desk.sync()
    assert (report.appended, report.updated, report.batches) == (5, 0, 1)
    for tab in TABS:
        sheet = desk.sheet(tab.name)
        assert sheet.rows[0] == tab.columns
        assert sheet.frozen_rows == 1 and sheet.filter is not None
        assert list(sheet.widths) == list(range(len(tab.columns)))
    raw = desk.sheet("Raw")
    widths = {name: raw.widths[place] for place, name in enumerate(raw.rows[0])}
    assert widths["title"] > widths["article_url"] > widths["row_id"]
    assert differences(desk.engine, desk.book) == {}


def test_a_second_sync_finds_nothing_to_send(desk: Desk) -> None:
    desk.sync()
    book = desk.book.id
    assert not outbox.has_pending(desk.engine, book)
    writes = desk.emulator.writes.used
    # What is left are the counters of the first one.
    assert desk.sync().appended == len(desk.rows("Diagnostics")) - 1
    assert desk.emulator.writes.used <= writes + 1


def test_an_idle_book_is_left_alone_once_it_shows_the_last_counters(desk: Desk) -> None:
    for _ in range(2):
        desk.sync()
    writes, rows = desk.emulator.writes.used, desk.rows("Diagnostics")
    assert [desk.sync().batches for _ in range(3)] == [0, 0, 0]
    assert (desk.emulator.writes.used, desk.rows("Diagnostics")) == (writes, rows)


def test_a_changed_article_is_updated_in_its_row(desk: Desk) -> None:
    add_articles(desk.engine, [{} for _ in range(5)])
    desk.sync()
    change_article(desk.engine, 3, title="Changed")
    assert desk.sync().updated == 1
    assert [row["title"] for row in desk.rows("Raw")][2] == "Changed"
    assert differences(desk.engine, desk.book) == {}


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+x", "@x", "-1", "007", "1e5", "TRUE", "2025-11-03", "😀 👩‍👩‍👧", "مرحبا", "'x"],
)
def test_a_text_arrives_as_the_same_text(desk: Desk, text: str) -> None:
    change_article(desk.engine, 1, title=text)
    desk.sync()
    assert desk.rows("Raw")[0]["title"] == text


def test_a_text_of_60000_characters_is_cut_and_marked(desk: Desk) -> None:
    change_article(desk.engine, 1, clean_text="x" * 60_000)
    desk.sync()
    shown = str(desk.rows("Raw")[0]["clean_text"])
    assert len(shown) == 50_000 and shown.endswith(CUT_MARK)


@pytest.mark.parametrize("fault", ["over_quota", "before", "after", "late"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_fault_neither_loses_nor_doubles_a_row(desk: Desk, fault: Fault, place: int) -> None:
    desk.emulator.faults.planned = deque([*[None] * place, fault])
    desk.sync()
    desk.emulator.flush()
    desk.sync()
    assert desk.emulator.faults.happened == {fault: 1}
    assert differences(desk.engine, desk.book) == {}


@pytest.mark.parametrize("fault", ["before", "after", "late"])
def test_a_batch_that_was_in_doubt_is_counted_as_what_it_did(desk: Desk, fault: Fault) -> None:
    desk.emulator.faults.latest = 1
    desk.emulator.faults.planned = deque([None, fault])
    report = desk.sync()
    assert (report.appended, report.updated, report.doubts) == (5, 0, 1)


def test_a_batch_that_another_writer_left_in_doubt_is_counted_by_the_next(desk: Desk) -> None:
    desk.sync()
    add_article(desk.engine)
    change_article(desk.engine, 1, title="Changed")
    desk.options = SyncOptions(tries=1)
    desk.emulator.faults.planned = deque(["after"])
    with pytest.raises(Doubt, match="no answer after 1 tries"):
        desk.sync()
    report = desk.sync()
    # The article and its index row, and what the two syncs before counted of themselves.
    counters = [row for row in desk.rows("Diagnostics") if row["stage"] == "sheets"]
    assert (report.appended, report.updated) == (2 + len(counters), 1)


def test_a_ledger_on_either_database_is_shown_alike(ledger: sa.Engine) -> None:
    add_feed(ledger, "https://outlet.example/feed")
    add_articles(ledger, [{"title": f"=A {n} 😀"} for n in range(60)])
    with open_desk(ledger) as desk:
        desk.emulator.faults = Faults(share=0.35, seed=5)
        desk.options = SyncOptions(max_rows=25, tries=40)
        desk.sync()
        change_article(ledger, 7, title="Changed")
        desk.sync()
        desk.emulator.flush()
        assert differences(ledger, desk.book) == {}


def test_two_late_copies_of_a_batch_are_applied_once(desk: Desk) -> None:
    desk.emulator.faults.latest = 1000
    desk.emulator.faults.planned = deque([None, "late", "late", None])
    desk.sync()
    desk.emulator.flush()
    assert [row["row_id"] for row in desk.rows("Raw")] == [1]
    assert differences(desk.engine, desk.book) == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_third_of_all_calls_may_fail(desk: Desk, seed: int) -> None:
    desk.emulator.faults = Faults(share=0.35, seed=seed)
    desk.options = SyncOptions(max_rows=40, tries=40)
    add_articles(desk.engine, [{"title": f"A {n}"} for n in range(200)])
    desk.sync()
    change_article(desk.engine, 7, title="Changed")
    desk.sync()
    desk.emulator.flush()
    assert differences(desk.engine, desk.book) == {}
    assert sum(desk.emulator.faults.happened.values()) > 5


def test_a_second_writer_is_told_to_wait(desk: Desk) -> None:
    desk.sync()
    take_lease(desk.engine, desk.book.id, "other", seconds=60, now=desk.time.now())
    with pytest.raises(Conflict, match="another sync writes"):
        desk.sync()
    desk.time.sleep(61)
    desk.sync()


def test_of_two_first_syncs_at_once_one_makes_the_book(desk: Desk) -> None:
    together = Barrier(4)

    def first_sync(owner: str) -> bool:
        together.wait()
        try:
            desk.run_sync(owner)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert any(threads.map(first_sync, "abcd"))
    assert [book.title for book in desk.emulator.books.values()] == ["Desk"]
    desk.run_sync()
    assert differences(desk.engine, desk.book) == {}


def test_a_book_is_known_by_its_id_once_it_was_written_to(desk: Desk) -> None:
    desk.run_sync()
    book = desk.book
    book.title = "Renamed by hand"
    desk.emulator.new_book("Desk")
    add_article(desk.engine)
    assert desk.run_sync().appended >= 2
    assert differences(desk.engine, book) == {}


def test_a_sync_that_fails_half_way_is_counted_too(desk: Desk) -> None:
    add_articles(desk.engine, [{} for _ in range(30)])
    desk.options = SyncOptions(max_rows=20, tries=3)
    desk.emulator.faults.planned = deque([None, None, "before", "before", "before"])
    with pytest.raises(Doubt, match="no answer after 3 tries"):
        desk.sync()
    desk.sync()
    desk.sync()
    told = [
        (row["metric"], row["value"])
        for row in desk.rows("Diagnostics")
        if row["stage"] == "sheets"
    ]
    assert told[:3] == [("appended", 20), ("batches", 1), ("doubts", 3)]
    assert sum(int(n) for name, n in told if name == "appended") >= 65


def test_a_full_book_is_an_error_that_names_the_cure(desk: Desk) -> None:
    desk.sync()
    desk.sheet("Raw").row_count = 290_000
    add_article(desk.engine)
    with pytest.raises(ConfigError, match=r"nearly full.*SPREADSHEET_TITLE to a new book"):
        desk.sync()


def test_a_new_book_gets_the_old_rows_too(desk: Desk) -> None:
    desk.sync()
    desk.access = replace(desk.access, spreadsheet_title="Second")
    add_article(desk.engine)
    assert desk.sync().left_out == 0
    assert [row["row_id"] for row in desk.rows("Raw")] == [1, 2]
    assert differences(desk.engine, desk.book) == {}


def test_a_book_that_was_deleted_is_made_and_filled_again(desk: Desk) -> None:
    desk.sync()
    desk.emulator.books.clear()
    desk.emulator.new_book("Another")
    desk.sync()
    assert desk.book.title == "Desk"
    assert differences(desk.engine, desk.book) == {}


def test_a_new_book_that_cannot_hold_all_begins_with_the_newest_and_says_so(desk: Desk) -> None:
    add_articles(desk.engine, [{"found_at": NOW + timedelta(hours=1)} for _ in range(9)])
    for hours in (0, 2):
        with write_transaction(desk.engine) as change:
            note_metrics(change, "poll", {"new": 7}, now=NOW + timedelta(hours=hours))
    # Half of it is 250 cells: 12 of Feeds, 6 of Config, and 44 for each of five articles.
    desk.options = SyncOptions(max_cells=500)
    with pytest.raises(ConfigError, match="nearly full"):
        desk.sync()
    desk.options = SyncOptions()
    report = desk.sync()
    assert [row["row_id"] for row in desk.rows("Raw")] == [6, 7, 8, 9, 10]
    assert [row["row_id_raw"] for row in desk.rows("ArticlesIndex")] == [6, 7, 8, 9, 10]
    assert [row["value"] for row in desk.rows("Diagnostics") if row["metric"] == "new"] == [7]
    [start] = [row["value"] for row in desk.rows("Config") if "first rows" in str(row["key"])]
    assert start == '{"Raw": 6, "ArticlesIndex": 6, "Diagnostics": 3}'
    assert report.left_out == 5 + 5 + 2


def test_a_live_book_never_loses_its_beginning(desk: Desk) -> None:
    desk.sync()
    add_articles(desk.engine, [{} for _ in range(9)])
    begin_book(desk.engine, desk.book.id, max_cells=500, now=NOW)
    desk.sync()
    assert differences(desk.engine, desk.book) == {}


def test_the_empty_tab_of_a_new_book_does_not_stay(desk: Desk) -> None:
    desk.sync()
    assert [sheet.title for sheet in desk.book.sheets] == [tab.name for tab in TABS]


def test_a_first_tab_that_somebody_wrote_to_stays(desk: Desk) -> None:
    desk.emulator.new_book("Desk")
    desk.sheet("Sheet1").put(0, 0, [["mine"]])
    desk.sync()
    assert desk.book.sheets[0].rows == [("mine",)]


def test_an_empty_tab_that_is_made_later_stays(desk: Desk) -> None:
    desk.sync()
    desk.by_hand({"addSheet": {"properties": {"sheetId": 0, "title": "For charts"}}})
    desk.by_hand({"deleteSheet": {"sheetId": desk.sheet("Raw").sheet_id}})
    desk.sync()
    assert "For charts" in [sheet.title for sheet in desk.book.sheets]


def test_old_fences_are_removed_from_the_book(desk: Desk) -> None:
    desk.sync()
    assert len(desk.book.metadata) == 1
    desk.time.sleep(25 * 3600)
    for _ in range(2):
        add_article(desk.engine)
        desk.sync()
    assert len(desk.book.metadata) == 2


def test_fences_of_many_batches_leave_room_for_more(desk: Desk) -> None:
    desk.options = SyncOptions(max_rows=1, max_fences=3)
    add_articles(desk.engine, [{} for _ in range(10)])
    assert desk.sync().batches > 20
    # Three are kept, and the last one came with the removal of the one before them.
    assert len(desk.book.metadata) == 4
    a_fence = len(FENCE_KEY) + len(next(iter(desk.book.metadata.values()))["metadataValue"])
    assert 2 * SyncOptions().max_fences * a_fence < MAX_METADATA_CHARACTERS
    assert differences(desk.engine, desk.book) == {}
