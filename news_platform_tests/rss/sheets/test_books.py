"""A full spreadsheet is continued in a new one: no change is lost, none is in both."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.rss.sheets.books import SyncOptions, next_title
from news_platform.rss.sheets.sync import SyncReport
from news_platform_tests.emulators.sheets import changes
from news_platform_tests.emulators.sheets.drive import grant
from news_platform_tests.rss.ledger_rows import add_articles, add_feed, change_article
from news_platform_tests.rss.sheets.harness import SheetHarness, open_harness, tab_rows

FEED = "https://outlet.example/feed"
# Six tabs of 100 rows have 7,100 cells; each article adds 44 once the first 99 rows are full.
ROOM = SyncOptions(max_cells=10_600, max_rows=20)


@pytest.fixture
def harness(sqlite_ledger: sa.Engine) -> Iterator[SheetHarness]:
    add_feed(sqlite_ledger, FEED)
    with open_harness(sqlite_ledger) as harness:
        harness.options = ROOM
        harness.sync()
        yield harness


def fill(harness: SheetHarness, articles: int = 200) -> SyncReport:
    add_articles(harness.engine, [{} for _ in range(articles)])
    return harness.sync()


def shown(harness: SheetHarness, tab: str = "Raw", key: str = "row_id") -> list[list[int]]:
    """Return the keys that each spreadsheet shows in a tab."""
    return [
        [int(str(row[key])) for row in tab_rows(book.titled(tab))]
        for book in harness.emulator.books.values()
    ]


def config(book: changes.Book) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in tab_rows(book.titled("Config"))}


def test_every_article_is_in_one_of_the_two_spreadsheets(harness: SheetHarness) -> None:
    report = fill(harness)
    first, second = shown(harness)
    assert first + second == list(range(1, 201)) and second
    indexed = shown(harness, "ArticlesIndex", "row_id_raw")
    assert sorted(indexed[0] + indexed[1]) == list(range(1, 201))
    old, new = harness.emulator.books.values()
    assert (old.title, new.title) == ("Desk", "Desk (2)")
    assert report.url.endswith(new.id) and report.continued_from.endswith(old.id)
    assert sum(sheet.row_count * sheet.column_count for sheet in old.sheets) <= ROOM.max_cells
    # Config links both, and the feeds are in the new one, too.
    links = {key: value for key, value in config(new).items() if "of Desk" in str(key)}
    assert links["spreadsheet 1 of Desk"].endswith(old.id)
    assert links["spreadsheet 2 of Desk"].endswith(new.id)
    assert [row["feed_url"] for row in tab_rows(new.titled("Feeds"))] == [FEED]


def test_later_syncs_go_on_in_the_new_spreadsheet(harness: SheetHarness) -> None:
    fill(harness)
    assert not harness.is_behind()
    before = shown(harness)[0]
    fill(harness, 3)
    change_article(harness.engine, 1, title="Corrected")
    assert harness.is_behind()
    harness.sync()
    old, new = harness.emulator.books.values()
    assert shown(harness)[0] == before
    # The old one keeps what it showed; the change is in the new one.
    assert tab_rows(old.titled("Raw"))[0]["title"] == "Title 1"
    assert [r["title"] for r in tab_rows(new.titled("Raw")) if r["row_id"] == 1] == ["Corrected"]
    assert {201, 202, 203} <= set(shown(harness)[1])


def test_whoever_may_read_the_old_one_may_read_the_new_one(harness: SheetHarness) -> None:
    for given in (
        {"type": "user", "role": "writer", "emailAddress": "ann@desk.example"},
        {"type": "domain", "role": "reader", "domain": "desk.example"},
        {"type": "anyone", "role": "reader"},
    ):
        grant(harness.book, given)
    fill(harness)
    roles = {
        (one["type"], one["role"], one.get("emailAddress") or one.get("domain"))
        for one in harness.book.permissions.values()
    }
    assert roles >= {
        ("user", "writer", "ann@desk.example"),
        ("domain", "reader", "desk.example"),
        ("anyone", "reader", None),
    }


def test_a_spreadsheet_named_by_its_id_is_continued_too(harness: SheetHarness) -> None:
    harness.emulator.books.clear()
    book = harness.emulator.new_book("Newsroom")
    harness.access = replace(harness.access, spreadsheet_id=book.id, spreadsheet_title="")
    harness.sync()
    fill(harness)
    assert [one.title for one in harness.emulator.books.values()] == ["Newsroom", "Newsroom (2)"]
    fill(harness, 1)
    first, second = shown(harness)
    assert first + second == list(range(1, 202))


def test_a_new_title_for_a_large_ledger_fills_several(harness: SheetHarness) -> None:
    add_articles(harness.engine, [{} for _ in range(320)])
    harness.emulator.books.clear()
    harness.access = replace(harness.access, spreadsheet_title="Second")
    harness.sync()
    assert [one.title for one in harness.emulator.books.values()] == [
        "Second",
        "Second (2)",
        "Second (3)",
    ]
    assert [n for rows in shown(harness) for n in rows] == list(range(1, 321))


@pytest.mark.parametrize("fault", ["before", "late"])
def test_an_unclear_creation_never_gives_two_spreadsheets(
    harness: SheetHarness, fault: Any
) -> None:
    harness.emulator.faults.planned_drive.extend([fault])
    add_articles(harness.engine, [{} for _ in range(200)])
    for _ in range(3):
        try:
            harness.sync()
        except Exception as error:  # noqa: BLE001  any failure may come first; the next sync mends it
            assert "Desk (2)" in str(error)
    assert len(harness.emulator.books) == 2
    first, second = shown(harness)
    assert first + second == list(range(1, 201))


def test_if_the_new_one_is_deleted_its_rows_are_sent_to_another(harness: SheetHarness) -> None:
    fill(harness)
    del harness.emulator.books[harness.book.id]
    fill(harness, 1)
    first, third = shown(harness)
    assert first + third == list(range(1, 202))
    assert harness.book.title == "Desk (3)"


def test_titles_are_numbered() -> None:
    assert next_title("Desk (old)", 2) == "Desk (old) (2)"
    assert next_title("Desk (2)", 3) == "Desk (3)"
