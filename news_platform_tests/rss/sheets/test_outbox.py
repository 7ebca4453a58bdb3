"""The outbox in SQL, on both databases: pending rows, batches, and the lease of the writer."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
import sqlalchemy as sa

from news_platform.rss.sheets.outbox import (
    BatchLimits,
    Intent,
    claim_lease,
    has_pending,
    mark_applied,
    next_intent,
    release_lease,
)
from news_platform.rss.sheets.tracking import resend_tab
from news_platform_tests.rss.ledger_rows import (
    NOW,
    add_article,
    add_articles,
    add_feed,
    change_article,
)


def take(engine: sa.Engine, *, max_rows: int = 100, book: str = "b", size: int = 10**6) -> Intent:
    intent = next_intent(engine, book, limits=BatchLimits(max_rows, size), now=NOW)
    assert intent is not None
    return intent


def keys(intent: Intent) -> list[tuple[str, str]]:
    return [(row.tab, row.key) for row in intent.rows]


def test_an_intent_stays_the_same_until_it_is_settled(ledger: sa.Engine) -> None:
    add_article(ledger)
    first = take(ledger)
    change_article(ledger, 1, title="Changed meanwhile")
    assert take(ledger) == first
    mark_applied(ledger, first, now=NOW)
    assert keys(take(ledger)) == [("Raw", "1")]


def test_nothing_is_pending_once_all_is_settled(ledger: sa.Engine) -> None:
    add_feed(ledger, "https://outlet.example/feed")
    add_article(ledger)
    assert has_pending(ledger, "b")
    mark_applied(ledger, take(ledger), now=NOW)
    assert not has_pending(ledger, "b")
    assert next_intent(ledger, "b", limits=BatchLimits(9, 9), now=NOW) is None


def test_rows_leave_in_batches_in_the_order_of_their_numbers(ledger: sa.Engine) -> None:
    add_articles(ledger, [{} for _ in range(12)])
    intent = take(ledger, max_rows=11)
    assert [key for _, key in keys(intent)] == [str(n) for n in range(1, 12)]


def test_a_batch_is_bounded_by_its_size_but_never_empty(ledger: sa.Engine) -> None:
    add_articles(ledger, [{"clean_text": "x" * 20_000} for _ in range(5)])
    assert len(take(ledger, size=50_000).rows) == 2
    mark_applied(ledger, take(ledger), now=NOW)
    assert len(take(ledger, size=1).rows) == 1


def test_a_letter_outside_ascii_counts_as_the_six_bytes_it_is_sent_as(ledger: sa.Engine) -> None:
    add_articles(ledger, [{"clean_text": "é" * 10_000} for _ in range(5)])
    assert len(take(ledger, size=130_000).rows) == 2


def test_tokens_differ_and_fences_are_positive_numbers_of_31_bits(ledger: sa.Engine) -> None:
    add_articles(ledger, [{} for _ in range(3)])
    intents = []
    for _ in range(3):
        intents.append(take(ledger, max_rows=1))
        mark_applied(ledger, intents[-1], now=NOW)
    assert len({intent.token for intent in intents}) == 3
    assert all(0 < intent.fence < 2**31 for intent in intents)


def test_a_refilled_tab_is_sent_again(ledger: sa.Engine) -> None:
    add_article(ledger)
    mark_applied(ledger, take(ledger), now=NOW)
    resend_tab(ledger, "b", "Raw")
    assert keys(take(ledger)) == [("Raw", "1")]


@pytest.mark.parametrize("seconds", [0, 59])
def test_a_lease_keeps_others_out_until_it_ends(ledger: sa.Engine, seconds: int) -> None:
    now = NOW + timedelta(seconds=seconds)
    assert claim_lease(ledger, "b", "one", seconds=60, now=NOW)
    assert not claim_lease(ledger, "b", "two", seconds=60, now=now)
    assert claim_lease(ledger, "b", "one", seconds=60, now=now)
    assert claim_lease(ledger, "b", "two", seconds=60, now=now + timedelta(seconds=60))


def test_of_many_who_ask_for_a_first_lease_at_once_one_gets_it(ledger: sa.Engine) -> None:
    for book in map(str, range(10)):
        together = Barrier(4)

        def ask(owner: str, book: str = book, together: Barrier = together) -> bool:
            together.wait()
            return claim_lease(ledger, book, owner, seconds=60, now=NOW)

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(ask, "abcd")) == [False, False, False, True]


def test_a_lease_given_back_is_free_at_once(ledger: sa.Engine) -> None:
    claim_lease(ledger, "b", "one", seconds=60, now=NOW)
    release_lease(ledger, "b", "one")
    assert claim_lease(ledger, "b", "two", seconds=60, now=NOW)
