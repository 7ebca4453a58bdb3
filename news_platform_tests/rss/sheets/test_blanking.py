"""Rows of the Google Sheet whose articles and feeds were taken down."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from news_platform.datasets.takedowns import TakedownRequest
from news_platform.rss.sheets.books import SyncOptions
from news_platform.rss.takedown import clean_ledger
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import TakedownTarget
from news_platform_tests.rss.ledger_rows import add_article, add_articles, add_feed
from news_platform_tests.rss.sheets.harness import SheetHarness, differences, open_harness, tab_rows
from news_platform_tests.takedowns.asked import NOW, asked

FEED = "https://outlet.example/feed"


@pytest.fixture
def harness(sqlite_ledger: sa.Engine) -> Iterator[SheetHarness]:
    add_feed(sqlite_ledger, FEED)
    add_feed(sqlite_ledger, "https://stays.example/feed")
    add_article(sqlite_ledger)
    with open_harness(sqlite_ledger) as harness:
        yield harness


def take_down(harness: SheetHarness, store: ObjectStore, *requests: TakedownRequest) -> None:
    target = TakedownTarget(Takedowns.of(requests))
    clean_ledger(store, harness.engine, target, full_texts=store, now=NOW)


def _shown(harness: SheetHarness) -> str:
    return str([harness.rows(tab) for tab in ("Raw", "ArticlesIndex", "Feeds")])


def test_taken_down_rows_are_blanked_and_named(
    harness: SheetHarness, local_store: ObjectStore
) -> None:
    harness.sync()
    url = str(harness.rows("Raw")[0]["article_url_canon"])
    host = url.split("/")[2]
    take_down(harness, local_store, asked("domain", host), asked("domain", "outlet.example"))
    assert url in _shown(harness) and harness.is_behind()
    report = harness.sync()
    assert report.taken_down == 3
    assert url not in _shown(harness) and FEED not in _shown(harness)
    assert "stays.example" in _shown(harness)
    assert differences(harness.engine, harness.book) == {}
    # The feed in the blanked row is not taken for one that an admin added.
    again = harness.sync()
    assert again.taken_down == again.edits_taken == 0


def test_a_row_that_waits_to_be_sent_is_not_sent(
    harness: SheetHarness, local_store: ObjectStore
) -> None:
    take_down(harness, local_store, asked("domain", "outlet.example"))
    harness.sync()
    assert "outlet.example" not in _shown(harness)


def test_every_copy_of_a_row_is_blanked(harness: SheetHarness, local_store: ObjectStore) -> None:
    harness.sync()
    harness.sheet("Feeds").append([harness.sheet("Feeds").rows[1]] * 2)
    take_down(harness, local_store, asked("domain", "outlet.example"))
    harness.sync()
    assert "outlet.example" not in _shown(harness)


def test_rows_of_a_full_spreadsheet_are_blanked_too(
    harness: SheetHarness, local_store: ObjectStore
) -> None:
    harness.options = SyncOptions(max_cells=10_600, max_rows=20)
    add_articles(harness.engine, [{} for _ in range(200)])
    harness.sync()
    full, current = harness.emulator.books.values()
    url = str(tab_rows(full.titled("Raw"))[0]["article_url_canon"])
    take_down(harness, local_store, asked("url", url))
    assert harness.is_behind()
    report = harness.sync()
    assert report.taken_down == 2 and report.url.endswith(current.id)
    for tab in ("Raw", "ArticlesIndex"):
        assert url not in {row["article_url_canon"] for row in tab_rows(full.titled(tab))}
    assert not harness.is_behind()
