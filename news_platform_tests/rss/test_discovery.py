"""Discovery: which candidates become active feeds, and why others are rejected."""

import io
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError, InputError
from news_platform.html.links import feed_urls as linked_feeds
from news_platform.html.links import looks_like_html
from news_platform.isolation.pool import Pool
from news_platform.rss.discovery import DiscoveryOptions
from news_platform.rss.feed_list import candidate_feeds
from news_platform.rss.ledger.feed_rows import feed_urls, read_feed, unknown_feeds, upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import Response
from news_platform.web.opml import OpmlFeed, opml_document, opml_entries, opml_feeds
from news_platform_tests.fakes import response
from news_platform_tests.rss.stages import FEED, NOW, discover
from news_platform_tests.rss.web import items, rss

FRESH = rss(items(["a", "b"], newest=NOW - timedelta(days=1)))


def test_an_english_feed_with_fresh_entries_becomes_an_active_row(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    """The seed's functional test: adding an EN feed with fresh entries."""
    report = discover(ledger, parse_pool, {FEED: FRESH})
    assert (report.added, report.outcomes) == (1, {"active": 1})
    row = read_feed(ledger, FEED)
    assert row is not None
    assert (row.status, row.lang, row.title) == ("active", "en", "The Test Post")
    assert row.last_entry_date == NOW - timedelta(days=1)
    assert (row.health_score, row.no_updates_days, row.checked_at) == (98, 1, NOW)


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
            rss(items(["a"], newest=NOW - timedelta(days=9))), "stale", "newest entry", id="stale"
        ),
        pytest.param(GERMAN.encode(), "language", "written in 'de'", id="another language"),
        pytest.param(
            rss([("https://post.example/a", "T", None)]), "undated", "no entry", id="undated"
        ),
        pytest.param(response(FEED, status=404), "missing", "status 404", id="missing"),
        pytest.param(FetchError("x", reason="dns"), "unreachable", "dns", id="no host"),
        pytest.param(b'{"not": "a feed"}', "not_a_feed", "", id="no feed"),
    ],
)
def test_a_rejected_candidate_is_registered_with_its_reason(
    sqlite_ledger: sa.Engine, parse_pool: Pool, answer: object, outcome: str, notes: str
) -> None:
    report = discover(sqlite_ledger, parse_pool, {FEED: answer})
    assert (report.added, report.outcomes) == (0, {outcome: 1})
    row = read_feed(sqlite_ledger, FEED)
    assert row is not None and row.verdict == outcome
    assert row.notes.startswith(f"[{outcome}: ") and notes in row.notes


def test_exactly_seven_days_is_fresh_and_eight_is_not(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    for days, outcome in ((7, "active"), (8, "stale")):
        url = f"https://post.example/{days}"
        body = rss(items(["a"], newest=NOW - timedelta(days=days)))
        assert discover(sqlite_ledger, parse_pool, {url: body}).outcomes == {outcome: 1}


def test_languages_are_a_setting(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    answers = {FEED: GERMAN.encode()}
    for languages in (("de",), ()):
        options = DiscoveryOptions(languages=languages)
        report = discover(sqlite_ledger, parse_pool, answers, options=options, recheck=True)
        assert report.outcomes == {"active": 1}


def test_a_site_leads_to_its_feed(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    site = "https://post.example/"
    link = b'<link rel="alternate" type="application/rss+xml" href="/rss">'
    answers = {site: b"<!doctype html><html><head>" + link + b"</head></html>", FEED: FRESH}
    assert discover(sqlite_ledger, parse_pool, answers, site).added == 1
    assert feed_urls(sqlite_ledger) == [(FEED, "The Test Post")]
    assert unknown_feeds(sqlite_ledger, [site, FEED]) == []


def test_a_site_that_names_no_feed_is_tried_at_the_usual_places(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    site, found = "https://post.example/", "https://post.example/rss.xml"
    missing = {
        url: response(url, status=404)
        for url in ("https://post.example/feed", "https://post.example/rss")
    }
    page = b"<!doctype html><html><body>Hello</body></html>"
    answers = {site: page, found: FRESH, **missing}
    assert discover(sqlite_ledger, parse_pool, answers, site).added == 1
    assert read_feed(sqlite_ledger, found) is not None


def test_a_feed_that_moved_for_good_is_registered_where_it_is_now(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    new = "https://post.example/new.xml"
    moved = Response(FEED, new, 200, {}, FRESH, redirects=(FEED,), redirect_statuses=(301,))
    assert discover(sqlite_ledger, parse_pool, {FEED: moved}).added == 1
    assert feed_urls(sqlite_ledger) == [(new, "The Test Post")]
    assert discover(sqlite_ledger, parse_pool, {}, FEED).known == 1


def test_known_feeds_are_skipped_and_rejected_ones_checked_after_a_month(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    other = "https://quiet.example/rss"
    stale = rss(items(["a"], newest=NOW - timedelta(days=90)))
    discover(sqlite_ledger, parse_pool, {FEED: FRESH, other: stale})
    assert discover(sqlite_ledger, parse_pool, {}, FEED, other).known == 2
    later = NOW + timedelta(days=31)
    fresh = rss(items(["z"], newest=later))
    again = discover(sqlite_ledger, parse_pool, {other: fresh}, FEED, other, now=later)
    assert (again.known, again.outcomes) == (1, {"active": 1})


def test_a_recheck_keeps_what_a_person_set(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    discover(sqlite_ledger, parse_pool, {FEED: FRESH})
    with write_transaction(sqlite_ledger) as transaction:
        upsert_feed(transaction, FEED, status="paused", lang="cy", notes="ask Ann")
    discover(sqlite_ledger, parse_pool, {FEED: FRESH}, recheck=True)
    row = read_feed(sqlite_ledger, FEED)
    assert row is not None
    assert (row.status, row.lang, row.notes) == ("paused", "cy", "ask Ann")


def test_a_feed_that_moved_to_another_spelling_of_itself_is_taken(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    spelled = f"{FEED}?utm_source=x"
    moved = Response(spelled, FEED, 200, {}, FRESH, redirects=(spelled,), redirect_statuses=(301,))
    discover(sqlite_ledger, parse_pool, {spelled: moved})
    row = read_feed(sqlite_ledger, FEED)
    assert row is not None and row.status == "active"


def test_the_same_feed_in_two_spellings_is_one_candidate(
    sqlite_ledger: sa.Engine, parse_pool: Pool
) -> None:
    spelled = "HTTPS://Post.example:443/rss?utm_source=x"
    report = discover(sqlite_ledger, parse_pool, {spelled: FRESH}, FEED, spelled)
    assert (report.candidates, report.added) == (1, 1)
    assert [url for url, _ in feed_urls(sqlite_ledger)] == [spelled]


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


@pytest.mark.parametrize(
    ("body", "content_type", "is_page"),
    [
        (b"<!DOCTYPE html><html>", "", True),
        (b"<rss>", "text/html", False),
        (b"<p>Hello", "text/html; charset=utf-8", True),
        (b"<?xml version='1.0'?><feed>", "text/html", False),
        (b"<feed>", "application/atom+xml", False),
    ],
)
def test_pages_are_distinguished_from_feeds(body: bytes, content_type: str, is_page: bool) -> None:
    assert looks_like_html(body, content_type) is is_page


def test_opml_round_trips() -> None:
    feeds = (
        OpmlFeed("https://b.example/feed", "B"),
        OpmlFeed("https://a.example/rss?a=1&b=2", 'The "A" & Co', "News/Europe"),
        OpmlFeed("https://c.example/feed", "C", "News/Europe"),
        OpmlFeed("https://d.example/feed", "D", "Sports & Co"),
    )
    document = opml_document(feeds)
    assert opml_entries(document.encode()) == feeds
    assert opml_feeds(document.encode()) == tuple(feed.url for feed in feeds)


def test_opml_of_other_readers_is_read(bench_data: Path) -> None:
    for path in sorted((bench_data / "feeds" / "_opml").glob("*.opml")):
        urls = opml_feeds(path.read_bytes())
        assert urls and all(url.startswith("http") for url in urls)


@pytest.mark.parametrize("body", [b"", b"<html/>", b"not xml", b"<rss/>"])
def test_a_file_that_is_not_opml_is_rejected(body: bytes) -> None:
    with pytest.raises(InputError, match="not an OPML file"):
        opml_feeds(body)


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
        ("gone", 1, "active"),
        ("dead", 1, "active"),
        ("active", 0, "active"),
        ("paused", 0, "paused"),
    ],
)
def test_a_known_feed_that_comes_into_use_is_counted_and_not_as_added(
    sqlite_ledger: sa.Engine, parse_pool: Pool, status: str, revived: int, after: str
) -> None:
    with write_transaction(sqlite_ledger) as transaction:
        upsert_feed(transaction, FEED, feed_url=FEED, status=status)
    report = discover(sqlite_ledger, parse_pool, {FEED: FRESH}, recheck=True)
    assert (report.added, report.revived) == (0, revived)
    row = read_feed(sqlite_ledger, FEED)
    assert row is not None and row.status == after
    again = discover(sqlite_ledger, parse_pool, {FEED: FRESH}, recheck=True)
    assert (again.added, again.revived) == (0, 0)
