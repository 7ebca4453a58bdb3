"""What people do to a sheet by hand, case by case as docs/sheets.md tells it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.ledger.feed_rows import read_feed, upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.sheets.edits import EditReport
from news_platform.rss.sheets.ensure import ensure_tabs
from news_platform_tests.fakes import response
from news_platform_tests.rss.ledger_rows import NOW, add_articles, add_feed, change_article
from news_platform_tests.rss.sheets.harness import Desk, differences, open_desk
from news_platform_tests.rss.web import items, rss

FEED = "https://outlet.example/feed"
NEW_FEED = "https://other.example/rss"


@pytest.fixture
def desk(sqlite_ledger: sa.Engine) -> Iterator[Desk]:
    """Give a desk whose book shows a feed and five articles."""
    add_feed(sqlite_ledger, FEED, notes="ours")
    add_articles(sqlite_ledger, [{"title": f"Title {n}"} for n in "ecadb"])
    with open_desk(sqlite_ledger) as desk:
        desk.sync()
        yield desk


def place(desk: Desk, tab: str, column: str) -> int:
    return desk.sheet(tab).rows[0].index(column)


def type_in(desk: Desk, tab: str, row: int, column: str, text: str) -> None:
    """Type a text into a cell; row 0 is the header."""
    desk.sheet(tab).put(row, place(desk, tab, column), [[text]])


def span(desk: Desk, tab: str, dimension: str, start: int) -> dict[str, Any]:
    return {
        "sheetId": desk.sheet(tab).sheet_id,
        "dimension": dimension,
        "startIndex": start,
        "endIndex": start + 1,
    }


def feed(desk: Desk, url: str = FEED) -> dict[str, Any]:
    row = read_feed(desk.engine, url)
    assert row is not None
    return dict(row._mapping)


def test_a_sorted_tab_is_updated_in_the_right_rows(desk: Desk) -> None:
    area = {"sheetId": desk.sheet("Raw").sheet_id, "startRowIndex": 1}
    order = {"dimensionIndex": place(desk, "Raw", "title"), "sortOrder": "ASCENDING"}
    desk.by_hand({"sortRange": {"range": area, "sortSpecs": [order]}})
    assert [row["row_id"] for row in desk.rows("Raw")] == [3, 5, 2, 4, 1]
    change_article(desk.engine, 5, subtitle="Changed")
    desk.sync()
    assert [row["row_id"] for row in desk.rows("Raw")] == [3, 5, 2, 4, 1]
    assert differences(desk.engine, desk.book) == {}


def test_a_filter_by_hand_changes_nothing(desk: Desk) -> None:
    criteria = {"0": {"hiddenValues": ["1", "2"]}}
    area = {"sheetId": desk.sheet("Raw").sheet_id, "startRowIndex": 0}
    desk.by_hand({"setBasicFilter": {"filter": {"range": area, "criteria": criteria}}})
    change_article(desk.engine, 1, subtitle="Changed")
    add_articles(desk.engine, [{}])
    desk.sync()
    assert differences(desk.engine, desk.book) == {}
    assert (desk.sheet("Raw").filter or {})["criteria"] == criteria


def test_a_deleted_row_stays_away_until_its_article_changes(desk: Desk) -> None:
    desk.by_hand({"deleteDimension": {"range": span(desk, "Raw", "ROWS", 2)}})
    change_article(desk.engine, 4, subtitle="Changed")
    desk.sync()
    assert [row["row_id"] for row in desk.rows("Raw")] == [1, 3, 4, 5]
    assert desk.rows("Raw")[2]["subtitle"] == "Changed"
    change_article(desk.engine, 2, subtitle="Back")
    desk.sync()
    assert [row["row_id"] for row in desk.rows("Raw")] == [1, 3, 4, 5, 2]
    assert differences(desk.engine, desk.book) == {}


def test_a_renamed_tab_is_followed(desk: Desk) -> None:
    renamed = {"sheetId": desk.sheet("Raw").sheet_id, "title": "Editor's pick"}
    desk.by_hand({"updateSheetProperties": {"properties": renamed, "fields": "title"}})
    change_article(desk.engine, 1, subtitle="Changed")
    desk.sync()
    assert desk.rows("Editor's pick")[0]["subtitle"] == "Changed"
    assert "Raw" not in [sheet.title for sheet in desk.book.sheets]


def test_a_deleted_tab_is_made_and_filled_again(desk: Desk) -> None:
    desk.by_hand({"deleteSheet": {"sheetId": desk.sheet("Raw").sheet_id}})
    desk.sync()
    assert differences(desk.engine, desk.book) == {}


def test_a_moved_column_is_found_where_it_is(desk: Desk) -> None:
    source = span(desk, "Raw", "COLUMNS", place(desk, "Raw", "row_id"))
    desk.by_hand({"moveDimension": {"source": source, "destinationIndex": 12}})
    change_article(desk.engine, 3, title="Changed", subtitle="too")
    add_articles(desk.engine, [{"title": "New"}])
    desk.sync()
    rows = {row["row_id"]: (row["title"], row["subtitle"]) for row in desk.rows("Raw")}
    assert rows[3] == ("Changed", "too") and rows[6] == ("New", "") and len(rows) == 6


def test_a_foreign_column_is_left_alone(desk: Desk) -> None:
    at = span(desk, "Raw", "COLUMNS", 5)
    desk.by_hand({"insertDimension": {"range": at, "inheritFromBefore": False}})
    desk.sheet("Raw").put(0, 5, [["my notes"], ["keep me"]])
    change_article(desk.engine, 1, subtitle="Changed")
    desk.sync()
    first = desk.rows("Raw")[0]
    assert (first["my notes"], first["subtitle"]) == ("keep me", "Changed")


def test_a_deleted_column_is_added_at_the_end_and_filled_again(desk: Desk) -> None:
    at = span(desk, "Raw", "COLUMNS", place(desk, "Raw", "title"))
    desk.by_hand({"deleteDimension": {"range": at}})
    desk.sync()
    assert desk.sheet("Raw").rows[0][-1] == "title"
    assert [row["title"] for row in desk.rows("Raw")] == [f"Title {n}" for n in "ecadb"]


def test_a_deleted_column_of_the_admin_is_no_edit(desk: Desk) -> None:
    at = span(desk, "Feeds", "COLUMNS", place(desk, "Feeds", "lang"))
    desk.by_hand({"deleteDimension": {"range": at}})
    desk.sync()
    assert feed(desk)["lang"] == "en" == desk.rows("Feeds")[0]["lang"]


def test_a_renamed_header_is_an_error_that_names_both(desk: Desk) -> None:
    type_in(desk, "Raw", 0, "title", "Headline")
    change_article(desk.engine, 1, title="Changed")
    with pytest.raises(InputError, match="'title' is gone and 'Headline' is new"):
        desk.sync()


def test_a_deleted_key_column_is_an_error(desk: Desk) -> None:
    desk.by_hand({"deleteDimension": {"range": span(desk, "Raw", "COLUMNS", 0)}})
    with pytest.raises(InputError, match="no column 'row_id'"):
        desk.sync()


def test_a_header_that_stands_twice_is_an_error(desk: Desk) -> None:
    desk.sheet("Raw").column_count += 1
    desk.sheet("Raw").put(0, 33, [["title"]])
    with pytest.raises(InputError, match="2 columns 'title'"):
        desk.sync()


def test_of_a_row_that_was_copied_the_first_is_kept_up(desk: Desk) -> None:
    desk.sheet("Raw").append([desk.sheet("Raw").rows[1]])
    change_article(desk.engine, 1, subtitle="Changed")
    report = desk.sync()
    subtitles = [row["subtitle"] for row in desk.rows("Raw") if row["row_id"] == 1]
    assert subtitles == ["Changed", ""] and report.doubled_keys == 1


def test_a_cell_of_ours_changed_by_hand_is_ours_again_when_the_article_changes(desk: Desk) -> None:
    type_in(desk, "Raw", 1, "title", "By hand")
    desk.sync()
    assert desk.rows("Raw")[0]["title"] == "By hand"
    change_article(desk.engine, 1, subtitle="Changed")
    desk.sync()
    assert desk.rows("Raw")[0]["title"] == "Title e"


@pytest.mark.parametrize(
    ("column", "text"), [("status", "paused"), ("notes", "ask Ann"), ("lang", "de")]
)
def test_an_admins_edit_comes_back_to_the_ledger(desk: Desk, column: str, text: str) -> None:
    type_in(desk, "Feeds", 1, column, text)
    assert desk.sync().edits.taken == 1
    assert feed(desk)[column] == text
    assert desk.sync().edits.taken == 0
    assert differences(desk.engine, desk.book) == {}


def test_an_admins_edit_wins_over_a_change_of_the_ledger(desk: Desk) -> None:
    type_in(desk, "Feeds", 1, "notes", "theirs")
    with desk.engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE feeds SET notes = 'ours too', etag = 'e', changed_seq = 1000")
        )
    desk.sync()
    assert feed(desk)["notes"] == "theirs" == desk.rows("Feeds")[0]["notes"]
    assert desk.rows("Feeds")[0]["etag"] == "e"


def type_feed(desk: Desk, url: str = NEW_FEED, **columns: str) -> None:
    """Add a row to Feeds as an admin does."""
    row = {"feed_url": url, **columns}
    header = desk.sheet("Feeds").rows[0]
    desk.sheet("Feeds").append([[row.get(str(name), "") for name in header]])


def fresh(newest: datetime = NOW) -> bytes:
    return rss(items(["a", "b"], newest=newest))


def test_an_admins_new_address_passes_discovery_and_is_told_in_its_own_row(desk: Desk) -> None:
    desk.web = {NEW_FEED: fresh()}
    type_feed(desk, notes="please")
    assert desk.sync().edits.taken == 1
    row = feed(desk, NEW_FEED)
    assert (row["status"], row["lang"], row["notes"]) == ("active", "en", "please")
    assert [row["feed_url_canon"] for row in desk.rows("Feeds")] == [FEED, NEW_FEED]
    assert differences(desk.engine, desk.book) == {}
    assert desk.sync().edits == EditReport()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(fresh(NOW - timedelta(days=60)), "stale: newest entry 2025-09-04", id="stale"),
        pytest.param(b"plain text", "not_a_feed", id="no feed"),
        pytest.param(response(NEW_FEED, status=404), "unreachable: status 404", id="missing"),
    ],
)
def test_a_bad_address_is_refused_with_its_reason(desk: Desk, answer: object, reason: str) -> None:
    desk.web = {NEW_FEED: answer}
    type_feed(desk, status="active", notes="please")
    edits = desk.sync().edits
    assert (edits.taken, edits.refused) == (0, 1)
    shown = desk.rows("Feeds")[1]
    assert (shown["status"], shown["feed_url_canon"]) == ("rejected", NEW_FEED)
    assert str(shown["notes"]).startswith(f"please [{reason}")
    assert differences(desk.engine, desk.book) == {}


def test_an_admin_may_insist_on_a_feed_that_was_refused(desk: Desk) -> None:
    desk.web = {NEW_FEED: fresh(NOW - timedelta(days=60))}
    type_feed(desk)
    desk.sync()
    type_in(desk, "Feeds", 2, "status", "active")
    desk.sync()
    assert feed(desk, NEW_FEED)["status"] == "active"


def test_what_the_admin_says_of_a_new_feed_wins(desk: Desk) -> None:
    desk.web = {NEW_FEED: fresh()}
    type_feed(desk, status="paused", lang="fr")
    desk.sync()
    row = feed(desk, NEW_FEED)
    assert (row["status"], row["lang"]) == ("paused", "fr")
    assert differences(desk.engine, desk.book) == {}


def test_a_site_leads_to_its_feed_which_gets_a_row_of_its_own(desk: Desk) -> None:
    site = "https://other.example/"
    link = b'<html><link rel="alternate" type="application/rss+xml" href="/rss"></html>'
    desk.web = {site: link, NEW_FEED: fresh()}
    type_feed(desk, site, notes="please")
    assert desk.sync().edits.taken == 1
    shown = {row["feed_url_canon"]: (row["status"], row["notes"]) for row in desk.rows("Feeds")}
    assert shown[NEW_FEED] == ("active", "please")
    assert shown[site] == ("rejected", f"please [leads to {NEW_FEED}]")
    assert differences(desk.engine, desk.book) == {}


def test_a_known_feed_is_not_asked_again_for_a_second_book(desk: Desk) -> None:
    desk.access = replace(desk.access, spreadsheet_title="Second")
    desk.emulator.new_book("Second")
    ensure_tabs(desk.engine, desk.open())
    type_feed(desk, FEED, notes="theirs")
    assert desk.sync().edits.taken == 1
    assert (feed(desk)["status"], feed(desk)["notes"]) == ("active", "theirs")
    assert len(desk.rows("Feeds")) == 1


@pytest.mark.parametrize("text", ["halted", ""])
def test_a_status_that_does_not_exist_is_put_back_and_answered(desk: Desk, text: str) -> None:
    type_in(desk, "Feeds", 1, "status", text)
    edits = desk.sync().edits
    assert (edits.taken, edits.refused) == (0, 1)
    assert feed(desk)["status"] == "active" == desk.rows("Feeds")[0]["status"]
    assert f"ours [status {text!r} is none of active" in str(desk.rows("Feeds")[0]["notes"])
    assert desk.sync().edits == EditReport()


@pytest.mark.parametrize("text", ["not an address", "ftp://other.example/rss"])
def test_a_row_without_an_address_is_answered_once_and_left_alone(desk: Desk, text: str) -> None:
    type_feed(desk, text, notes="please")
    assert desk.sync().edits.refused == 1
    row = desk.rows("Feeds")[1]
    assert (row["feed_url"], row["status"]) == (text, "rejected")
    assert row["notes"] == "please [no web address in feed_url]"
    assert desk.sync().edits == EditReport()


def test_an_address_that_was_put_right_is_taken(desk: Desk) -> None:
    desk.web = {NEW_FEED: fresh()}
    type_feed(desk, "other.example/rss")
    desk.sync()
    type_in(desk, "Feeds", 2, "feed_url", NEW_FEED)
    assert desk.sync().edits.taken == 1
    assert (feed(desk, NEW_FEED)["status"], feed(desk, NEW_FEED)["notes"]) == ("active", "")
    assert differences(desk.engine, desk.book) == {}


def test_a_key_that_is_not_the_addresss_own_is_refused(desk: Desk) -> None:
    type_feed(desk, NEW_FEED, feed_url_canon="mine")
    assert desk.sync().edits.refused == 1
    assert "leave it empty" in str(desk.rows("Feeds")[1]["notes"])


def test_the_copy_of_a_feeds_row_is_no_edit(desk: Desk) -> None:
    desk.sheet("Feeds").append([desk.sheet("Feeds").rows[1]])
    with write_transaction(desk.engine) as change:
        upsert_feed(change, FEED, status="dead")
    desk.sync()
    assert desk.sync().edits.taken == 0
    assert feed(desk)["status"] == "dead"


def test_a_pasted_heap_of_rows_without_an_address_is_answered_sync_by_sync(desk: Desk) -> None:
    desk.sync()
    desk.emulator.max_request_bytes = 1_000_000
    desk.sheet("Feeds").append([["no address"] for _ in range(1_500)])
    assert [desk.sync().edits.refused for _ in range(3)] == [1_000, 500, 0]
    answered = [row for row in desk.rows("Feeds") if row["status"] == "rejected"]
    assert len(answered) == 1_500
