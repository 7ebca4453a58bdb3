"""Polling: how the response of a feed changes the ledger, and when it is polled again."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.rss import poll_results
from news_platform.rss.ledger.feed_rows import claim_feeds, remark_of, upsert_feed, with_remark
from news_platform.rss.ledger.tables import ARTICLES_INDEX, DIAGNOSTICS, FEED_ITEMS, FEED_POLLS
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.poll_results import PollOptions
from news_platform.web.fetch import Response
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.rss.stages import FEED, NOW, FeedHarness
from news_platform_tests.rss.web import items, rss
from news_platform_tests.web import site as server


def test_a_new_entry_becomes_a_pending_row_with_its_hash(feeds: FeedHarness) -> None:
    feeds.register(FEED)
    feed = rss([("https://post.example/a?utm_source=rss", "A title", NOW - timedelta(hours=1))])
    report = feeds.poll({FEED: feed})
    assert (report.feeds, report.new_articles) == (1, 1)
    (row,) = feeds.rows()
    assert row.status == "pending"
    assert row.article_url_canon == "https://post.example/a"
    assert len(row.url_hash) == 64
    assert row.published_at == NOW - timedelta(hours=1)
    assert row.sources_list == (FEED,)
    assert row.source == "post.example"
    (index,) = feeds.rows(ARTICLES_INDEX)
    assert (index.url_hash, index.row_id_raw) == (row.url_hash, row.row_id)


def test_poll_without_news_adds_no_rows_and_records_304(feeds: FeedHarness) -> None:
    """The seed's functional test: `poll` without news."""
    feeds.register(FEED, etag='"v1"', last_modified="Mon, 03 Nov 2025 10:00:00 GMT")
    web = FakeFetcher({FEED: response(FEED, status=304)})
    report = feeds.poll(web)
    assert report.outcomes == {"not_modified": 1}
    assert feeds.rows() == []
    assert feeds.row().last_status == 304
    assert web.headers == [
        {"If-None-Match": '"v1"', "If-Modified-Since": "Mon, 03 Nov 2025 10:00:00 GMT"}
    ]
    assert [(r.stage, r.metric, r.value) for r in feeds.rows(DIAGNOSTICS)] == [
        ("poll", "feeds_not_modified", 1.0)
    ]


def test_a_second_poll_or_feed_with_known_items_adds_only_the_new_ones(feeds: FeedHarness) -> None:
    other = "https://wire.example/rss"
    feeds.register(FEED, other)
    first = rss(items(["a", "b"], newest=NOW))
    feeds.poll({FEED: first, other: rss(items(["a"], newest=NOW))})
    later = NOW + timedelta(hours=7)
    longer = rss(items(["c", "a", "b"], newest=NOW))
    again = feeds.poll({FEED: longer, other: response(other, status=304)}, now=later)
    assert (again.new_articles, again.known_articles) == (1, 2)
    found = {row.article_url[-1]: row for row in feeds.rows()}
    assert len(feeds.rows()) == len(found) == 3
    assert {row.last_seen_rss for row in found.values()} == {later}
    assert sorted(found["a"].sources_list) == [FEED, other]
    # The same bytes are not even parsed.
    tomorrow = NOW + timedelta(days=1)
    same = feeds.poll({FEED: longer, other: response(other, status=304)}, now=tomorrow)
    assert same.outcomes == {"same_body": 1, "not_modified": 1}


def test_title_and_date_are_filled_in_only_where_empty(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    link = "https://post.example/a"
    sqlite_feeds.poll({FEED: rss([(link, "", None)])})
    date = NOW - timedelta(hours=2)
    later = NOW + timedelta(hours=7)
    sqlite_feeds.poll({FEED: rss([(link, "First", date)])}, now=later)
    sqlite_feeds.poll(
        {FEED: rss([(link, "Second", NOW)])},
        now=later + timedelta(hours=7),
    )
    (row,) = sqlite_feeds.rows()
    assert (row.title, row.published_at) == ("First", date)


def test_a_feed_is_not_polled_before_it_is_due(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    web = FakeFetcher({FEED: rss(items(["a"], newest=NOW))})
    sqlite_feeds.poll(web)
    assert sqlite_feeds.poll(web, now=NOW + timedelta(minutes=30)).feeds == 0
    due = sqlite_feeds.row().next_poll_at
    assert timedelta(hours=2) < due - NOW < timedelta(hours=7)
    assert sqlite_feeds.poll(web, now=due).feeds == 1


def test_a_person_may_poll_healthy_feeds_at_once_but_not_failing_ones(
    sqlite_feeds: FeedHarness,
) -> None:
    sick = "https://sick.example/rss"
    sqlite_feeds.register(FEED, sick)
    answers = {FEED: rss(items(["a"], newest=NOW)), sick: response(sick, status=503)}
    sqlite_feeds.poll(answers)
    soon = sqlite_feeds.poll(answers, now=NOW + timedelta(minutes=1), only_due=False)
    assert soon.outcomes == {"same_body": 1}


def test_retry_after_delays_the_next_poll(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll(
        {FEED: response(FEED, status=429, headers={"retry-after": "72000"})},
    )
    row = sqlite_feeds.row()
    assert row.next_poll_at - NOW >= timedelta(hours=20)
    assert (row.status, row.errors_in_row) == ("active", 1)


def test_a_host_that_asks_us_to_wait_is_not_asked_for_its_other_feeds(feeds: FeedHarness) -> None:
    urls = [f"https://busy.example/{number}" for number in range(20)]
    feeds.register(FEED, *urls)
    sites = {f"busy.example/{n}": server.status(429, Retry_After="7200") for n in range(20)}
    sites["post.example/rss"] = server.body(rss(items(["a"], newest=NOW)))
    report, site = feeds.poll_site(sites)
    assert report.outcomes == {"read": 1, "status_429": 2, "host_waits": 18}
    assert len(site.requests) == 3
    waiting = [feeds.row(url) for url in urls]
    assert sorted(row.errors_in_row for row in waiting) == [0] * 18 + [1] * 2
    assert all(row.next_poll_at - NOW > timedelta(hours=1.9) for row in waiting)


def test_a_permanent_redirect_rewrites_the_address_and_a_temporary_one_does_not(
    feeds: FeedHarness,
) -> None:
    feeds.register(FEED)
    new = "https://post.example/new.xml"
    other = "https://other.example/rss"
    feeds.register(other)
    moved_for_a_while = _moved(other, "https://cdn.example/x", statuses=(302,))
    feeds.poll({FEED: _moved(FEED, new, statuses=(301,)), other: moved_for_a_while})
    assert feeds.row(other).status == "active"
    old = feeds.row()
    assert (old.status, old.notes) == ("gone", f"[moved to {new}]")
    assert feeds.row(new).status == "active"
    assert feeds.row(new).feed_url == new


def test_a_feed_that_moved_onto_a_known_one_is_retired(sqlite_feeds: FeedHarness) -> None:
    new = "https://post.example/new.xml"
    sqlite_feeds.register(FEED, new)
    body = rss(items(["a"], newest=NOW))
    sqlite_feeds.poll({FEED: _moved(FEED, new, statuses=(308,)), new: body})
    assert sqlite_feeds.row().status == "gone"
    assert sqlite_feeds.row(new).status == "active"
    assert len(sqlite_feeds.rows()) == 1


NEW = "https://post.example/new.xml"


def test_a_feed_that_moves_there_and_back_is_polled_with_its_history(feeds: FeedHarness) -> None:
    feeds.register(FEED, feed_group="News")
    feeds.poll({FEED: rss(items(["a"], newest=NOW))})
    body = rss(items(["b", "a"], newest=NOW))
    away = response(NEW, body=body)
    feeds.poll({FEED: _as_moved(away, FEED)}, now=NOW + timedelta(hours=7))
    assert (feeds.row().status, feeds.row(NEW).status) == ("gone", "active")
    # Even the same bytes, or a 304, tell that it has moved.
    for hours, status in ((14, 200), (21, 304)):
        here, there = (NEW, FEED) if status == 200 else (FEED, NEW)
        found = response(there, status=status, body=body if status == 200 else b"")
        feeds.poll({here: _as_moved(found, here)}, now=NOW + timedelta(hours=hours))
        assert (feeds.row(here).status, feeds.row(there).status) == ("gone", "active")
    row = feeds.row(NEW)
    assert (row.feed_group, row.may_miss_items, row.notes) == ("News", False, "")
    assert {poll.feed_url for poll in feeds.rows(FEED_POLLS)} == {NEW}
    assert {item.feed_url for item in feeds.rows(FEED_ITEMS)} == {NEW}
    assert {article.feed_url for article in feeds.rows()} == {NEW}


@pytest.mark.parametrize("status", ["rejected", "unreachable", "gone", "paused", "retired"])
def test_a_feed_that_moves_to_a_url_once_given_up_is_polled_there(
    sqlite_feeds: FeedHarness, status: str
) -> None:
    sqlite_feeds.register(FEED, title="The Post")
    sqlite_feeds.register(NEW)
    with write_transaction(sqlite_feeds.engine) as transaction:
        upsert_feed(transaction, NEW, status=status, verdict="language")
    found = response(NEW, body=rss(items(["a"], newest=NOW)))
    sqlite_feeds.poll({FEED: _as_moved(found, FEED)})
    is_by_person = status in ("paused", "retired")
    note = f", which is {status}" if is_by_person else ""
    assert sqlite_feeds.row().notes == f"[moved to {NEW}{note}]"
    row = sqlite_feeds.row(NEW)
    assert (row.status, row.verdict) == ((status, "language") if is_by_person else ("active", ""))


def test_a_poll_never_waits_for_its_own_lock_on_the_ledger(sqlite_feeds: FeedHarness) -> None:
    urls = [f"https://s{number}.example/rss" for number in range(12)]
    sqlite_feeds.register(*urls)
    sqlite_feeds.engine.dispose()

    @sa.event.listens_for(sqlite_feeds.engine, "connect")
    def give_up_at_once(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA busy_timeout = 1")

    feed = rss(items([f"a{number}" for number in range(5)], newest=NOW))
    answers = {url: feed.replace(b"post.example", url.encode()[8:-4]) for url in urls}
    options = PollOptions(concurrency=8, batch_size=4)
    report = sqlite_feeds.poll(answers, options=options)
    assert (report.feeds, report.new_articles) == (12, 60)


def test_410_retires_the_feed_for_good(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll({FEED: response(FEED, status=410)})
    assert sqlite_feeds.row().status == "gone"
    assert sqlite_feeds.poll({}, now=NOW + timedelta(days=400)).feeds == 0


def test_a_failing_feed_dies_gets_a_slow_probe_and_comes_back(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    now = NOW
    web = FakeFetcher({FEED: FetchError("no answer", reason="timeout")})
    for _ in range(10):
        assert sqlite_feeds.poll(web, now=now).outcomes == {"timeout": 1}
        now = sqlite_feeds.row().next_poll_at
    dead = sqlite_feeds.row()
    assert (dead.status, dead.health_score) == ("dead", 0)
    assert dead.notes == "[soft error: timeout]"
    web.answers[FEED] = rss(items(["a"], newest=now))
    assert sqlite_feeds.poll(web, now=now).new_articles == 1
    alive = sqlite_feeds.row()
    assert (alive.status, alive.errors_in_row, alive.health_score) == ("active", 0, 100)


def test_what_a_person_noted_outlives_failures_and_recovery(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED, notes="ask Ann")
    sqlite_feeds.poll({FEED: FetchError("x", reason="timeout")})
    assert sqlite_feeds.row().notes == "ask Ann [soft error: timeout]"
    body = rss(items(["a"], newest=NOW))
    sqlite_feeds.poll({FEED: body}, now=NOW + timedelta(days=1))
    assert sqlite_feeds.row().notes == "ask Ann"


@pytest.mark.parametrize(
    ("notes", "remark", "told"),
    [
        pytest.param("", "stale", "[stale]", id="ours alone"),
        pytest.param("ask Ann", "stale", "ask Ann [stale]", id="beside a person's"),
        pytest.param("ask Ann [stale]", "410 Gone", "ask Ann [410 Gone]", id="in place of ours"),
        pytest.param("ask Ann [stale]", "", "ask Ann", id="taken away"),
        pytest.param("see [1] of the list", "stale", "see [1] of the list [stale]", id="brackets"),
        pytest.param("", "dns: [Errno 3]", "[dns: (Errno 3)]", id="brackets of ours"),
    ],
)
def test_our_remark_is_at_the_end_and_hides_nothing(notes: str, remark: str, told: str) -> None:
    assert with_remark(notes, remark) == told
    assert with_remark(told, "") == with_remark(notes, "")


def test_a_remark_is_read_back() -> None:
    assert [remark_of(text) for text in ("ask Ann [stale]", "ask Ann", "")] == ["stale", "", ""]


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
    sqlite_feeds: FeedHarness, answer: object
) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll(_PausingFetcher(sqlite_feeds.engine, {FEED: answer}))
    row = sqlite_feeds.row()
    assert row.status == "paused" and row.notes.startswith("not now")


def test_hard_errors_kill_a_feed_twice_as_fast(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED, errors_in_row=8)
    sqlite_feeds.poll({FEED: b"<html><body>moved to our new site</body></html>"})
    row = sqlite_feeds.row()
    assert (row.status, row.notes) == ("dead", "[hard error: parse_error]")


def test_the_feeds_of_a_dead_poller_are_polled_after_the_lease(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    claim_feeds(sqlite_feeds.engine, limit=10, lease_seconds=600, now=NOW, only_due=True)
    web = {FEED: rss(items(["a"], newest=NOW))}
    for only_due in (True, False):
        early = NOW + timedelta(seconds=599)
        assert sqlite_feeds.poll(web, now=early, only_due=only_due).feeds == 0
    assert sqlite_feeds.poll(web, now=NOW + timedelta(seconds=600)).feeds == 1


def _as_moved(found: Response, url: str) -> Response:
    return replace(found, url=url, redirects=(url,), redirect_statuses=(301,))


def _moved(url: str, final_url: str, *, statuses: tuple[int, ...]) -> Response:
    body = rss(items(["a"], newest=NOW))
    return Response(url, final_url, 200, {}, body, redirects=(url,), redirect_statuses=statuses)


HOUR = 3600
OPTIONS = PollOptions()


def every(hours: float, *, count: int = 10) -> list[datetime]:
    return [NOW - timedelta(hours=hours * n) for n in range(count)]


@pytest.mark.parametrize(
    ("dates", "previous", "found_new", "hours"),
    [
        pytest.param(every(0.1), 0, True, 3, id="a busy feed: as often as allowed"),
        pytest.param(every(8), 0, True, 4, id="half its rhythm"),
        pytest.param(every(100), 0, True, 6, id="a slow feed: as rarely as allowed"),
        pytest.param([], 0, True, 3, id="no dates"),
        pytest.param([], 3 * HOUR, False, 4.5, id="nothing new: half as long again"),
    ],
)
def test_the_interval_follows_how_often_the_feed_publishes(
    dates: list[datetime], previous: int, found_new: bool, hours: float
) -> None:
    seconds = poll_results.interval_seconds(
        dates, now=NOW, previous=previous, found_new=found_new, options=OPTIONS
    )
    assert seconds == hours * HOUR


def test_jitter_stays_within_a_tenth_and_is_always_the_same() -> None:
    moved = [poll_results.jittered(1_000, key=f"feed {n}") for n in range(100)]
    assert all(900 <= seconds <= 1_100 for seconds in moved)
    assert len(set(moved)) > 50
    assert moved == [poll_results.jittered(1_000, key=f"feed {n}") for n in range(100)]


def test_the_wait_doubles_with_each_failure_up_to_the_probe() -> None:
    waits = [poll_results.failure_wait_seconds(n, options=OPTIONS) for n in (1, 2, 3, 10, 50)]
    assert waits == [3 * HOUR, 6 * HOUR, 12 * HOUR, 168 * HOUR, 168 * HOUR]


@pytest.mark.parametrize(
    ("errors", "days", "score"), [(0, 0, 100), (1, 0, 90), (0, 5, 90), (0, 99, 40), (9, 99, 0)]
)
def test_health_falls_with_failures_and_silence(errors: int, days: int, score: int) -> None:
    assert poll_results.health_score(errors_in_row=errors, no_updates_days=days) == score


def test_future_dates_are_not_the_newest() -> None:
    ahead = NOW + timedelta(days=400)
    assert poll_results.newest_date([NOW, None, ahead], now=NOW) == NOW
    assert poll_results.newest_date([], now=NOW) is None
    assert poll_results.days_without_update(None, now=NOW) == 0
    assert poll_results.days_without_update(NOW - timedelta(days=3, hours=5), now=NOW) == 3
