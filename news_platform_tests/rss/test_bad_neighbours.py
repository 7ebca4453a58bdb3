"""One bad feed, article or candidate among good ones, over HTTP, on both databases.

Each trigger was seen to stop a whole poll, worker or discovery.
"""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.discovery import (
    DiscoveryOptions,
    DiscoveryReport,
    discover_feeds,
)
from news_platform.rss.feeds import parse_fetched
from news_platform.rss.ledger.article_queue import WorkOptions, WorkReport
from news_platform.rss.ledger.feed_rows import feed_urls
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.pipeline import work_articles
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import PollReport, poll_feeds
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import WebFetcher
from news_platform_tests.rss.stages import (
    NOW,
    FeedHarness,
    add_pending,
    feed_row,
    fetch_all,
    register,
    rows,
    worker_context,
)
from news_platform_tests.rss.web import items, page, rss
from news_platform_tests.web.site import Answer, body, raw

DIGITS = b"9" * 5_000
JSON_TYPE = b"Content-Type: application/feed+json"


def answer(content: bytes, *headers: bytes, status: bytes = b"200 OK") -> Answer:
    """Answer with headers given as bytes."""
    length = b"Content-Length: " + str(len(content)).encode()
    return raw(b"\r\n".join((b"HTTP/1.1 " + status, length, *headers, b"", content)))


def json_feed(text: str) -> bytes:
    """Return a JSON feed with this text, an escape, in every field."""
    item = {"id": f"1{text}", "url": f"https://bad.example/{text}", "title": f"A{text}b"}
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"T{text}",
        "language": f"en{text}",
        "items": [item | {"date_published": NOW.isoformat(), "summary": f"S{text}"}],
    }
    return json.dumps(feed).encode()


def dated(date: str) -> bytes:
    """Return a feed with this date, which feedparser alone can read."""
    return rss([("https://bad.example/x", "x", NOW)]).replace(
        b"<pubDate>Mon, 03 Nov 2025 12:00:00 +0000", f"<pubDate>{date}".encode()
    )


PLAIN = rss([("https://bad.example/x", "A story", NOW)])
BAD_FEEDS: dict[str, Answer] = {
    "retry-after-superscript": answer(b"", b"Retry-After: \xc2\xb2", status=b"503 x"),
    "retry-after-digits": answer(b"", b"Retry-After: " + DIGITS, status=b"503 x"),
    "max-age-digits": answer(PLAIN, b"Cache-Control: max-age=" + DIGITS),
    "etag-byte": answer(PLAIN, b'ETag: "\xff"'),
    "last-modified-byte": answer(PLAIN, b"Last-Modified: \xff\xfe"),
    "etag-control": answer(PLAIN, b'ETag: "a\x01b"'),
    "etag-long": answer(PLAIN, b'ETag: "' + b"x" * 50_000 + b'"'),
    "json-surrogate": answer(json_feed("\ud800"), JSON_TYPE),
    "json-nul": answer(json_feed("\x00"), JSON_TYPE),
    "json-control": answer(json_feed("\x07"), JSON_TYPE),
    "content-type": answer(PLAIN, b"Content-Type: \xff\xfe/\xff"),
    "nul-in-title": answer(PLAIN.replace(b"A story", b"A\x00story")),
    "nul-reference": answer(PLAIN.replace(b"A story", b"A&amp;#0;&#xD800;&amp;#xD800;story")),
    "bracket-host": answer(rss([("http://a[b]c/x", "x", NOW), ("http://[x", "y", NOW)])),
    "odd-host": answer(rss([("http://a\u2100b/x", "x", NOW)])),
    "year-zero": answer(dated("0000-00-00")),
    "year-many": answer(dated("Mon, 01 Jan 12025 00:00:00 GMT")),
    "long-move": answer(b"", b"Location: /" + b"x" * 5_000, status=b"301 x"),
}
MOVED_FEED = "/" + "x" * 5_000


def json_ld(text: str) -> bytes:
    """Return an article whose JSON-LD holds this text, as an escape, in every field."""
    fields = {
        "@type": "NewsArticle",
        "headline": f"A{text}b",
        "author": {"name": f"Ann{text}"},
        "keywords": [f"k{text}"],
        "articleSection": f"s{text}",
        "alternativeHeadline": f"sub{text}",
        "datePublished": f"2025-11-03{text}",
    }
    script = f'<script type="application/ld+json">{json.dumps(fields)}</script>'
    return page(f"the harbour of {text!r}", extra=script)


BAD_PAGES: dict[str, Answer] = {
    "retry-after-superscript": answer(b"", b"Retry-After: \xc2\xb2", status=b"503 x"),
    "retry-after-digits": answer(b"", b"Retry-After: " + DIGITS, status=b"429 x"),
    "json-ld-surrogate": answer(json_ld("\ud800"), b"Content-Type: text/html"),
    "json-ld-nul": answer(json_ld("\x00"), b"Content-Type: text/html"),
    "content-type": answer(page("a"), b"Content-Type: \xff\xfe/\xff"),
    "charset": answer(page("the mill"), b"Content-Type: text/html; charset=\xff\x01"),
    "nul-in-title": answer(page("the\x00mill and a bell")),
    "base": answer(page("the base", extra='<base href="http://[x"><a href="http://[y">z</a>')),
    "link": answer(page("the link", extra='<p><a href="http://a[b]c/">There</a> it is.</p>')),
    "odd-redirect": answer(b"", b"Location: http://a[b]c/\xff", status=b"302 x"),
}
BAD_URLS = ("http://a[b]c/x", "http://a\u2100b/x", "http://a]b/")
SITE = b'<html><head><base href="%s"><link rel="alternate" type="application/rss+xml" href="%s">'
BAD_CANDIDATES: dict[str, Answer] = {
    **BAD_FEEDS,
    "base": answer(SITE % (b"http://[x", b"http://[y/feed"), b"Content-Type: text/html"),
    "base-control": answer(SITE % (b"\x00\x01//", b"\xff\x00feed"), b"Content-Type: text/html"),
}


GOOD = [f"good{number}.example" for number in range(4)]


def good_feeds() -> dict[str, Answer]:
    return {f"{host}/rss": body(rss(items(["a", "b"], host=host, newest=NOW))) for host in GOOD}


def poll(
    ledger: sa.Engine, pool: Pool, sites: Mapping[str, Answer], *, now: datetime = NOW
) -> PollReport:
    def run(fetcher: WebFetcher) -> Awaitable[PollReport]:
        return poll_feeds(ledger, fetcher=fetcher, pool=pool, options=PollOptions(), now=now)

    return fetch_all(sites, run)


def test_a_bad_feed_stops_no_other_feed_today_or_the_next_day(
    ledger: sa.Engine, parse_pool: Pool
) -> None:
    bad = {f"{name}.example/rss": one for name, one in BAD_FEEDS.items()}
    sites = {**good_feeds(), **bad, f"long-move.example{MOVED_FEED}": answer(PLAIN)}
    register(ledger, *(f"https://{place}" for place in (*good_feeds(), *bad)))
    report = poll(ledger, parse_pool, sites)
    assert report.feeds == len(GOOD) + len(bad)
    assert "internal_error" not in report.outcomes
    check_good_feeds(ledger, status=200)
    for name in ("etag-byte", "last-modified-byte", "etag-control", "etag-long"):
        row = feed_row(ledger, f"https://{name}.example/rss")
        assert (row.etag, row.last_modified) == ("", "")
    titles = {row.title for row in rows(ledger) if "bad.example" in row.article_url}
    assert {"A\ufffdb", "Ab", "A story"} <= titles
    tomorrow = poll(ledger, parse_pool, sites, now=NOW + timedelta(days=1))
    assert tomorrow.feeds == report.feeds
    assert "internal_error" not in tomorrow.outcomes
    check_good_feeds(ledger, status=200)


def check_good_feeds(ledger: sa.Engine, *, status: int) -> None:
    found = rows(ledger)
    for host in GOOD:
        row = feed_row(ledger, f"https://{host}/rss")
        assert (row.status, row.errors_in_row, row.last_status) == ("active", 0, status)
        assert sum(one.feed_url == f"https://{host}/rss" for one in found) == 2


def work(
    ledger: sa.Engine, pool: Pool, store: ObjectStore, sites: Mapping[str, Answer]
) -> WorkReport:
    def run(fetcher: WebFetcher) -> Awaitable[WorkReport]:
        context = worker_context(ledger, fetcher, pool, store)
        return work_articles(context, worker_id="w1", options=WorkOptions())

    return fetch_all(sites, run)


def test_a_bad_article_stops_no_other_article(
    ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore
) -> None:
    good = {f"{host}/story": body(page(f"the town of {host}")) for host in GOOD}
    bad = {f"{name}.example/story": one for name, one in BAD_PAGES.items()}
    add_pending(ledger, *(f"https://{place}" for place in (*good, *bad)), *BAD_URLS)
    report = work(ledger, extract_pool, local_store, {**good, **bad})
    assert sum(report.outcomes.values()) == len(good) + len(bad) + len(BAD_URLS)
    assert "internal_error" not in report.outcomes
    found = {row.article_url: row for row in rows(ledger)}
    assert {found[f"https://{place}"].status for place in good} == {"stored"}
    assert "processing" not in {row.status for row in found.values()}
    assert {found[url].error_msg for url in BAD_URLS} == {"bad_url"}
    assert found["https://json-ld-surrogate.example/story"].tags == ("k\ufffd",)
    assert found["https://json-ld-nul.example/story"].tags == ("k",)


def test_a_bad_candidate_loses_no_other_candidate(ledger: sa.Engine, parse_pool: Pool) -> None:
    bad = {f"{name}.example/rss": one for name, one in BAD_CANDIDATES.items()}
    sites = {**good_feeds(), **bad, f"long-move.example{MOVED_FEED}": answer(PLAIN)}
    candidates = [f"https://{place}" for place in sites]
    candidates += ["https://a\udcff\x00.example/rss", "http://[x", "http://a[b]c/rss"]

    def run(fetcher: WebFetcher) -> Awaitable[DiscoveryReport]:
        options = DiscoveryOptions(languages=())
        return discover_feeds(
            ledger, candidates, fetcher=fetcher, pool=parse_pool, options=options, now=NOW
        )

    report = fetch_all(sites, run)
    assert report.candidates == len(candidates) == sum(report.outcomes.values())
    assert "internal_error" not in report.outcomes
    known = {row.feed_url: row.status for row in rows(ledger, FEEDS)}
    assert {known[f"https://{place}"] for place in good_feeds()} == {"active"}


def test_both_databases_store_the_same_text(feeds: FeedHarness) -> None:
    feeds.register("https://a.example/rss")
    title = "a\x00b\x07c\ud800d\x0be\tf\ng"
    feed = json.loads(json_feed("x"))
    feed["items"][0]["title"] = title
    answers = {"https://a.example/rss": json.dumps(feed).encode()}
    feeds.poll(answers)
    assert [row.title for row in feeds.rows()] == ["abc\ufffdd e f g"]
    with feeds.engine.begin() as connection:
        changed = sa.update(FEEDS).values(notes=title, title=title).returning(FEEDS.c.notes)
        assert connection.execute(changed).scalar_one() == "abc\ufffdd e\tf\ng"
        same = sa.select(FEEDS.c.feed_url).where(FEEDS.c.title == title)
        assert connection.execute(same).scalar_one() == "https://a.example/rss"


HOST = "feeds.example"


def entity_bomb() -> bytes:
    """Return a feed with the "billion laughs" entity expansion."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    return (
        f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY e0 "ha">{entities}]>'
        '<rss version="2.0"><channel><title>&e9;</title><item><title>&e9;</title>'
        "<link>https://x.example/1</link></item></channel></rss>"
    ).encode()


def many_attributes() -> bytes:
    """Return an element with 100,000 attributes, which stalls both parsers for a minute."""
    attributes = " ".join(f'a{n}="{n}"' for n in range(100_000))
    return f'<rss version="2.0"><channel {attributes}><title>t</title></channel></rss>'.encode()


async def endless(writer: asyncio.StreamWriter) -> None:
    """Answer with a feed that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<rss version='2.0'><channel>")
    while True:
        writer.write(b"<item><title>and on it goes</title></item>" * 1_000)
        await writer.drain()


def test_hostile_feeds_cost_no_other_feed(sqlite_ledger: sa.Engine, parse_pool: Pool) -> None:
    sites: dict[str, Answer] = {
        f"{HOST}/bomb.xml": body(entity_bomb()),
        f"{HOST}/attributes.xml": body(many_attributes()),
        f"{HOST}/endless.xml": endless,
        f"{HOST}/good.xml": body(rss(items(["a", "b"], newest=NOW))),
    }
    register(sqlite_ledger, *(f"https://{place}" for place in sites))
    assert poll(sqlite_ledger, parse_pool, sites).feeds == len(sites)
    good = feed_row(sqlite_ledger, f"https://{HOST}/good.xml")
    assert (good.errors_in_row, good.last_status) == (0, 200)
    assert sum(row.feed_url == good.feed_url for row in rows(sqlite_ledger)) == 2
    # The parser that the attributes stall is killed after its time.
    stalled = feed_row(sqlite_ledger, f"https://{HOST}/attributes.xml")
    assert stalled.errors_in_row > 0


def test_the_parser_reads_ten_thousand_items_at_most() -> None:
    body = rss([(f"https://x.example/{n}", f"T{n}", None) for n in range(10_100)])
    feed = parse_fetched((body, "", ""))
    assert (len(feed.entries), feed.left_out) == (10_000, 100)


def test_real_and_broken_feeds_go_through_the_poller(
    sqlite_ledger: sa.Engine, parse_pool: Pool, bench_data: Path
) -> None:
    found = (path for path in (bench_data / "feeds").rglob("*") if path.is_file())
    files = sorted(path for path in found if path.name != "MANIFEST.json")[::3]
    sites = {
        f"{HOST}/{number}{path.suffix}": body(path.read_bytes())
        for number, path in enumerate(files)
    }
    register(sqlite_ledger, *(f"https://{place}" for place in sites))
    report = poll(sqlite_ledger, parse_pool, sites)
    assert report.feeds == len(files)
    # Fixtures of parsers often have entries without links.
    assert report.outcomes["read"] + report.outcomes["no_links"] > 0.9 * len(files)
    assert report.outcomes["read"] > 0.8 * len(files)
    assert set(report.outcomes) <= {"read", "no_links", "parse_error"}, report.outcomes
    assert report.new_articles > 300
    assert len(feed_urls(sqlite_ledger, statuses=("active",))) == len(files)
