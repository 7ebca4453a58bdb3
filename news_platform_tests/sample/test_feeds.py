"""Feeds say the same thing in four formats, whatever stands in a title."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import feedparser
import pytest

from news_platform.sample.outlets import OUTLETS, FeedHabit, Outlet
from news_platform.sample.pages import SampleEntry, render_feed

NOW = datetime(2025, 11, 3, 18, 0, tzinfo=UTC)
AT = datetime(2025, 11, 3, 9, 30, tzinfo=UTC)
ENTRY = SampleEntry(
    id="x:1",
    link="https://x.example/a?b=1&c=2",
    title='Fish & "chips" <cheap> – für alle',
    summary="One < two",
    author="Zoë O’Neil",
    tags=("A & B", "C"),
    published_at=AT,
)


def outlet(kind: str, charset: str = "utf-8") -> Outlet:
    return replace(OUTLETS[0], name="Salt & Light", feed=FeedHabit(kind, "/f", charset=charset))


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1251"])
@pytest.mark.parametrize("kind", ["rss", "atom", "rdf"])
def test_an_entry_comes_back_from_xml_as_it_was(kind: str, charset: str) -> None:
    body = render_feed(outlet(kind, charset), [ENTRY], now=NOW)
    parsed = feedparser.parse(
        body, response_headers={"content-type": f"text/xml; charset={charset}"}
    )
    (entry,) = parsed.entries
    assert not parsed.bozo
    assert parsed.feed.title == "Salt & Light"
    assert (entry.title, entry.link) == (ENTRY.title, ENTRY.link)
    assert entry.author == ENTRY.author
    assert (entry.get("published_parsed") or entry.updated_parsed)[:5] == (2025, 11, 3, 9, 30)


def test_an_entry_comes_back_from_json_as_it_was() -> None:
    document = json.loads(render_feed(outlet("json"), [ENTRY], now=NOW))
    (item,) = document["items"]
    assert (item["id"], item["url"], item["title"]) == (ENTRY.id, ENTRY.link, ENTRY.title)
    assert item["content_html"] == "<p>One &lt; two</p>"
    assert item["date_published"] == "2025-11-03T09:30:00+00:00"
    assert item["tags"] == ["A & B", "C"]


def test_an_undated_entry_stays_undated_in_rss_and_json() -> None:
    undated = replace(ENTRY, published_at=None)
    assert b"pubDate" not in render_feed(outlet("rss"), [undated], now=NOW)
    assert b"date_published" not in render_feed(outlet("json"), [undated], now=NOW)


@pytest.mark.parametrize("kind", ["atom", "rdf"])
def test_where_a_date_is_required_the_feeds_own_is_given(kind: str) -> None:
    undated = replace(ENTRY, published_at=None)
    assert NOW.isoformat().encode() in render_feed(outlet(kind), [undated], now=NOW)


def test_the_xml_declaration_tells_the_charset_and_foreign_letters_become_references() -> None:
    body = render_feed(outlet("rss", "windows-1251"), [ENTRY], now=NOW)
    assert body.startswith(b'<?xml version="1.0" encoding="windows-1251"?>')
    assert b"f&#252;r" in body
