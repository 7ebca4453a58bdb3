"""The outbox in SQL, on both databases: pending rows and batches."""

import sqlite3

import pytest
import sqlalchemy as sa

from news_platform.rss.sheets.books import SheetBook, SyncOptions, add_book
from news_platform.rss.sheets.outbox import (
    Intent,
    count_sending,
    mark_done,
    mark_gone,
    next_intent,
    resend_tab,
)
from news_platform_tests.rss.ledger_rows import (
    add_article,
    add_articles,
    change_article,
)

BOOK = SheetBook("b", "Desk", 1, "https://b.example")


@pytest.fixture
def outbox(sqlite_ledger: sa.Engine) -> sa.Engine:
    """Return a ledger that one spreadsheet shows."""
    with sqlite_ledger.begin() as connection:
        add_book(connection, BOOK)
    return sqlite_ledger


def take(engine: sa.Engine, *, max_rows: int = 100, size: int = 10**6) -> Intent:
    intent = next_intent(engine, BOOK, SyncOptions(max_rows=max_rows, max_bytes=size))
    assert intent is not None
    return intent


def settle(engine: sa.Engine, *, max_rows: int = 100) -> Intent:
    intent = take(engine, max_rows=max_rows)
    mark_done(engine, intent, keep=300)
    return intent


def keys(intent: Intent) -> list[tuple[str, str]]:
    return [(row.tab, row.key) for row in intent.rows]


def test_an_intent_stays_the_same_until_it_is_done(outbox: sa.Engine) -> None:
    add_article(outbox)
    first = take(outbox)
    change_article(outbox, 1, title="Changed meanwhile")
    assert take(outbox) == first
    mark_done(outbox, first, keep=300)
    second = take(outbox)
    assert keys(second) == [("Raw", "1")]
    # Another writer that learns late of the first one changes nothing.
    mark_done(outbox, first, keep=300)
    assert take(outbox) == second


def test_a_batch_is_bounded_by_its_size_but_never_empty(outbox: sa.Engine) -> None:
    add_articles(outbox, [{"clean_text": "x" * 20_000} for _ in range(5)])
    assert len(take(outbox, size=50_000).rows) == 2
    settle(outbox)
    assert len(take(outbox, size=1).rows) == 1


def test_a_refilled_tab_is_sent_again(outbox: sa.Engine) -> None:
    add_article(outbox)
    settle(outbox)
    assert next_intent(outbox, BOOK, SyncOptions()) is None
    resend_tab(outbox, "b", "Raw")
    assert keys(take(outbox)) == [("Raw", "1")]


def test_a_row_taken_down_while_it_is_sent_is_blanked_afterwards(outbox: sa.Engine) -> None:
    add_articles(outbox, [{}, {}])
    sent = take(outbox)
    with outbox.begin() as connection:
        assert count_sending(connection) == 4
        mark_gone(connection, rows=[1], index=[], feeds=[])
        assert count_sending(connection) == 3
    # The writer may have sent the row before, or not.
    mark_done(outbox, sent, keep=300)
    blanking = settle(outbox)
    assert [(row.tab, row.key, row.cells) for row in blanking.rows if not row.cells] == [
        ("Raw", "1", ())
    ]


def test_looking_for_rows_neither_waits_for_a_writer_nor_reads_all_rows(
    outbox: sa.Engine, sqlite_ledger_url: str
) -> None:
    add_articles(outbox, [{"title": "One"}])
    settle(outbox)
    assert next_intent(outbox, BOOK, SyncOptions()) is None
    busy = sqlite3.connect(sqlite_ledger_url.removeprefix("sqlite:///"), isolation_level=None)
    busy.execute("BEGIN IMMEDIATE")
    assert next_intent(outbox, BOOK, SyncOptions()) is None
    busy.close()
    statements: list[str] = []
    sa.event.listen(outbox, "before_cursor_execute", lambda *args: statements.append(args[2]))
    next_intent(outbox, BOOK, SyncOptions())
    reading = [text for text in statements if "FROM raw" in text]
    with outbox.connect() as connection:
        for text in reading:
            values = (0,) * text.count("?")
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
            assert not [row[3] for row in plan if row[3].startswith("SCAN raw")]
    assert reading
