"""Polling: how the response of a feed changes the ledger."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.isolation.pool import Pool
from news_platform.rss.feeds import parse_feed
from news_platform.rss.ledger.entries import entries_by_url_hash
from news_platform.rss.ledger.feed_rows import claim_feeds, upsert_feed
from news_platform.rss.ledger.tables import ARTICLES_INDEX, DIAGNOSTICS, FEEDS, RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.poll_results import PollOptions
from news_platform.web.fetch import Response
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.rss.stages import FEED, NOW, feed_row, poll, register, rows
from news_platform_tests.rss.web import items, rss
from news_platform_tests.web.hostile_headers import HOSTILE_HEADERS


def test_a_new_entry_becomes_a_pending_row_with_its_hash(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(ledger, FEED)
    feed = rss([("https://post.example/a?utm_source=rss", "A title", NOW - timedelta(hours=1))])
    report = poll(ledger, parse_pool, {FEED: feed})
    assert (report.feeds, report.new_articles) == (1, 1)
    (row,) = rows(ledger)
    assert row.status == "pending"
    assert row.article_url_canon == "https://post.example/a"
    assert len(row.url_hash) == 64
    assert row.published_at == NOW - timedelta(hours=1)
    assert row.sources_list == (FEED,)
    assert row.source == "post.example"
    (index,) = rows(ledger, ARTICLES_INDEX)
    assert (index.url_hash, index.row_id_raw) == (row.url_hash, row.row_id)


def test_poll_without_news_adds_no_rows_and_records_304(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    """The seed's functional test: `poll` without news."""
    register(ledger, FEED, etag='"v1"', last_modified="Mon, 03 Nov 2025 10:00:00 GMT")
    web = FakeFetcher({FEED: response(FEED, status=304)})
    report = poll(ledger, parse_pool, web)
    assert report.outcomes == {"not_modified": 1}
    assert rows(ledger) == []
    assert feed_row(ledger).last_status == 304
    assert web.headers == [
        {"If-None-Match": '"v1"', "If-Modified-Since": "Mon, 03 Nov 2025 10:00:00 GMT"}
    ]
    assert [(r.stage, r.metric, r.value) for r in rows(ledger, DIAGNOSTICS)] == [
        ("poll", "feeds_not_modified", 1.0)
    ]


def test_a_second_poll_of_the_same_items_makes_no_duplicates(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(ledger, FEED)
    feed = rss(items(["a", "b"], newest=NOW))
    poll(ledger, parse_pool, {FEED: feed})
    later = NOW + timedelta(hours=7)
    again = poll(ledger, parse_pool, {FEED: feed + b"<!-- rebuilt -->"}, now=later)
    assert (again.new_articles, again.known_articles) == (0, 2)
    assert [row.last_seen_rss for row in rows(ledger)] == [later, later]
    # The same bytes are not even parsed.
    same = poll(ledger, parse_pool, {FEED: feed + b"<!-- rebuilt -->"}, now=NOW + timedelta(days=1))
    assert same.outcomes == {"same_body": 1}


def test_two_feeds_with_one_article_give_one_row_with_both_sources(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    other = "https://wire.example/rss"
    register(ledger, FEED, other)
    item = items(["a"], newest=NOW)
    poll(ledger, parse_pool, {FEED: rss(item), other: rss(item)})
    (row,) = rows(ledger)
    assert sorted(row.sources_list) == [FEED, other]


def test_title_and_date_are_filled_in_only_where_empty(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(sqlite_ledger, FEED)
    link = "https://post.example/a"
    poll(sqlite_ledger, parse_pool, {FEED: rss([(link, "", None)])})
    date = NOW - timedelta(hours=2)
    later = NOW + timedelta(hours=7)
    poll(sqlite_ledger, parse_pool, {FEED: rss([(link, "First", date)])}, now=later)
    poll(
        sqlite_ledger,
        parse_pool,
        {FEED: rss([(link, "Second", NOW)])},
        now=later + timedelta(hours=7),
    )
    (row,) = rows(sqlite_ledger)
    assert (row.title, row.published_at) == ("First", date)


@pytest.mark.parametrize("pair", ["gawker", "motherjones"])
def test_after_a_real_update_the_second_poll_adds_exactly_the_new_items(
    ledger: sa.Engine, parse_pool: Pool, bench_data: Path, pair: str
) -> None:
    folder = bench_data / "feeds" / "samuelclay__NewsBlur"
    before, after = ((folder / f"pair__{pair}{n}.xml").read_bytes() for n in (1, 2))
    first, second = (
        set(entries_by_url_hash(parse_feed(body, url=FEED).entries)) for body in (before, after)
    )
    register(ledger, FEED)
    options = PollOptions(max_items_per_feed=200)
    assert poll(ledger, parse_pool, {FEED: before}, options=options).new_articles == len(first)
    later = NOW + timedelta(hours=7)
    report = poll(ledger, parse_pool, {FEED: after}, options=options, now=later)
    assert report.new_articles == len(second - first)
    assert {row.url_hash for row in rows(ledger)} == first | second


def test_a_feed_is_not_polled_before_it_is_due(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    register(sqlite_ledger, FEED)
    web = FakeFetcher({FEED: rss(items(["a"], newest=NOW))})
    poll(sqlite_ledger, parse_pool, web)
    assert poll(sqlite_ledger, parse_pool, web, now=NOW + timedelta(minutes=30)).feeds == 0
    due = feed_row(sqlite_ledger).next_poll_at
    assert timedelta(hours=2) < due - NOW < timedelta(hours=7)
    assert poll(sqlite_ledger, parse_pool, web, now=due).feeds == 1


def test_a_person_may_poll_healthy_feeds_at_once_but_not_failing_ones(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    sick = "https://sick.example/rss"
    register(sqlite_ledger, FEED, sick)
    answers = {FEED: rss(items(["a"], newest=NOW)), sick: response(sick, status=503)}
    poll(sqlite_ledger, parse_pool, answers)
    soon = poll(sqlite_ledger, parse_pool, answers, now=NOW + timedelta(minutes=1), only_due=False)
    assert soon.outcomes == {"same_body": 1}


def test_retry_after_delays_the_next_poll(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    register(sqlite_ledger, FEED)
    poll(
        sqlite_ledger,
        parse_pool,
        {FEED: response(FEED, status=429, headers={"retry-after": "72000"})},
    )
    row = feed_row(sqlite_ledger)
    assert row.next_poll_at - NOW > timedelta(hours=17)
    assert (row.status, row.errors_in_row) == ("active", 1)


def test_a_hostile_wait_header_leaves_the_other_feeds_alone(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    feed = rss(items(["a"], newest=NOW))
    answers: dict[str, object] = {FEED: feed}
    for number, headers in enumerate(HOSTILE_HEADERS):
        for status in (200, 304, 503):
            url = f"https://hostile{number}.example/{status}"
            answers[url] = response(url, status=status, body=feed, headers=headers)
    register(sqlite_ledger, *answers)
    assert poll(sqlite_ledger, parse_pool, answers).feeds == len(answers)
    assert (feed_row(sqlite_ledger).last_status, len(rows(sqlite_ledger))) == (200, 1)
    waits = [row.next_poll_at - NOW for row in rows(sqlite_ledger, FEEDS)]
    assert timedelta(0) < min(waits) and max(waits) < timedelta(hours=27)


def test_a_permanent_redirect_rewrites_the_address(ledger: sa.Engine, parse_pool: Pool) -> None:
    register(ledger, FEED)
    new = "https://post.example/new.xml"
    poll(ledger, parse_pool, {FEED: _moved(FEED, new, statuses=(301,))})
    old = feed_row(ledger)
    assert (old.status, old.notes) == ("gone", f"[moved to {new}]")
    assert feed_row(ledger, new).status == "active"
    assert feed_row(ledger, new).feed_url == new


def test_a_temporary_redirect_keeps_the_address(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    register(sqlite_ledger, FEED)
    poll(sqlite_ledger, parse_pool, {FEED: _moved(FEED, "https://cdn.example/x", statuses=(302,))})
    assert feed_row(sqlite_ledger).status == "active"


def test_a_feed_that_moved_onto_a_known_one_is_retired(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    new = "https://post.example/new.xml"
    register(sqlite_ledger, FEED, new)
    body = rss(items(["a"], newest=NOW))
    poll(sqlite_ledger, parse_pool, {FEED: _moved(FEED, new, statuses=(308,)), new: body})
    assert feed_row(sqlite_ledger).status == "gone"
    assert feed_row(sqlite_ledger, new).status == "active"
    assert len(rows(sqlite_ledger)) == 1


def test_a_poll_never_waits_for_its_own_lock_on_the_ledger(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    urls = [f"https://s{number}.example/rss" for number in range(40)]
    register(sqlite_ledger, *urls)
    sqlite_ledger.dispose()

    @sa.event.listens_for(sqlite_ledger, "connect")
    def give_up_at_once(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA busy_timeout = 1")

    feed = rss(items([f"a{number}" for number in range(30)], newest=NOW))
    answers = {url: feed.replace(b"post.example", url.encode()[8:-4]) for url in urls}
    options = PollOptions(concurrency=8, batch_size=4)
    report = poll(sqlite_ledger, parse_pool, answers, options=options)
    assert (report.feeds, report.new_articles) == (40, 1_200)


def test_a_poll_with_nothing_due_asks_the_ledger_once(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    claims: list[str] = []

    @sa.event.listens_for(sqlite_ledger, "before_cursor_execute")
    def count(_c: object, _cursor: object, statement: str, *_others: object) -> None:
        claims.extend([statement] * ("UPDATE feeds" in statement))

    assert poll(sqlite_ledger, parse_pool, {}).feeds == 0
    assert len(claims) == 1


def test_410_retires_the_feed_for_good(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    register(sqlite_ledger, FEED)
    poll(sqlite_ledger, parse_pool, {FEED: response(FEED, status=410)})
    assert feed_row(sqlite_ledger).status == "gone"
    assert poll(sqlite_ledger, parse_pool, {}, now=NOW + timedelta(days=400)).feeds == 0


def test_a_failing_feed_dies_gets_a_slow_probe_and_comes_back(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(sqlite_ledger, FEED)
    now = NOW
    web = FakeFetcher({FEED: FetchError("no answer", reason="timeout")})
    for _ in range(10):
        assert poll(sqlite_ledger, parse_pool, web, now=now).outcomes == {"timeout": 1}
        now = feed_row(sqlite_ledger).next_poll_at
    dead = feed_row(sqlite_ledger)
    assert (dead.status, dead.health_score) == ("dead", 0)
    assert dead.notes == "[soft error: timeout]"
    web.answers[FEED] = rss(items(["a"], newest=now))
    assert poll(sqlite_ledger, parse_pool, web, now=now).new_articles == 1
    alive = feed_row(sqlite_ledger)
    assert (alive.status, alive.errors_in_row, alive.health_score) == ("active", 0, 100)


def test_what_a_person_noted_outlives_failures_and_recovery(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(sqlite_ledger, FEED, notes="ask Ann")
    poll(sqlite_ledger, parse_pool, {FEED: FetchError("x", reason="timeout")})
    assert feed_row(sqlite_ledger).notes == "ask Ann [soft error: timeout]"
    body = rss(items(["a"], newest=NOW))
    poll(sqlite_ledger, parse_pool, {FEED: body}, now=NOW + timedelta(days=1))
    assert feed_row(sqlite_ledger).notes == "ask Ann"


class _PausingFetcher(FakeFetcher):
    """A fetcher during whose request an admin pauses the feed."""

    def __init__(self, engine: sa.Engine, answers: Mapping[str, object]) -> None:
        super().__init__(answers)
        self.engine = engine

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        private_headers: Mapping[str, str] | None = None,
        max_body_bytes: int | None = None,
    ) -> Response:
        with write_transaction(self.engine) as transaction:
            upsert_feed(transaction, FEED, status="paused", notes="not now")
        return await super().fetch(url, headers=headers, max_body_bytes=max_body_bytes)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(rss(items(["a"], newest=NOW)), id="with news"),
        pytest.param(response(FEED, status=304), id="unchanged"),
        pytest.param(response(FEED, status=404), id="failing"),
    ],
)
def test_a_feed_that_is_paused_while_it_is_polled_stays_paused(
    ledger: sa.Engine, parse_pool: Pool, answer: object
) -> None:
    register(ledger, FEED)
    poll(ledger, parse_pool, _PausingFetcher(ledger, {FEED: answer}))
    row = feed_row(ledger)
    assert row.status == "paused" and row.notes.startswith("not now")


def test_hard_errors_kill_a_feed_twice_as_fast(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    register(sqlite_ledger, FEED, errors_in_row=8)
    poll(sqlite_ledger, parse_pool, {FEED: b"<html><body>moved to our new site</body></html>"})
    row = feed_row(sqlite_ledger)
    assert (row.status, row.notes) == ("dead", "[hard error: parse_error]")


def test_the_feeds_of_a_dead_poller_are_polled_after_the_lease(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(sqlite_ledger, FEED)
    claim_feeds(sqlite_ledger, limit=10, lease_seconds=600, now=NOW, only_due=True)
    web = {FEED: rss(items(["a"], newest=NOW))}
    for only_due in (True, False):
        early = NOW + timedelta(seconds=599)
        assert poll(sqlite_ledger, parse_pool, web, now=early, only_due=only_due).feeds == 0
    assert poll(sqlite_ledger, parse_pool, web, now=NOW + timedelta(seconds=600)).feeds == 1


def test_an_entry_updated_after_we_fetched_it_is_read_again(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    register(sqlite_ledger, FEED)
    atom = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>x</id><entry><id>1</id>'
        '<title>A</title><link href="https://post.example/a"/>'
        "<published>2025-11-03T08:00:00Z</published><updated>{}</updated></entry></feed>"
    )
    poll(sqlite_ledger, parse_pool, {FEED: atom.format("2025-11-03T08:00:00Z").encode()})
    with sqlite_ledger.begin() as connection:
        connection.execute(sa.update(RAW).values(status="stored", fetched_at=NOW))
    later = NOW + timedelta(hours=7)
    fresh = atom.format("2025-11-03T15:00:00Z").encode()
    poll(sqlite_ledger, parse_pool, {FEED: fresh}, now=later)
    assert [row.status for row in rows(sqlite_ledger)] == ["pending"]


def _moved(url: str, final_url: str, *, statuses: tuple[int, ...]) -> Response:
    body = rss(items(["a"], newest=NOW))
    return Response(url, final_url, 200, {}, body, redirects=(url,), redirect_statuses=statuses)
