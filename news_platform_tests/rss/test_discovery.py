"""Discovery: which candidates become feeds, when others are checked again, the list of feeds."""

import io
from datetime import timedelta

import polars as pl
import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError, InputError
from news_platform.html.links import feed_urls as linked_feeds
from news_platform.rss.discovery import RECHECKS, DiscoveryOptions, next_check_at
from news_platform.rss.feed_alarms import find_alarms
from news_platform.rss.feed_list import (
    FeedListing,
    ListingReport,
    apply_listing,
    candidate_feeds,
    retire_unlisted,
)
from news_platform.rss.ledger.feed_rows import (
    claim_feeds,
    feed_urls,
    feeds_to_check,
    move_feed,
    read_feed,
    unknown_feeds,
    upsert_feed,
)
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import Response
from news_platform.web.opml import OpmlFeed, opml_document
from news_platform_tests.fakes import response
from news_platform_tests.rss.stages import FEED, NOW, FeedHarness
from news_platform_tests.rss.web import items, rss

FRESH = rss(items(["a", "b"], newest=NOW - timedelta(days=1)))


def test_an_english_feed_with_fresh_entries_becomes_an_active_row(feeds: FeedHarness) -> None:
    """The seed's functional test: adding an EN feed with fresh entries."""
    week_old = rss(items(["a", "b"], newest=NOW - timedelta(days=7)))
    report = feeds.discover({FEED: week_old})
    assert (report.added, report.outcomes) == (1, {"active": 1})
    row = read_feed(feeds.engine, FEED)
    assert row is not None
    assert (row.status, row.lang, row.title) == ("active", "en", "The Test Post")
    assert row.last_entry_date == NOW - timedelta(days=7)
    assert (row.health_score, row.no_updates_days, row.checked_at) == (86, 7, NOW)


GERMAN = (
    rss([("https://post.example/a", "Der Stadtrat hat über die Brücke entschieden", NOW)])
    .decode()
    .replace("The city council voted on Tuesday to repair the old bridge over the river.", "Die")
    .replace("Engineers said the work would take about two years", "Arbeiten werden lange dauern")
)


@pytest.mark.parametrize(
    ("answer", "outcome", "notes"),
    [
        pytest.param(
            rss(items(["a"], newest=NOW - timedelta(days=8))), "stale", "newest entry", id="stale"
        ),
        pytest.param(GERMAN.encode(), "language", "written in 'de'", id="another language"),
        pytest.param(
            rss([("https://post.example/a", "T", None)]), "undated", "no entry", id="undated"
        ),
        pytest.param(response(FEED, status=404), "missing", "status 404", id="missing"),
        pytest.param(response(FEED, status=403), "refused", "status 403", id="refused"),
        pytest.param(FetchError("x", reason="dns"), "unreachable", "dns", id="no host"),
        pytest.param(b'{"not": "a feed"}', "not_a_feed", "", id="no feed"),
    ],
)
def test_a_rejected_candidate_is_registered_with_its_reason(
    sqlite_feeds: FeedHarness, answer: object, outcome: str, notes: str
) -> None:
    report = sqlite_feeds.discover({FEED: answer})
    assert (report.added, report.outcomes) == (0, {outcome: 1})
    row = read_feed(sqlite_feeds.engine, FEED)
    assert row is not None and row.verdict == outcome
    assert row.notes.startswith(f"[{outcome}: ") and notes in row.notes
    wait = (row.next_check_at - NOW) / timedelta(days=RECHECKS[outcome].first_days)
    assert 0.5 < wait <= 1


def test_languages_are_a_setting(sqlite_feeds: FeedHarness) -> None:
    answers = {FEED: GERMAN.encode()}
    for languages in (("de",), ()):
        options = DiscoveryOptions(languages=languages)
        report = sqlite_feeds.discover(answers, options=options, recheck=True)
        assert report.outcomes == {"active": 1}


def test_a_site_leads_to_its_feed(sqlite_feeds: FeedHarness) -> None:
    site = "https://post.example/"
    link = b'<link rel="alternate" type="application/rss+xml" href="/rss">'
    answers = {site: b"<!doctype html><html><head>" + link + b"</head></html>", FEED: FRESH}
    assert sqlite_feeds.discover(answers, site).added == 1
    assert feed_urls(sqlite_feeds.engine) == [(FEED, "The Test Post")]
    assert unknown_feeds(sqlite_feeds.engine, [site, FEED]) == []


def test_a_site_that_names_no_feed_is_tried_at_the_usual_places(sqlite_feeds: FeedHarness) -> None:
    site, found = "https://post.example/", "https://post.example/rss.xml"
    missing = {
        url: response(url, status=404)
        for url in ("https://post.example/feed", "https://post.example/rss")
    }
    page = b"<!doctype html><html><body>Hello</body></html>"
    answers = {site: page, found: FRESH, **missing}
    assert sqlite_feeds.discover(answers, site).added == 1
    assert read_feed(sqlite_feeds.engine, found) is not None


def test_a_feed_that_moved_for_good_is_registered_where_it_is_now(
    sqlite_feeds: FeedHarness,
) -> None:
    new = "https://post.example/new.xml"
    moved = Response(FEED, new, 200, {}, FRESH, redirects=(FEED,), redirect_statuses=(301,))
    assert sqlite_feeds.discover({FEED: moved}).added == 1
    assert feed_urls(sqlite_feeds.engine) == [(new, "The Test Post")]
    assert sqlite_feeds.discover({}, FEED).known == 1


def test_a_recheck_keeps_what_a_person_set(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.discover({FEED: FRESH})
    with write_transaction(sqlite_feeds.engine) as transaction:
        upsert_feed(transaction, FEED, status="paused", lang="cy", notes="ask Ann")
    sqlite_feeds.discover({FEED: FRESH}, recheck=True)
    row = read_feed(sqlite_feeds.engine, FEED)
    assert row is not None
    assert (row.status, row.lang, row.notes) == ("paused", "cy", "ask Ann")


def test_the_same_feed_in_two_spellings_is_one_candidate(sqlite_feeds: FeedHarness) -> None:
    spelled = "HTTPS://Post.example:443/rss?utm_source=x"
    report = sqlite_feeds.discover({spelled: FRESH}, FEED, spelled)
    assert (report.candidates, report.added) == (1, 1)
    assert [url for url, _ in feed_urls(sqlite_feeds.engine)] == [spelled]


@pytest.mark.parametrize(
    ("page", "links"),
    [
        pytest.param(
            b'<head><link rel=alternate type="application/atom+xml" href="a.xml"></head>',
            ("https://post.example/news/a.xml",),
            id="relative",
        ),
        pytest.param(
            b'<head><base href="/b/"><link rel="alternate" type="application/rss+xml; x" href="f">',
            ("https://post.example/b/f",),
            id="with a base",
        ),
        pytest.param(
            b'<link rel="stylesheet" type="application/rss+xml" href="/f">'
            b'<link rel="alternate" hreflang="de" href="/de">',
            (),
            id="other links",
        ),
        pytest.param(b"", (), id="nothing"),
    ],
)
def test_feeds_are_found_by_link_elements(page: bytes, links: tuple[str, ...]) -> None:
    assert linked_feeds(page, url="https://post.example/news/") == links


def test_a_damaged_opml_of_the_root_is_said(
    local_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    local_store.put("feeds.opml", opml_document([OpmlFeed(FEED)]).encode()[:-20])
    assert candidate_feeds(local_store) == (FEED,)
    assert "'feeds.opml' has" in caplog.text and "line 5, column" in caplog.text
    local_store.put("feeds.opml", b"<opml/>")
    assert candidate_feeds(local_store) == ()
    assert "'feeds.opml' lists no feeds" in caplog.text
    local_store.put("feeds.opml", b"<html/>")
    with pytest.raises(InputError, match=r"the root's 'feeds\.opml': not an OPML file"):
        candidate_feeds(local_store)


def test_candidates_come_from_the_roots_opml_and_from_the_crawl(local_store: ObjectStore) -> None:
    assert candidate_feeds(local_store) == ()
    local_store.put("feeds.opml", opml_document([OpmlFeed(FEED)]).encode())
    for day, url, pages in (
        ("02", "https://old.example/rss", 9),
        ("03", "https://new.example/", 1),
    ):
        file = io.BytesIO()
        pl.DataFrame({"feed_url": [url, FEED], "pages": [pages, 1]}).write_parquet(file)
        folder = f"news/feed_candidates/year=2025/month=11/day={day}/filename=W"
        local_store.put(f"{folder}/part-0.parquet", file.getvalue())
    assert candidate_feeds(local_store) == (FEED, "https://old.example/rss", "https://new.example/")
    assert candidate_feeds(local_store, days=1) == (FEED, "https://new.example/")


@pytest.mark.parametrize(
    ("status", "revived", "after"),
    [
        ("rejected", 1, "active"),
        ("active", 0, "active"),
        ("paused", 0, "paused"),
    ],
)
def test_a_known_feed_that_comes_into_use_is_counted_and_not_as_added(
    sqlite_feeds: FeedHarness, status: str, revived: int, after: str
) -> None:
    with write_transaction(sqlite_feeds.engine) as transaction:
        upsert_feed(transaction, FEED, feed_url=FEED, status=status)
    report = sqlite_feeds.discover({FEED: FRESH}, recheck=True)
    assert (report.added, report.revived) == (0, revived)
    row = read_feed(sqlite_feeds.engine, FEED)
    assert row is not None and row.status == after
    again = sqlite_feeds.discover({FEED: FRESH}, recheck=True)
    assert (again.added, again.revived) == (0, 0)


DAY = timedelta(days=1)
OTHER = "https://other.example/rss"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(FEED, status=503), id="503"),
        pytest.param(FetchError("x", reason="timeout"), id="timeout"),
    ],
)
def test_a_transient_failure_keeps_a_feed_out_for_a_day_only(
    feeds: FeedHarness, answer: object
) -> None:
    feeds.discover({FEED: answer})
    row = feeds.row()
    assert (row.status, row.verdict, row.verdict_tries) == ("unreachable", "unreachable", 1)
    assert feeds.discover({FEED: FRESH}, now=NOW + DAY / 2).known == 1
    # The daily run looks again although nobody names the feed any more.
    assert feeds_to_check(feeds.engine, now=NOW + DAY / 2) == []
    assert feeds_to_check(feeds.engine, now=NOW + DAY) == [FEED]
    report = feeds.discover({FEED: FRESH}, now=NOW + DAY)
    assert report.revived == 1
    row = feeds.row()
    assert (row.status, row.verdict, row.next_check_at) == ("active", "active", None)


def test_a_feed_that_stays_unreachable_is_tried_ever_more_slowly(sqlite_feeds: FeedHarness) -> None:
    tried = []
    for day in range(40):
        now = NOW + day * DAY
        report = sqlite_feeds.discover({FEED: response(FEED, status=503)}, now=now)
        if not report.known:
            tried.append(day)
    assert tried == [0, 1, 3, 7, 15, 31]


def test_a_polled_feed_survives_a_discovery_that_cannot_reach_it(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.discover({FEED: FRESH})
    sqlite_feeds.discover({FEED: response(FEED, status=503)}, recheck=True)
    assert sqlite_feeds.row().status == "active"


def test_every_outcome_is_checked_again() -> None:
    for outcome, rule in RECHECKS.items():
        assert 0 < rule.first_days <= rule.longest_days
        assert next_check_at(outcome, tries=1_000, now=NOW) is not None


# A list may leave out a fifth of its feeds: with these, one of them.
CROWD = tuple(OpmlFeed(f"https://o{number}.example/rss") for number in range(4))


def listing(engine: sa.Engine, *feeds: OpmlFeed, damage: str = "") -> ListingReport:
    return apply_listing(engine, FeedListing(feeds, damage), (), now=NOW)


def test_a_feed_removed_from_the_list_is_retired_and_comes_back_with_it(feeds: FeedHarness) -> None:
    feeds.discover({FEED: FRESH})
    feeds.register(*(feed.url for feed in CROWD))
    all_of_them = (OpmlFeed(FEED, "", "News/Local"), *CROWD)
    # Feeds that the list never named are left alone.
    assert listing(feeds.engine, *CROWD) == ListingReport()
    assert listing(feeds.engine, *all_of_them) == ListingReport()
    assert feeds.row().feed_group == "News/Local"
    assert listing(feeds.engine, *CROWD).retired == (FEED,)
    row = feeds.row()
    assert (row.status, row.notes) == ("retired", "[removed from feeds.opml]")
    # The crawl may propose it, but the person has decided.
    assert feeds.discover({FEED: FRESH}).known == 1
    assert listing(feeds.engine, *CROWD).retired == ()
    assert listing(feeds.engine, *all_of_them).restored == (FEED,)
    row = feeds.row()
    assert (row.status, row.notes, row.next_poll_at) == ("active", "", None)


@pytest.mark.parametrize(
    ("left", "damage"),
    [
        pytest.param(CROWD[:3], "", id="two of five are missing"),
        pytest.param(CROWD, "an XML error", id="one is missing and the file is damaged"),
        pytest.param((), "", id="the file is gone or empty"),
    ],
)
def test_a_list_that_was_cut_retires_nothing_until_a_person_confirms_it(
    feeds: FeedHarness, left: tuple[OpmlFeed, ...], damage: str
) -> None:
    def alarms() -> list[str]:
        found = find_alarms(feeds.engine, now=NOW, kinds=["listing"])
        return [alarm.detail for alarm in found]

    feeds.register(FEED, *(feed.url for feed in CROWD))
    everything = (OpmlFeed(FEED), *CROWD)
    listing(feeds.engine, *everything)
    assert listing(feeds.engine, *left, damage=damage).retired == ()
    assert {row.status for row in feeds.rows(FEEDS)} == {"active"}
    [detail] = alarms()
    assert f"{5 - len(left)} of its 5 feeds" in detail and "feeds import feeds.opml" in detail
    # The mended file ends the alarm, and so does a person who means it.
    listing(feeds.engine, *everything)
    assert alarms() == []
    listing(feeds.engine, *left, damage=damage)
    retired = retire_unlisted(feeds.engine, [feed.url for feed in left], now=NOW)
    assert len(retired) == 5 - len(left) and FEED in retired
    assert alarms() == []


def test_a_feed_that_was_not_accepted_is_checked_and_not_polled_when_listed_again(
    feeds: FeedHarness,
) -> None:
    feeds.discover({FEED: response(FEED, status=404)})
    feeds.register(*(feed.url for feed in CROWD))
    listing(feeds.engine, OpmlFeed(FEED), *CROWD)
    assert listing(feeds.engine, *CROWD).retired == (FEED,)
    assert feeds_to_check(feeds.engine, now=NOW + timedelta(days=90)) == []
    assert listing(feeds.engine, OpmlFeed(FEED), *CROWD).restored == (FEED,)
    assert feeds.row().status == "rejected"
    assert feeds_to_check(feeds.engine, now=NOW) == [FEED]
    feeds.discover({FEED: FRESH})
    assert feeds.row().status == "active"


def test_a_listed_site_stands_for_its_feed(sqlite_feeds: FeedHarness) -> None:
    site = "https://post.example/"
    page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{FEED}">'.encode()
    report = sqlite_feeds.discover({site: page, FEED: FRESH}, site)
    listed = FeedListing((OpmlFeed(site, "", "Towns"),))
    apply_listing(sqlite_feeds.engine, listed, report.checked, now=NOW)
    assert sqlite_feeds.row().feed_group == "Towns"
    # The next day nothing is checked, and nothing is retired.
    assert listing(sqlite_feeds.engine, OpmlFeed(site, "", "Cities")).retired == ()
    assert sqlite_feeds.row().feed_group == "Cities"
    assert retire_unlisted(sqlite_feeds.engine, [OTHER], now=NOW) == (site, FEED)


def test_a_listed_feed_that_moved_stays(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.discover({FEED: FRESH})
    listing(sqlite_feeds.engine, OpmlFeed(FEED))
    (claimed,) = claim_feeds(sqlite_feeds.engine, limit=1, lease_seconds=1, now=NOW, only_due=True)
    with write_transaction(sqlite_feeds.engine) as transaction:
        move_feed(transaction, claimed, feed_url=OTHER, feed_url_canon=OTHER, now=NOW)
    assert listing(sqlite_feeds.engine, OpmlFeed(FEED)).retired == ()
    moved = read_feed(sqlite_feeds.engine, OTHER)
    assert moved is not None and moved.status == "active"
    assert unknown_feeds(sqlite_feeds.engine, [FEED, OTHER]) == []
