"""Feeds, polls and articles of every status as daily files that SQL reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.feeds import FEED_POLLS, FEEDS, PENDING_ARTICLES, day_path
from news_platform.rss.export import FeedDaysReport, write_feed_days
from news_platform.rss.ledger.tables import FEED_POLLS as POLLS
from news_platform.rss.sheets.workbook import write_workbook
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.requests import list_pending
from news_platform_tests.rss.ledger_rows import add_article, add_feed, change_article
from news_platform_tests.takedowns.asked import ask, served

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
FEED = "https://outlet.example/feed"


def add_poll(engine: sa.Engine, at: datetime, **values: Any) -> None:
    row = {"feed_url": FEED, "polled_at": at, "outcome": "read", **values}
    with engine.begin() as connection:
        connection.execute(sa.insert(POLLS).values(**row))


def rows(store: ObjectStore, table: Dataset, day: str) -> list[dict[str, Any]]:
    return read_table(store, day_path(table, day), table).to_dicts()


def test_what_is_written_before_a_request_is_served_is_cleaned_later(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    ask(local_store, "url", "https://outlet.example/story")
    add_feed(sqlite_ledger, FEED)
    add_article(sqlite_ledger, found_at=NOW, status="pending")
    write_feed_days(sqlite_ledger, local_store, now=NOW)
    write_workbook(sqlite_ledger, local_store)
    day = NOW.date().isoformat()
    assert list_pending(local_store) == [
        ("article_sheets", "all"),
        ("feed_polls", day),
        ("feeds", day),
        ("pending_articles", day),
    ]
    # Served, it is marked no more; what serves it leaves no mark of its own.
    served(local_store, ledger_url=str(sqlite_ledger.url))
    write_workbook(sqlite_ledger, local_store)
    assert list_pending(local_store) == []


def test_every_table_has_a_file_per_day(ledger: sa.Engine, local_store: ObjectStore) -> None:
    add_feed(ledger, FEED, feed_group="desk", usual_gap_seconds=3600)
    add_poll(ledger, NOW, status_code=200, items=7)
    add_article(ledger, found_at=NOW, status="error", error_msg="timeout")
    add_article(ledger, found_at=NOW + timedelta(hours=13), status="pending")
    report = write_feed_days(ledger, local_store, now=NOW)
    assert report == FeedDaysReport(feeds=1, polls=1, articles=2)
    [feed] = rows(local_store, FEEDS, "2025-11-03")
    assert (feed["feed_url"], feed["feed_group"], feed["date"]) == (FEED, "desk", "2025-11-03")
    [poll] = rows(local_store, FEED_POLLS, "2025-11-03")
    assert (poll["status_code"], poll["items"], poll["turned_over"]) == (200, 7, False)
    [failed] = rows(local_store, PENDING_ARTICLES, "2025-11-03")
    assert (failed["status"], failed["error_msg"]) == ("error", "timeout")
    [waiting] = rows(local_store, PENDING_ARTICLES, "2025-11-04")
    assert waiting["status"] == "pending"


def test_only_days_that_changed_are_written_again(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    for days in (3, 2, 1):
        add_article(sqlite_ledger, found_at=NOW - timedelta(days=days))
    assert write_feed_days(sqlite_ledger, local_store, now=NOW).articles == 3
    assert write_feed_days(sqlite_ledger, local_store, now=NOW).articles == 0
    change_article(sqlite_ledger, 2, status="error")
    assert write_feed_days(sqlite_ledger, local_store, now=NOW).articles == 1
    [row] = rows(local_store, PENDING_ARTICLES, "2025-11-01")
    assert (row["row_id"], row["status"]) == (2, "error")


def test_polls_after_the_last_writing_of_a_day_are_not_lost(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    add_poll(sqlite_ledger, NOW)
    write_feed_days(sqlite_ledger, local_store, now=NOW)
    add_poll(sqlite_ledger, NOW + timedelta(hours=11))
    add_poll(sqlite_ledger, NOW + timedelta(days=2))
    write_feed_days(sqlite_ledger, local_store, now=NOW + timedelta(days=2))
    assert len(rows(local_store, FEED_POLLS, "2025-11-03")) == 2
    assert len(rows(local_store, FEED_POLLS, "2025-11-05")) == 1
