"""Discovery: when each outcome is checked again, and that the list of feeds is followed."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.isolation.pool import Pool
from news_platform.rss.discovery import RECHECKS, next_check_at
from news_platform.rss.feed_list import ListingReport, apply_listing
from news_platform.rss.ledger.feed_rows import (
    claim_feeds,
    feeds_to_check,
    move_feed,
    read_feed,
    unknown_feeds,
)
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.web.opml import OpmlFeed
from news_platform_tests.fakes import response
from news_platform_tests.rss.discovery.test_discover import FRESH
from news_platform_tests.rss.stages import FEED, NOW, discover, feed_row

DAY = timedelta(days=1)
OTHER = "https://other.example/rss"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(FEED, status=503), id="503"),
        pytest.param(response(FEED, status=429), id="429"),
        pytest.param(FetchError("x", reason="timeout"), id="timeout"),
        pytest.param(FetchError("x", reason="dns"), id="dns"),
    ],
)
def test_a_transient_failure_keeps_a_feed_out_for_a_day_only(
    ledger: sa.Engine, parse_pool: Pool, answer: object
) -> None:
    discover(ledger, parse_pool, {FEED: answer})
    row = feed_row(ledger)
    assert (row.status, row.verdict, row.verdict_tries) == ("unreachable", "unreachable", 1)
    assert discover(ledger, parse_pool, {FEED: FRESH}, now=NOW + DAY / 2).known == 1
    # The daily run looks again although nobody names the feed any more.
    assert feeds_to_check(ledger, now=NOW + DAY / 2) == []
    assert feeds_to_check(ledger, now=NOW + DAY) == [FEED]
    report = discover(ledger, parse_pool, {FEED: FRESH}, now=NOW + DAY)
    assert report.revived == 1
    row = feed_row(ledger)
    assert (row.status, row.verdict, row.next_check_at) == ("active", "active", None)


def test_a_feed_that_stays_unreachable_is_tried_ever_more_slowly(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    tried = []
    for day in range(100):
        now = NOW + day * DAY
        report = discover(sqlite_ledger, parse_pool, {FEED: response(FEED, status=503)}, now=now)
        if not report.known:
            tried.append(day)
    assert tried == [0, 1, 3, 7, 15, 31, 61, 91]


@pytest.mark.parametrize(
    ("status", "verdict", "days"),
    [(404, "missing", 7), (410, "missing", 7), (403, "refused", 7), (500, "unreachable", 1)],
)
def test_each_outcome_waits_for_its_own_time(
    sqlite_ledger: sa.Engine, parse_pool: Pool, status: int, verdict: str, days: int
) -> None:
    discover(sqlite_ledger, parse_pool, {FEED: response(FEED, status=status)})
    row = feed_row(sqlite_ledger)
    assert row.verdict == verdict
    assert NOW + (days - 1) * DAY < row.next_check_at < NOW + days * DAY
    assert RECHECKS[verdict].first_days == days


def test_a_polled_feed_survives_a_discovery_that_cannot_reach_it(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    discover(sqlite_ledger, parse_pool, {FEED: FRESH})
    discover(sqlite_ledger, parse_pool, {FEED: response(FEED, status=503)}, recheck=True)
    assert feed_row(sqlite_ledger).status == "active"


def test_every_outcome_is_checked_again() -> None:
    for outcome, rule in RECHECKS.items():
        assert 0 < rule.first_days <= rule.longest_days
        assert next_check_at(outcome, tries=1_000, now=NOW) is not None


def listing(engine: sa.Engine, *feeds: OpmlFeed) -> ListingReport:
    return apply_listing(engine, feeds, (), now=NOW)


def test_a_feed_removed_from_the_list_is_retired_and_comes_back_with_it(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    discover(ledger, parse_pool, {FEED: FRESH, OTHER: FRESH})
    both = (OpmlFeed(FEED, "", "News/Local"), OpmlFeed(OTHER))
    assert listing(ledger, *both) == ListingReport()
    assert feed_row(ledger).feed_group == "News/Local"
    assert listing(ledger, both[1]).retired == (FEED,)
    row = feed_row(ledger)
    assert (row.status, row.notes) == ("retired", "[removed from feeds.opml]")
    # The crawl may propose it, but the person has decided.
    assert discover(ledger, parse_pool, {FEED: FRESH}).known == 1
    assert listing(ledger, both[1]).retired == ()
    assert listing(ledger, *both).restored == (FEED,)
    row = feed_row(ledger)
    assert (row.status, row.notes, row.next_poll_at) == ("active", "", None)


def test_a_feed_that_was_not_accepted_is_checked_and_not_polled_when_listed_again(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    discover(ledger, parse_pool, {FEED: response(FEED, status=404), OTHER: FRESH})
    both = (OpmlFeed(FEED), OpmlFeed(OTHER))
    listing(ledger, *both)
    assert listing(ledger, both[1]).retired == (FEED,)
    assert feeds_to_check(ledger, now=NOW + timedelta(days=90)) == []
    assert listing(ledger, *both).restored == (FEED,)
    assert feed_row(ledger).status == "rejected"
    assert feeds_to_check(ledger, now=NOW) == [FEED]
    discover(ledger, parse_pool, {FEED: FRESH})
    assert feed_row(ledger).status == "active"


def test_a_missing_or_empty_list_retires_nothing(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    discover(sqlite_ledger, parse_pool, {FEED: FRESH})
    listing(sqlite_ledger, OpmlFeed(FEED))
    assert listing(sqlite_ledger) == ListingReport()
    assert feed_row(sqlite_ledger).status == "active"


def test_feeds_that_the_list_never_named_are_left_alone(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    discover(sqlite_ledger, parse_pool, {FEED: FRESH, OTHER: FRESH})
    assert listing(sqlite_ledger, OpmlFeed(OTHER)).retired == ()
    assert feed_row(sqlite_ledger).status == "active"


def test_a_listed_site_stands_for_its_feed(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    site = "https://post.example/"
    page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{FEED}">'.encode()
    report = discover(sqlite_ledger, parse_pool, {site: page, FEED: FRESH}, site)
    apply_listing(sqlite_ledger, [OpmlFeed(site, "", "Towns")], report.checked, now=NOW)
    assert feed_row(sqlite_ledger).feed_group == "Towns"
    # The next day nothing is checked, and nothing is retired.
    assert listing(sqlite_ledger, OpmlFeed(site, "", "Cities")).retired == ()
    assert feed_row(sqlite_ledger).feed_group == "Cities"
    assert listing(sqlite_ledger, OpmlFeed(OTHER)).retired == (site, FEED)


def test_a_listed_feed_that_moved_stays(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    discover(sqlite_ledger, parse_pool, {FEED: FRESH})
    listing(sqlite_ledger, OpmlFeed(FEED))
    (claimed,) = claim_feeds(sqlite_ledger, limit=1, lease_seconds=1, now=NOW, only_due=True)
    with write_transaction(sqlite_ledger) as transaction:
        move_feed(transaction, claimed, feed_url=OTHER, feed_url_canon=OTHER, now=NOW)
    assert listing(sqlite_ledger, OpmlFeed(FEED)).retired == ()
    moved = read_feed(sqlite_ledger, OTHER)
    assert moved is not None and moved.status == "active"
    assert unknown_feeds(sqlite_ledger, [FEED, OTHER]) == []
