"""Manual changes of a sheet, in the order of the table in docs/sheets.md."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.ledger.feed_rows import read_feed, upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform_tests.fakes import response
from news_platform_tests.rss.ledger_rows import (
    NOW,
    add_articles,
    add_feed,
    add_metric,
    change_article,
)
from news_platform_tests.rss.sheets.harness import SheetHarness, differences, open_harness
from news_platform_tests.rss.web import items, rss

FEED = "https://outlet.example/feed"
NEW_FEED = "https://other.example/rss"


@pytest.fixture
def harness(sqlite_ledger: sa.Engine) -> Iterator[SheetHarness]:
    """Yield a harness whose spreadsheet shows a feed and five articles."""
    add_feed(sqlite_ledger, FEED, notes="ours")
    add_articles(sqlite_ledger, [{"title": f"Title {n}"} for n in "ecadb"])
    with open_harness(sqlite_ledger) as harness:
        harness.sync()
        yield harness


def place(harness: SheetHarness, tab: str, column: str) -> int:
    return harness.sheet(tab).rows[0].index(column)


def type_in(harness: SheetHarness, tab: str, row: int, column: str, text: str) -> None:
    """Write a text into a cell; row 0 is the header."""
    harness.sheet(tab).put(row, place(harness, tab, column), [[text]])


def span(harness: SheetHarness, tab: str, dimension: str, start: int) -> dict[str, Any]:
    return {
        "sheetId": harness.sheet(tab).sheet_id,
        "dimension": dimension,
        "startIndex": start,
        "endIndex": start + 1,
    }


def feed(harness: SheetHarness, url: str = FEED) -> dict[str, Any]:
    row = read_feed(harness.engine, url)
    assert row is not None
    return dict(row._mapping)


def test_a_sorted_tab_is_updated_in_the_right_rows(harness: SheetHarness) -> None:
    area = {"sheetId": harness.sheet("Raw").sheet_id, "startRowIndex": 1}
    order = {"dimensionIndex": place(harness, "Raw", "title"), "sortOrder": "ASCENDING"}
    harness.by_hand({"sortRange": {"range": area, "sortSpecs": [order]}})
    assert [row["row_id"] for row in harness.rows("Raw")] == [3, 5, 2, 4, 1]
    change_article(harness.engine, 5, subtitle="Changed")
    harness.sync()
    assert [row["row_id"] for row in harness.rows("Raw")] == [3, 5, 2, 4, 1]
    assert differences(harness.engine, harness.book) == {}


def test_a_filter_by_hand_changes_nothing(harness: SheetHarness) -> None:
    criteria = {"0": {"hiddenValues": ["1", "2"]}}
    area = {"sheetId": harness.sheet("Raw").sheet_id, "startRowIndex": 0}
    harness.by_hand({"setBasicFilter": {"filter": {"range": area, "criteria": criteria}}})
    change_article(harness.engine, 1, subtitle="Changed")
    add_articles(harness.engine, [{}])
    harness.sync()
    assert differences(harness.engine, harness.book) == {}
    assert (harness.sheet("Raw").filter or {})["criteria"] == criteria


def test_a_deleted_row_stays_away_until_its_article_changes(harness: SheetHarness) -> None:
    harness.by_hand({"deleteDimension": {"range": span(harness, "Raw", "ROWS", 2)}})
    change_article(harness.engine, 4, subtitle="Changed")
    harness.sync()
    assert [row["row_id"] for row in harness.rows("Raw")] == [1, 3, 4, 5]
    assert harness.rows("Raw")[2]["subtitle"] == "Changed"
    change_article(harness.engine, 2, subtitle="Back")
    harness.sync()
    assert [row["row_id"] for row in harness.rows("Raw")] == [1, 3, 4, 5, 2]
    assert differences(harness.engine, harness.book) == {}


def test_a_renamed_tab_is_followed(harness: SheetHarness) -> None:
    renamed = {"sheetId": harness.sheet("Raw").sheet_id, "title": "Editor's pick"}
    harness.by_hand({"updateSheetProperties": {"properties": renamed, "fields": "title"}})
    change_article(harness.engine, 1, subtitle="Changed")
    harness.sync()
    assert harness.rows("Editor's pick")[0]["subtitle"] == "Changed"
    assert "Raw" not in [sheet.title for sheet in harness.book.sheets]


def test_a_deleted_tab_is_made_and_filled_again(harness: SheetHarness) -> None:
    harness.by_hand({"deleteSheet": {"sheetId": harness.sheet("Raw").sheet_id}})
    harness.sync()
    assert differences(harness.engine, harness.book) == {}


def test_a_moved_column_is_found_where_it_is(harness: SheetHarness) -> None:
    source = span(harness, "Raw", "COLUMNS", place(harness, "Raw", "row_id"))
    harness.by_hand({"moveDimension": {"source": source, "destinationIndex": 12}})
    change_article(harness.engine, 3, title="Changed", subtitle="too")
    add_articles(harness.engine, [{"title": "New"}])
    harness.sync()
    rows = {row["row_id"]: (row["title"], row["subtitle"]) for row in harness.rows("Raw")}
    assert rows[3] == ("Changed", "too") and rows[6] == ("New", "") and len(rows) == 6


def test_a_foreign_column_is_left_alone(harness: SheetHarness) -> None:
    at = span(harness, "Raw", "COLUMNS", 5)
    harness.by_hand({"insertDimension": {"range": at, "inheritFromBefore": False}})
    harness.sheet("Raw").put(0, 5, [["my notes"], ["keep me"]])
    change_article(harness.engine, 1, subtitle="Changed")
    harness.sync()
    first = harness.rows("Raw")[0]
    assert (first["my notes"], first["subtitle"]) == ("keep me", "Changed")


def test_a_deleted_column_is_added_at_the_end_and_filled_again(harness: SheetHarness) -> None:
    at = span(harness, "Raw", "COLUMNS", place(harness, "Raw", "title"))
    harness.by_hand({"deleteDimension": {"range": at}})
    harness.sync()
    assert harness.sheet("Raw").rows[0][-1] == "title"
    assert [row["title"] for row in harness.rows("Raw")] == [f"Title {n}" for n in "ecadb"]


def test_a_deleted_column_of_rows_without_a_key_doubles_none_of_them(harness: SheetHarness) -> None:
    add_metric(harness.engine, "articles_stored", 5)
    harness.sync()
    before = [row["metric"] for row in harness.rows("Diagnostics")]
    at = span(harness, "Diagnostics", "COLUMNS", place(harness, "Diagnostics", "stage"))
    harness.by_hand({"deleteDimension": {"range": at}})
    add_metric(harness.engine, "later", 1)
    harness.sync()
    after = harness.rows("Diagnostics")
    assert [row["metric"] for row in after][: len(before)] == before
    assert [row["metric"] for row in after].count("articles_stored") == 1
    assert [row["stage"] for row in after if row["metric"] == "later"] == ["poll"]


def test_a_deleted_column_of_the_admin_is_no_edit(harness: SheetHarness) -> None:
    at = span(harness, "Feeds", "COLUMNS", place(harness, "Feeds", "lang"))
    harness.by_hand({"deleteDimension": {"range": at}})
    harness.sync()
    assert feed(harness)["lang"] == "en" == harness.rows("Feeds")[0]["lang"]


def test_a_renamed_header_is_an_error_that_names_both(harness: SheetHarness) -> None:
    type_in(harness, "Raw", 0, "title", "Headline")
    change_article(harness.engine, 1, title="Changed")
    with pytest.raises(InputError, match="'title' is gone and 'Headline' is new"):
        harness.sync()


def test_a_deleted_key_column_and_a_doubled_header_are_errors(harness: SheetHarness) -> None:
    harness.sheet("Raw").column_count += 1
    harness.sheet("Raw").put(0, 33, [["title"]])
    with pytest.raises(InputError, match="2 columns 'title'"):
        harness.sync()
    for column in (33, 0):
        harness.by_hand({"deleteDimension": {"range": span(harness, "Raw", "COLUMNS", column)}})
    with pytest.raises(InputError, match="no column 'row_id'"):
        harness.sync()


def test_of_a_row_that_was_copied_the_first_is_kept_up(harness: SheetHarness) -> None:
    harness.sheet("Raw").append([harness.sheet("Raw").rows[1]])
    change_article(harness.engine, 1, subtitle="Changed")
    report = harness.sync()
    subtitles = [row["subtitle"] for row in harness.rows("Raw") if row["row_id"] == 1]
    assert subtitles == ["Changed", ""] and report.doubled_keys == 1


def test_a_cell_of_ours_changed_by_hand_is_ours_again_when_the_article_changes(
    harness: SheetHarness,
) -> None:
    type_in(harness, "Raw", 1, "title", "By hand")
    harness.sync()
    assert harness.rows("Raw")[0]["title"] == "By hand"
    change_article(harness.engine, 1, subtitle="Changed")
    harness.sync()
    assert harness.rows("Raw")[0]["title"] == "Title e"


def test_an_admins_edit_comes_back_to_the_ledger(harness: SheetHarness) -> None:
    edits = {"status": "paused", "notes": "ask Ann", "lang": "de"}
    for column, text in edits.items():
        type_in(harness, "Feeds", 1, column, text)
    assert harness.sync().edits_taken == 1
    assert feed(harness).items() >= edits.items()
    assert harness.sync().edits_taken == 0
    assert differences(harness.engine, harness.book) == {}


def test_an_admins_edit_wins_over_a_change_of_the_ledger(harness: SheetHarness) -> None:
    type_in(harness, "Feeds", 1, "notes", "theirs")
    with harness.engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE feeds SET notes = 'ours too', etag = 'e', changed_seq = 1000")
        )
    harness.sync()
    assert feed(harness)["notes"] == "theirs" == harness.rows("Feeds")[0]["notes"]
    assert harness.rows("Feeds")[0]["etag"] == "e"


def type_feed(harness: SheetHarness, url: str = NEW_FEED, **columns: str) -> None:
    """Add a row to Feeds as an admin does."""
    row = {"feed_url": url, **columns}
    header = harness.sheet("Feeds").rows[0]
    harness.sheet("Feeds").append([[row.get(str(name), "") for name in header]])


def fresh(newest: datetime = NOW) -> bytes:
    return rss(items(["a", "b"], newest=newest))


def test_an_admins_new_address_passes_discovery_and_is_told_in_its_own_row(
    harness: SheetHarness,
) -> None:
    harness.web = {NEW_FEED: fresh()}
    type_feed(harness, notes="please")
    assert harness.sync().edits_taken == 1
    row = feed(harness, NEW_FEED)
    assert (row["status"], row["lang"], row["notes"]) == ("active", "en", "please")
    assert [row["feed_url_canon"] for row in harness.rows("Feeds")] == [FEED, NEW_FEED]
    assert differences(harness.engine, harness.book) == {}
    report = harness.sync()
    assert (report.edits_taken, report.edits_refused) == (0, 0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(fresh(NOW - timedelta(days=60)), "stale: newest entry 2025-09-04", id="stale"),
        pytest.param(response(NEW_FEED, status=404), "missing: status 404", id="missing"),
    ],
)
def test_a_bad_address_is_refused_with_its_reason(
    harness: SheetHarness, answer: object, reason: str
) -> None:
    harness.web = {NEW_FEED: answer}
    type_feed(harness, status="active", notes="please")
    report = harness.sync()
    assert (report.edits_taken, report.edits_refused) == (0, 1)
    shown = harness.rows("Feeds")[1]
    assert (shown["status"], shown["feed_url_canon"]) == ("rejected", NEW_FEED)
    assert str(shown["notes"]).startswith(f"please [{reason}")
    assert differences(harness.engine, harness.book) == {}


def test_an_admin_may_insist_on_a_feed_that_was_refused(harness: SheetHarness) -> None:
    harness.web = {NEW_FEED: fresh(NOW - timedelta(days=60))}
    type_feed(harness)
    harness.sync()
    type_in(harness, "Feeds", 2, "status", "active")
    harness.sync()
    assert feed(harness, NEW_FEED)["status"] == "active"


def test_an_admin_who_sets_a_feed_active_resumes_it(harness: SheetHarness) -> None:
    dead: dict[str, Any] = {
        "status": "dead",
        "errors_in_row": 12,
        "next_poll_at": NOW + timedelta(days=7),
    }
    with write_transaction(harness.engine) as change:
        upsert_feed(change, FEED, notes="ours [hard error: status_404]", **dead)
    harness.sync()
    type_in(harness, "Feeds", 1, "status", "active")
    harness.sync()
    found = feed(harness)
    names = ("status", "errors_in_row", "next_poll_at", "notes")
    assert [found[name] for name in names] == ["active", 0, None, "ours"]


def test_what_the_admin_says_of_a_new_feed_wins(harness: SheetHarness) -> None:
    harness.web = {NEW_FEED: fresh()}
    type_feed(harness, status="paused", lang="fr")
    harness.sync()
    row = feed(harness, NEW_FEED)
    assert (row["status"], row["lang"]) == ("paused", "fr")
    assert differences(harness.engine, harness.book) == {}


def test_a_site_leads_to_its_feed_which_gets_a_row_of_its_own(harness: SheetHarness) -> None:
    site = "https://other.example/"
    link = b'<html><link rel="alternate" type="application/rss+xml" href="/rss"></html>'
    harness.web = {site: link, NEW_FEED: fresh()}
    type_feed(harness, site, notes="please")
    assert harness.sync().edits_taken == 1
    shown = {row["feed_url_canon"]: (row["status"], row["notes"]) for row in harness.rows("Feeds")}
    assert shown[NEW_FEED] == ("active", "please")
    assert shown[site] == ("rejected", f"please [leads to {NEW_FEED}]")
    assert differences(harness.engine, harness.book) == {}


def test_a_known_feed_is_not_asked_again_for_a_second_book(harness: SheetHarness) -> None:
    harness.access = replace(harness.access, spreadsheet_title="Second")
    harness.emulator.new_book("Second")
    harness.ensure()
    type_feed(harness, FEED, notes="theirs")
    assert harness.sync().edits_taken == 1
    assert (feed(harness)["status"], feed(harness)["notes"]) == ("active", "theirs")
    assert len(harness.rows("Feeds")) == 1


def test_a_status_that_does_not_exist_is_put_back_and_answered(harness: SheetHarness) -> None:
    type_in(harness, "Feeds", 1, "status", "halted")
    report = harness.sync()
    assert (report.edits_taken, report.edits_refused) == (0, 1)
    assert feed(harness)["status"] == "active" == harness.rows("Feeds")[0]["status"]
    assert "ours [unknown status 'halted': expected one of active" in str(
        harness.rows("Feeds")[0]["notes"]
    )
    report = harness.sync()
    assert (report.edits_taken, report.edits_refused) == (0, 0)


def test_a_row_without_an_address_is_answered_once_and_left_alone(harness: SheetHarness) -> None:
    type_feed(harness, "ftp://other.example/rss", notes="please")
    assert harness.sync().edits_refused == 1
    row = harness.rows("Feeds")[1]
    assert (row["feed_url"], row["status"]) == ("ftp://other.example/rss", "rejected")
    assert row["notes"] == "please [no web address in feed_url]"
    report = harness.sync()
    assert (report.edits_taken, report.edits_refused) == (0, 0)


def test_an_address_that_was_put_right_is_taken(harness: SheetHarness) -> None:
    harness.web = {NEW_FEED: fresh()}
    type_feed(harness, "other.example/rss")
    harness.sync()
    type_in(harness, "Feeds", 2, "feed_url", NEW_FEED)
    assert harness.sync().edits_taken == 1
    assert (feed(harness, NEW_FEED)["status"], feed(harness, NEW_FEED)["notes"]) == ("active", "")
    assert differences(harness.engine, harness.book) == {}


def test_a_key_that_is_not_the_addresss_own_is_refused(harness: SheetHarness) -> None:
    type_feed(harness, NEW_FEED, feed_url_canon="mine")
    assert harness.sync().edits_refused == 1
    assert "leave it empty" in str(harness.rows("Feeds")[1]["notes"])


def test_the_copy_of_a_feeds_row_is_no_edit(harness: SheetHarness) -> None:
    harness.sheet("Feeds").append([harness.sheet("Feeds").rows[1]])
    with write_transaction(harness.engine) as change:
        upsert_feed(change, FEED, status="dead")
    harness.sync()
    assert harness.sync().edits_taken == 0
    assert feed(harness)["status"] == "dead"


def test_a_pasted_heap_of_rows_without_an_address_is_answered_sync_by_sync(
    harness: SheetHarness,
) -> None:
    harness.sync()
    harness.emulator.max_request_bytes = 1_000_000
    harness.sheet("Feeds").append([["no address"] for _ in range(1_500)])
    assert [harness.sync().edits_refused for _ in range(3)] == [1_000, 500, 0]
    answered = [row for row in harness.rows("Feeds") if row["status"] == "rejected"]
    assert len(answered) == 1_500
