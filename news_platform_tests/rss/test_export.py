"""Daily files, deltas, selections, retention, status and invariants of the ledger."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.datasets.feeds import ARTICLES
from news_platform.rss.article_files import (
    WorkPlaces,
    expire_full_texts,
)
from news_platform.rss.export import (
    changed_days,
    delta_since,
    export_days,
)
from news_platform.rss.exports.selection import Selection, iter_articles
from news_platform.rss.ledger.article_queue import claim_articles
from news_platform.rss.ledger.article_store import store_article
from news_platform.rss.ledger.feed_rows import upsert_feed
from news_platform.rss.ledger.status import (
    doubled_main_rows,
    ledger_status,
    missing_full_texts,
    overdue_locks,
    worst_feeds,
)
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import (
    newest_seq,
    read_config,
    write_config,
    write_transaction,
)
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.text.normalize import cut_at_word_end
from news_platform.web.urls import url_hash
from news_platform_tests.rss.claiming import article_row
from news_platform_tests.rss.ledger_rows import read_full_text
from news_platform_tests.rss.stages import add_pending

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)


def add_stored(
    engine: sa.Engine,
    name: str,
    *,
    at: datetime = NOW,
    feeds: int = 1,
    link_hashes: tuple[str, ...] = (),
    **columns: Any,
) -> None:
    """Store one article with a text of its own, as a worker would."""
    url = f"https://post.example/{name}"
    for number in range(feeds):
        add_pending(engine, url, feed=f"https://feed{number}.example/rss")
    (claim,) = claim_articles(engine, "w", limit=1, lease_seconds=600, now=at)
    row = {**article_row(claim, fetched_at=at), "title": name, **columns}
    with write_transaction(engine) as transaction:
        result = store_article(transaction, claim, row, link_hashes=link_hashes, now=at)
    assert result == "stored"


def test_each_day_of_storing_gives_one_file(ledger: sa.Engine, local_store: ObjectStore) -> None:
    add_stored(ledger, "first", at=NOW - timedelta(days=1), authors=("Ada", "Bo"))
    add_stored(ledger, "second")
    report = export_days(ledger, local_store, now=NOW)
    assert (report.days, report.rows) == (("2025-11-02", "2025-11-03"), 2)
    frame = read_table(local_store, "articles/date=2025-11-02/part-0.parquet", ARTICLES)
    assert dict(frame.schema) == dict(ARTICLES.full_schema)
    assert frame.select("title", "date").rows() == [("first", "2025-11-02")]
    assert frame["authors"].to_list() == [["Ada", "Bo"]]
    assert frame["fetched_at"].to_list() == [NOW - timedelta(days=1)]


def test_only_days_that_changed_are_written_again(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    add_stored(sqlite_ledger, "first", at=NOW - timedelta(days=1))
    export_days(sqlite_ledger, local_store, now=NOW)
    assert export_days(sqlite_ledger, local_store, now=NOW).days == ()
    add_stored(sqlite_ledger, "second")
    assert [day.isoformat() for day in changed_days(sqlite_ledger)] == ["2025-11-03"]
    assert export_days(sqlite_ledger, local_store, now=NOW).days == ("2025-11-03",)


def test_a_day_whose_articles_all_became_copies_loses_its_file(
    sqlite_ledger: sa.Engine, local_store: ObjectStore
) -> None:
    add_stored(sqlite_ledger, "first")
    export_days(sqlite_ledger, local_store, now=NOW)
    with write_transaction(sqlite_ledger) as transaction:
        transaction.connection.execute(
            sa.update(RAW).values(status="duplicate", changed_seq=transaction.seq)
        )
    assert export_days(sqlite_ledger, local_store, now=NOW).rows == 0
    assert not local_store.exists("articles/date=2025-11-03/part-0.parquet")


def test_a_delta_gives_every_change_once_in_order(ledger: sa.Engine) -> None:
    for name in ("a", "b", "c"):
        add_stored(ledger, name)
    first = delta_since(ledger, 0, limit=2)
    assert [row["title"] for row in first.rows] == ["a", "b"]
    second = delta_since(ledger, first.cursor, limit=2)
    assert [row["title"] for row in second.rows] == ["c"]
    assert delta_since(ledger, second.cursor).rows == ()
    add_pending(ledger, "https://post.example/a", feed="https://late.example/rss")
    (again,) = delta_since(ledger, second.cursor).rows
    assert again["sources_list"] == ("https://feed0.example/rss", "https://late.example/rss")


def test_a_cursor_never_points_inside_a_transaction(sqlite_ledger: sa.Engine) -> None:
    for name in ("a", "b", "c"):
        add_stored(sqlite_ledger, name)
    with write_transaction(sqlite_ledger) as transaction:
        transaction.connection.execute(
            sa.update(RAW).values(section="x", changed_seq=transaction.seq)
        )
    assert len(delta_since(sqlite_ledger, transaction.seq - 1, limit=2).rows) == 3


def test_popularity_counts_feeds_and_links_inside_the_corpus(ledger: sa.Engine) -> None:
    add_stored(ledger, "quiet", published_at=NOW)
    add_stored(ledger, "carried", feeds=3, published_at=NOW - timedelta(days=2))
    target = (url_hash("https://post.example/linked"),)
    add_stored(ledger, "linked", published_at=NOW - timedelta(days=3))
    for name in ("x", "y", "z"):
        add_stored(ledger, name, link_hashes=target, published_at=NOW - timedelta(days=5))
    rows = iter_articles(ledger, Selection(order="sources", limit=3))
    assert [(row.title, row.popularity) for row in rows] == [
        ("linked", 4),
        ("carried", 3),
        ("quiet", 1),
    ]


def test_full_texts_are_removed_by_age_and_the_row_says_so(
    ledger: sa.Engine, local_store: ObjectStore
) -> None:
    for name, days in (("old", 40), ("new", 1)):
        at = NOW - timedelta(days=days)
        reference = WorkPlaces(local_store).write_full_text(
            url_hash(f"https://post.example/{name}"), "text"
        )
        add_stored(ledger, name, at=at, full_text_ref=reference)
    add_stored(ledger, "lost", full_text_ref="x")
    lost = ["https://post.example/lost"]
    assert missing_full_texts(ledger, local_store, since=NOW - timedelta(days=99)) == lost
    assert expire_full_texts(ledger, local_store, keep_days=30, now=NOW) == 1
    assert expire_full_texts(ledger, local_store, keep_days=30, now=NOW) == 0
    old, new, _ = _rows(ledger)
    assert (old.full_text_ref, old.full_text_expired_at, old.clean_text) == ("", NOW, "text")
    assert read_full_text(local_store, new.url_hash) == "text"
    with pytest.raises(NotFound):
        read_full_text(local_store, old.url_hash)
    assert missing_full_texts(ledger, local_store, since=NOW - timedelta(days=99)) == lost


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        pytest.param("one two", 7, "one two", id="fits"),
        pytest.param("one two", 5, "one", id="inside a word"),
        pytest.param("onetwothree", 5, "onetw", id="one long word"),
    ],
)
def test_text_is_cut_where_a_word_ends(text: str, limit: int, cut: str) -> None:
    assert cut_at_word_end(text, limit) == cut


def test_status_counts_feeds_articles_and_failures(ledger: sa.Engine) -> None:
    with write_transaction(ledger) as transaction:
        for name, state, score in (("a", "active", 100), ("b", "dead", 5), ("c", "rejected", 0)):
            upsert_feed(transaction, name, feed_url=name, status=state, health_score=score)
    add_stored(ledger, "first")
    add_pending(ledger, "https://slow.example/x")
    with ledger.begin() as connection:
        connection.execute(
            sa.update(RAW).where(RAW.c.status == "pending").values(error_msg="timeout")
        )
    status = ledger_status(ledger, now=NOW)
    assert status.feeds == {"active": 1, "dead": 1, "rejected": 1}
    assert status.articles == {"pending": 1, "stored": 1}
    assert status.errors_by_host == {"slow.example": 1}
    assert status.articles_per_hour == {"2025-11-03 12:00": 1}
    assert [row.feed_url for row in worst_feeds(ledger)] == ["b", "a"]


def test_broken_invariants_are_reported(sqlite_ledger: sa.Engine) -> None:
    assert doubled_main_rows(sqlite_ledger) == []
    for url in ("https://post.example/1", "https://post.example/2"):
        add_pending(sqlite_ledger, url)
    claim_articles(sqlite_ledger, "dead", limit=1, lease_seconds=600, now=NOW)
    with sqlite_ledger.begin() as connection:
        connection.execute(sa.update(RAW).values(url_hash="same"))
    assert doubled_main_rows(sqlite_ledger) == ["same"]
    soon, late = NOW + timedelta(minutes=19), NOW + timedelta(minutes=21)
    assert overdue_locks(sqlite_ledger, lease_seconds=600, now=soon) == []
    assert len(overdue_locks(sqlite_ledger, lease_seconds=600, now=late)) == 1


def test_changes_are_numbered_in_order_and_a_failed_one_leaves_no_trace(
    ledger: sa.Engine,
) -> None:
    before = newest_seq(ledger)
    with write_transaction(ledger) as transaction:
        write_config(transaction, "a", "1", now=NOW)
    with pytest.raises(ZeroDivisionError), write_transaction(ledger) as failed:
        write_config(failed, "a", "2", now=NOW)
        raise ZeroDivisionError
    assert (transaction.seq, newest_seq(ledger)) == (before + 1, before + 1)
    assert read_config(ledger, "a") == "1"


def _rows(engine: sa.Engine) -> list[sa.Row[Any]]:
    with read_transaction(engine) as connection:
        return list(connection.execute(sa.select(RAW).order_by(RAW.c.row_id)))
