"""Syncs to the emulated Google Sheet: every row arrives once, whatever fails."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
import sqlalchemy as sa

from news_platform.errors import ConfigError, Conflict
from news_platform.rss.sheets.books import LEASES, TABS, SyncOptions
from news_platform.rss.sheets.google import FENCE_KEY, OutcomeUnknown, QuotaExceeded
from news_platform.storage.sql.leases import LeaseTerm, claim_named
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
from news_platform_tests.rss.sheets.harness import SheetHarness, differences, open_harness, tab_rows


@pytest.fixture
def harness(sqlite_ledger: sa.Engine) -> Iterator[SheetHarness]:
    add_feed(sqlite_ledger, "https://outlet.example/feed")
    add_article(sqlite_ledger)
    add_metric(sqlite_ledger, "new", 1)
    set_config(sqlite_ledger, "ledger_version", "1")
    with open_harness(sqlite_ledger) as harness:
        yield harness


def test_a_new_book_gets_its_tabs_headers_filters_and_all_rows(harness: SheetHarness) -> None:
    report = harness.sync()
    assert (report.appended, report.updated, report.batches) == (5, 0, 1)
    # The empty tab of a new book does not stay.
    assert [sheet.title for sheet in harness.book.sheets] == [tab.name for tab in TABS]
    for tab in TABS:
        sheet = harness.sheet(tab.name)
        assert sheet.rows[0] == tab.columns
        assert sheet.frozen_rows == 1 and sheet.filter is not None
        assert list(sheet.widths) == list(range(len(tab.columns)))
    raw = harness.sheet("Raw")
    widths = {name: raw.widths[place] for place, name in enumerate(raw.rows[0])}
    assert widths["title"] > widths["article_url"] > widths["row_id"]
    assert differences(harness.engine, harness.book) == {}


def test_an_idle_book_is_left_alone_once_it_shows_the_last_counters(harness: SheetHarness) -> None:
    harness.sync()
    assert not harness.is_behind()
    writes = harness.emulator.writes.used
    # Only the counters of the first sync are left, which are not counted in turn.
    report = harness.sync()
    assert (report.appended, report.updated, report.batches) == (0, 0, 1)
    assert [harness.sync().batches for _ in range(2)] == [0, 0]
    assert harness.emulator.writes.used == writes + 1


def test_a_changed_article_is_updated_in_its_row(harness: SheetHarness) -> None:
    add_articles(harness.engine, [{} for _ in range(5)])
    harness.sync()
    change_article(harness.engine, 3, title="Changed")
    assert harness.sync().updated == 1
    assert [row["title"] for row in harness.rows("Raw")][2] == "Changed"
    assert differences(harness.engine, harness.book) == {}


def test_a_text_arrives_as_the_same_text(harness: SheetHarness) -> None:
    texts = ["=1+1", "+x", "@x", "-1", "007", "1e5", "TRUE", "2025-11-03", "😀", "مرحبا", "'x"]
    add_articles(harness.engine, [{"title": text} for text in texts])
    harness.sync()
    assert [row["title"] for row in harness.rows("Raw")][1:] == texts


@pytest.mark.parametrize(
    ("place", "fault"),
    [(0, "after"), (0, "late"), (1, "over_quota"), (1, "before"), (1, "after"), (1, "late")],
)
def test_a_fault_neither_loses_nor_doubles_a_row(
    harness: SheetHarness, fault: Fault, place: int
) -> None:
    harness.emulator.faults.planned = deque([*[None] * place, fault])
    harness.sync()
    harness.emulator.flush()
    harness.sync()
    assert harness.emulator.faults.happened == {fault: 1}
    assert differences(harness.engine, harness.book) == {}


def test_a_batch_that_another_writer_left_in_doubt_is_counted_by_the_next(
    harness: SheetHarness,
) -> None:
    harness.sync()
    add_article(harness.engine)
    change_article(harness.engine, 1, title="Changed")
    harness.options = SyncOptions(tries=1)
    harness.emulator.faults.planned = deque(["after"])
    with pytest.raises(OutcomeUnknown, match="no answer after 1 tries"):
        harness.sync()
    report = harness.sync()
    # The article and its index row.
    assert (report.appended, report.updated) == (2, 1)


def test_a_ledger_on_either_database_is_shown_alike(ledger: sa.Engine) -> None:
    add_feed(ledger, "https://outlet.example/feed")
    add_articles(ledger, [{"title": f"=A {n} 😀"} for n in range(60)])
    with open_harness(ledger) as harness:
        harness.emulator.faults = Faults(share=0.35, seed=5)
        harness.options = SyncOptions(max_rows=25, tries=40)
        harness.sync()
        change_article(ledger, 7, title="Changed")
        harness.sync()
        harness.emulator.flush()
        assert differences(ledger, harness.book) == {}
        assert sum(harness.emulator.faults.happened.values()) > 5


def test_a_batch_applied_after_its_client_timed_out_is_there_once(harness: SheetHarness) -> None:
    harness.timeout_seconds = 0.2
    harness.emulator.faults = Faults(
        planned=deque([None, "late", "late"]), stall_seconds=2.0, latest=1_000
    )
    assert harness.sync().doubts == 2
    assert harness.emulator.flush() == 2
    assert [row["row_id"] for row in harness.rows("Raw")] == [1]
    assert differences(harness.engine, harness.book) == {}


def test_a_quota_window_is_waited_out_or_an_error_after_which_the_next_sync_goes_on(
    harness: SheetHarness,
) -> None:
    harness.emulator.faults.over_quota_until = 100.0
    assert harness.sync().quota_waits >= 6
    assert harness.time.seconds >= 100
    add_article(harness.engine)
    harness.emulator.faults.over_quota_until = harness.time.seconds + 86_400
    with pytest.raises(QuotaExceeded, match="Quota exceeded"):
        harness.sync()
    harness.emulator.faults.over_quota_until = 0.0
    harness.sync()
    assert differences(harness.engine, harness.book) == {}


def test_a_second_writer_is_told_to_wait(harness: SheetHarness) -> None:
    harness.sync()
    with harness.engine.begin() as connection:
        claim_named(connection, LEASES, "Desk", LeaseTerm(harness.time.now(), 60, "other"))
    with pytest.raises(Conflict, match="another sync is writing"):
        harness.sync()
    harness.time.sleep(61)
    harness.sync()


def test_of_two_first_syncs_at_once_one_makes_the_book(harness: SheetHarness) -> None:
    together = Barrier(4)

    def first_sync(owner: str) -> bool:
        together.wait()
        try:
            harness.sync(owner)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert any(threads.map(first_sync, "abcd"))
    assert [book.title for book in harness.emulator.books.values()] == ["Desk"]
    harness.sync()
    assert differences(harness.engine, harness.book) == {}


def test_a_book_is_known_by_its_id_once_it_was_written_to(harness: SheetHarness) -> None:
    harness.sync()
    book = harness.book
    book.title = "Renamed by hand"
    harness.emulator.new_book("Desk")
    add_article(harness.engine)
    assert harness.sync().appended >= 2
    assert differences(harness.engine, book) == {}


def test_a_sync_that_fails_half_way_is_counted_too(harness: SheetHarness) -> None:
    add_articles(harness.engine, [{} for _ in range(30)])
    harness.options = SyncOptions(max_rows=20, tries=3)
    harness.emulator.faults.planned = deque([None, None, "before", "before", "before"])
    with pytest.raises(OutcomeUnknown, match="no answer after 3 tries"):
        harness.sync()
    harness.sync()
    harness.sync()
    told = [
        (row["metric"], row["value"])
        for row in harness.rows("Diagnostics")
        if row["stage"] == "sheets"
    ]
    assert told[:3] == [("appended", 20), ("batches", 1), ("doubts", 3)]
    assert sum(int(n) for name, n in told if name == "appended") >= 65


def test_a_limit_without_room_for_a_batch_is_an_error_and_makes_no_books(
    harness: SheetHarness,
) -> None:
    harness.options = SyncOptions(max_cells=7_110)
    for _ in range(2):
        with pytest.raises(ConfigError, match="leave no space for another batch"):
            harness.sync()
    assert len(harness.emulator.books) == 1


def test_a_new_book_gets_the_old_rows_too(harness: SheetHarness) -> None:
    harness.sync()
    harness.access = replace(harness.access, spreadsheet_title="Second")
    add_article(harness.engine)
    harness.sync()
    assert [row["row_id"] for row in harness.rows("Raw")] == [1, 2]
    assert differences(harness.engine, harness.book) == {}


def test_a_book_that_was_deleted_is_made_and_filled_again(harness: SheetHarness) -> None:
    harness.sync()
    harness.emulator.books.clear()
    harness.emulator.new_book("Another")
    harness.sync()
    assert harness.book.title == "Desk"
    assert differences(harness.engine, harness.book) == {}


def test_a_tab_that_somebody_wrote_to_or_made_later_stays(harness: SheetHarness) -> None:
    harness.emulator.new_book("Desk")
    harness.sheet("Sheet1").put(0, 0, [["mine"]])
    harness.sync()
    assert harness.sheet("Sheet1").rows == [("mine",)]
    harness.by_hand({"addSheet": {"properties": {"sheetId": 9, "title": "For charts"}}})
    harness.by_hand({"deleteSheet": {"sheetId": harness.sheet("Raw").sheet_id}})
    harness.sync()
    assert "For charts" in [sheet.title for sheet in harness.book.sheets]


def test_an_article_that_turns_out_to_be_a_copy_leaves_the_tab_for_editors(
    harness: SheetHarness,
) -> None:
    add_articles(harness.engine, [{"stored_at": NOW}, {"stored_at": NOW}])
    harness.sync()
    assert [row["Row"] for row in tab_rows(harness.sheet("Articles"))] == [2, 3]
    change_article(harness.engine, 3, status="duplicate")
    harness.sync()
    assert [row["Row"] for row in tab_rows(harness.sheet("Articles"))] == [2]


def test_fences_of_many_batches_leave_room_for_more(harness: SheetHarness) -> None:
    harness.options = SyncOptions(max_rows=1, max_fences=3)
    add_articles(harness.engine, [{} for _ in range(10)])
    assert harness.sync().batches > 20
    # Three are kept; the last batch removed the one before them and added its own.
    assert len(harness.book.metadata) == 4
    a_fence = len(FENCE_KEY) + len(next(iter(harness.book.metadata.values()))["metadataValue"])
    assert 2 * SyncOptions().max_fences * a_fence < MAX_METADATA_CHARACTERS
    assert differences(harness.engine, harness.book) == {}
