"""Which entries of a feed become articles, and the states that an article had."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from news_platform.rss.explain import explain_article
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.article_queue import (
    MOST_STATES,
    ArticleClaim,
    claim_articles,
    close_article,
    note_states,
    read_states,
)
from news_platform.rss.ledger.entries import LIMIT, add_entries, entries_by_url_hash
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.match import PageAddress
from news_platform.web.urls import url_hash

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
URL = "https://post.example/bridge"


def _add(engine: sa.Engine, *urls: str, max_new: int = 10, now: datetime = NOW) -> None:
    seen = entries_by_url_hash(FeedEntry(url, "", None, "", "") for url in urls)
    with write_transaction(engine) as transaction:
        add_entries(transaction, "https://post.example/rss", seen, max_new=max_new, now=now)


def _claim(engine: sa.Engine, now: datetime) -> ArticleClaim:
    (claim,) = claim_articles(engine, "w1", limit=1, lease_seconds=600, now=now)
    return claim


def _states(engine: sa.Engine) -> list[tuple[str, str, datetime]]:
    with read_transaction(engine) as connection:
        return [(one.status, one.reason, one.at) for one in read_states(connection, 1)]


def test_every_change_is_kept_with_its_time_and_reason(ledger: sa.Engine) -> None:
    _add(ledger, URL)
    later = [NOW + timedelta(hours=hours) for hours in range(1, 7)]
    claim = _claim(ledger, later[0])
    with write_transaction(ledger) as transaction:
        assert close_article(
            transaction, claim, "pending", "status 503", next_try_at=later[1], now=later[0]
        )
    claim = _claim(ledger, later[2])
    with write_transaction(ledger) as transaction:
        assert close_article(
            transaction, claim, "pending", "no robots.txt", next_try_at=later[3], now=later[2]
        )
    claim = _claim(ledger, later[4])
    with write_transaction(ledger) as transaction:
        assert close_article(transaction, claim, "skipped", "Disallow: /", now=later[5])
        # The claim is lost: this changes nothing, and is no state.
        assert not close_article(transaction, claim, "skipped", "again", now=later[5])
    assert _states(ledger) == [
        ("pending", "", NOW),
        ("processing", "claimed by w1", later[0]),
        ("pending", "status 503", later[0]),
        ("processing", "claimed by w1", later[2]),
        ("pending", "no robots.txt", later[2]),
        ("processing", "claimed by w1", later[4]),
        ("skipped", "Disallow: /", later[5]),
    ]


def test_an_article_above_the_limit_is_skipped_first_and_pending_later(ledger: sa.Engine) -> None:
    _add(ledger, URL, max_new=0)
    _add(ledger, URL, now=NOW + timedelta(hours=1))
    assert [state[:2] for state in _states(ledger)] == [
        ("skipped", LIMIT),
        ("pending", "a feed lists it again"),
    ]


def test_the_oldest_states_of_a_page_that_fails_for_ever_end(sqlite_ledger: sa.Engine) -> None:
    _add(sqlite_ledger, URL)
    for number in range(40):
        now = NOW + timedelta(days=number)
        claim = _claim(sqlite_ledger, now)
        with write_transaction(sqlite_ledger) as transaction:
            assert close_article(transaction, claim, "pending", f"fault {number}", now=now)
    states = _states(sqlite_ledger)
    assert len(states) == MOST_STATES
    assert states[-1][:2] == ("pending", "fault 39")


def test_explain_shows_all_states(sqlite_ledger: sa.Engine, local_store: ObjectStore) -> None:
    _add(sqlite_ledger, URL)
    with sqlite_ledger.begin() as connection:
        note_states(connection, [1], "skipped", now=NOW + timedelta(hours=1), reason="no text.")
    found = list(explain_article(sqlite_ledger, local_store, PageAddress.of(URL)))
    states = [one for one in found if one.source.startswith("ledger article_states")]
    assert [one.state for one in states] == ["pending", "skipped"]
    assert states[-1].text == "It became skipped: no text."


def entry(link: str, published_at: datetime | None = None) -> FeedEntry:
    return FeedEntry(link, "T", published_at, "", "")


def test_entries_are_kept_once_per_web_address_newest_first() -> None:
    found = entries_by_url_hash(
        [
            entry("https://a.example/old", NOW - timedelta(days=1)),
            entry("https://a.example/undated"),
            entry("https://a.example/new?utm_medium=x", NOW),
            entry("https://a.example/new", NOW - timedelta(days=9)),
            entry("mailto:a@b.example"),
            entry(""),
        ]
    )
    urls = [f"https://a.example/{name}" for name in ("new", "old", "undated")]
    assert list(found) == [url_hash(url) for url in urls]
    assert found[url_hash(urls[0])].link == "https://a.example/new?utm_medium=x"
