"""Filters, orders and limits of selections, and that they stream."""

import time
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.rss.exports.selection import (
    Selection,
    count_reposts,
    iter_articles,
    iter_stored_values,
)
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.text_query import parse_query
from news_platform.storage.sql.engine import read_transaction
from news_platform_tests.rss.ledger_rows import NOW, add_article, add_articles, add_feed

FEED, OTHER = "https://outlet.example/feed", "https://other.example/feed"


def add(engine: sa.Engine, title: str, **values: Any) -> None:
    add_article(engine, title=title, stored_at=NOW, **values)


def titles(engine: sa.Engine, **chosen: Any) -> list[str]:
    found = [row.title for row in iter_articles(engine, Selection(**chosen))]
    assert found == [row.title for row in iter_stored_values(engine, Selection(**chosen))]
    return found


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["c", "b", "a"]),
        ({"sources": ("one.example",)}, ["a"]),
        ({"sources": ("one.example", "two.example")}, ["b", "a"]),
        ({"languages": ("de", "fr")}, ["c", "b"]),
        ({"types": ("opinion",)}, ["c"]),
        ({"feeds": (OTHER,)}, ["c", "b"]),
        ({"feeds": (OTHER,), "limit": 1}, ["c"]),
        ({"groups": ("desk",)}, ["b", "a"]),
        ({"groups": ("nobody",)}, []),
        ({"is_paywalled": True}, ["b"]),
        ({"is_paywalled": False}, ["c", "a"]),
        ({"has_text": True}, ["a"]),
        ({"has_text": False}, ["c", "b"]),
        ({"query": parse_query("Climate")}, ["a"]),
        ({"query": parse_query("-climate")}, ["c", "b"]),
        ({"query": parse_query('"net zero"'), "languages": ("de",)}, []),
    ],
)
def test_filters_choose_articles_on_both_databases(
    ledger: sa.Engine, chosen: dict[str, Any], expected: list[str]
) -> None:
    add_feed(ledger, FEED, feed_group="desk")
    text = "The climate law: net\nzero"
    values: dict[str, Any] = {"clean_text": text, "clean_text_len": len(text)}
    add(ledger, "a", source="one.example", language="en", sources_list=(FEED,), **values)
    add(ledger, "b", source="two.example", language="de", is_paywalled=True,
        sources_list=(FEED, OTHER))  # fmt: skip
    add(ledger, "c", source="x.example", language="fr", article_type="opinion",
        sources_list=(OTHER,))  # fmt: skip
    add_article(ledger, title="copy", stored_at=NOW, status="duplicate")
    add_article(ledger, title="waits", status="pending")
    assert titles(ledger, **chosen) == expected


def test_orders_are_newest_most_popular_and_as_stored(ledger: sa.Engine) -> None:
    add(ledger, "old", published_at=NOW - timedelta(days=2), sources_list=(FEED, OTHER))
    add(ledger, "new", published_at=NOW, sources_list=(FEED,))
    add(ledger, "undated", found_at=NOW - timedelta(days=1), sources_list=(FEED,))
    assert titles(ledger) == ["new", "undated", "old"]
    assert titles(ledger, order="sources") == ["old", "new", "undated"]
    assert titles(ledger, order="stored", limit=2) == ["old", "new"]


def test_the_newest_come_from_an_index_and_are_not_sorted(sqlite_ledger: sa.Engine) -> None:
    add_articles(sqlite_ledger, [{"stored_at": NOW} for _ in range(3)])
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT raw"):
            plan = connection.connection.cursor().execute(
                f"EXPLAIN QUERY PLAN {statement}", parameters
            )
            plans.extend(row[3] for row in plan.fetchall())

    sa.event.listen(sqlite_ledger, "before_cursor_execute", explain)
    assert len(titles(sqlite_ledger, since=NOW - timedelta(days=9))) == 3
    assert any("raw_newest" in step for step in plans)
    assert not any("TEMP B-TREE" in step for step in plans)


def test_a_stream_that_is_left_early_frees_its_connection(sqlite_ledger: sa.Engine) -> None:
    add_articles(sqlite_ledger, [{"stored_at": NOW} for _ in range(1_000)])
    rows = iter_articles(sqlite_ledger, Selection())
    assert next(rows).row_id == 1_000
    rows.close()  # type: ignore[attr-defined]
    assert sqlite_ledger.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_the_first_of_many_articles_does_not_wait_for_the_last(sqlite_ledger: sa.Engine) -> None:
    add_articles(
        sqlite_ledger,
        [{"stored_at": NOW, "clean_text": "word " * 400} for _ in range(5_000)],
    )
    with read_transaction(sqlite_ledger) as connection:
        started = time.process_time()
        connection.execute(sa.select(RAW)).all()
        whole = time.process_time() - started
    started = time.process_time()
    next(iter_articles(sqlite_ledger, Selection()))
    assert time.process_time() - started < whole / 2


def test_reposts_by_other_sources_count_in_the_popularity(ledger: sa.Engine) -> None:
    for number, source in enumerate(("a.example", "b.example", "a.example", "c.example"), 1):
        add(ledger, f"t{number}", source=source, sources_list=(FEED,))
    clusters = {f"{row_id:064x}": "cluster" for row_id in (1, 2, 3)}
    reposts = count_reposts(ledger, {**clusters, "unknown": "cluster"})
    assert reposts == dict.fromkeys(clusters, 1)
    for _ in range(2):  # the temporary table is gone after each
        rows = iter_articles(ledger, Selection(order="sources", reposts=reposts))
        assert [(row.title, row.popularity) for row in rows] == [
            ("t3", 2),
            ("t2", 2),
            ("t1", 2),
            ("t4", 1),
        ]
    assert titles(ledger, order="sources", limit=1, reposts=reposts) == ["t3"]
