"""Parsing feeds: what is read, what is rejected, and how it compares with feedparser."""

import calendar
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import feedparser
import pytest

from news_platform.errors import InputError
from news_platform.rss.feeds import Feed, parse_feed, parse_fetched, plain

RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>Post &amp; Times</title>
<language>en-GB</language><item><title>A &amp;lt;b&amp;gt;bold&amp;lt;/b&amp;gt; start</title>
<link>https://post.example/a</link><guid>tag:1</guid>
<pubDate>Mon, 03 Nov 2025 10:00:00 +0100</pubDate><description>&lt;p&gt;One.&lt;/p&gt;</description>
</item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>f</id><entry><id>e</id>
<title>A</title><link rel="self" href="https://post.example/api/1"/>
<link rel="alternate" href="https://post.example/a"/>
<published>2025-11-03T09:00:00Z</published><updated>2025-11-03T11:00:00Z</updated></entry></feed>"""
RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="https://post.example/"><title>T</title><link>https://post.example/</link>
</channel><item rdf:about="https://post.example/a"><title>A</title>
<link>https://post.example/a</link><dc:date>2025-11-03T09:00:00Z</dc:date></item></rdf:RDF>"""
JSON_FEED = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "T",
        "items": [
            {
                "id": "1",
                "url": "https://post.example/a",
                "title": "A",
                "date_published": "2025-11-03T09:00:00Z",
            }
        ],
    }
).encode()


def test_an_rss_feed_gives_title_language_and_entries() -> None:
    feed = parse_feed(RSS)
    assert (feed.title, feed.language) == ("Post & Times", "en-GB")
    (entry,) = feed.entries
    assert entry.link == "https://post.example/a"
    assert entry.title == "A bold start"
    assert entry.published_at == datetime(2025, 11, 3, 9, tzinfo=UTC)
    assert (entry.id, entry.summary) == ("tag:1", "One.")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(ATOM, id="Atom"),
        pytest.param(RDF, id="RSS 1.0"),
        pytest.param(JSON_FEED, id="JSON Feed"),
    ],
)
def test_every_format_gives_link_title_and_date(body: bytes) -> None:
    (entry,) = parse_feed(body).entries
    assert (entry.link, entry.title) == ("https://post.example/a", "A")
    assert entry.published_at == datetime(2025, 11, 3, 9, tzinfo=UTC)


_LANGUAGE = b"<language>en-GB</language>"


@pytest.mark.parametrize(
    ("body", "language"),
    [
        pytest.param(RSS, "en-GB", id="RSS"),
        pytest.param(RSS.replace(b"en-GB", b" pt_BR\n"), "pt-BR", id="RSS, underscore"),
        pytest.param(
            RSS.replace(
                _LANGUAGE, b"<description>" + b"x" * 20_000 + b"</description>" + _LANGUAGE
            ),
            "en-GB",
            id="RSS, after a long description",
        ),
        pytest.param(
            RSS.replace(_LANGUAGE, b"").replace(b"<guid>", b"<language>es</language><guid>"),
            "",
            id="an item's is not the feed's",
        ),
        pytest.param(
            RSS.replace(b'"1.0"?>', b'"1.0" encoding="UTF-16"?>').decode().encode("utf-16"),
            "en-GB",
            id="RSS in UTF-16",
        ),
        pytest.param(
            RDF.replace(b"</channel>", b"<dc:language>ja</dc:language></channel>"), "ja", id="RDF"
        ),
        pytest.param(ATOM.replace(b"<feed ", b'<feed xml:lang="pl" '), "pl", id="Atom"),
        pytest.param(
            JSON_FEED.replace(b'"title"', b'"language": "nl", "title"', 1), "nl", id="JSON"
        ),
    ],
)
def test_a_feeds_language_is_what_it_declares(body: bytes, language: str) -> None:
    assert parse_feed(body).language == language


def test_relative_links_are_made_absolute() -> None:
    body = RSS.replace(b"https://post.example/a", b"/a")
    assert parse_feed(body, url="https://post.example/rss").entries[0].link == (
        "https://post.example/a"
    )


@pytest.mark.parametrize(
    ("guid", "link"),
    [
        pytest.param("https://post.example/a", "https://post.example/a", id="a whole URL"),
        pytest.param("tag:post.example,2025:1", "", id="only a name"),
    ],
)
def test_an_id_is_a_link_only_if_it_is_a_complete_url(guid: str, link: str) -> None:
    body = (
        f'<rss version="2.0"><channel><title>T</title><item><title>A</title>'
        f'<guid isPermaLink="false">{guid}</guid></item></channel></rss>'
    )
    assert parse_feed(body.encode()).entries[0].link == link


def atom(links: str, *, ident: str = "tag:1", feed: str = "", base: str = "") -> bytes:
    """Return an Atom feed with one entry of these links."""
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom"{base}><title>T</title><id>f</id>{feed}'
        f"<entry><id>{ident}</id><title>A</title>{links}"
        "<updated>2025-11-03T11:00:00Z</updated></entry></feed>"
    ).encode()


REPLIES = '<link rel="replies" type="text/html" href="https://post.example/a/comments"/>'


@pytest.mark.parametrize(
    ("body", "link"),
    [
        pytest.param(
            atom('<link href="a"/>', base=' xml:base="https://post.example/news/"'),
            "https://post.example/news/a",
            id="xml:base of the feed",
        ),
        pytest.param(
            atom('<link href="a" xml:base="2025/"/>', base=' xml:base="/news/"'),
            "https://post.example/news/2025/a",
            id="xml:base of the link",
        ),
        pytest.param(
            atom(
                '<link rel="alternate" type="application/json" href="https://post.example/a.json"/>'
                '<link rel="alternate" type="text/html" href="https://post.example/a"/>'
            ),
            "https://post.example/a",
            id="HTML before JSON",
        ),
        pytest.param(
            atom(f'{REPLIES}<link href="https://post.example/a"/>'),
            "https://post.example/a",
            id="not the replies",
        ),
        pytest.param(atom(REPLIES), "", id="nothing but replies"),
        pytest.param(
            atom(f'{REPLIES}<link rel="self" href="a.atom"/>', base=' xml:base="/n/"', ident="5"),
            "",
            id="an id is not a link",
        ),
        pytest.param(
            atom(REPLIES, ident="https://post.example/a"), "https://post.example/a", id="its id"
        ),
    ],
)
def test_the_link_of_an_atom_entry_is_its_page(body: bytes, link: str) -> None:
    [entry] = parse_feed(body, url="https://post.example/feed").entries
    assert entry.link == link


def test_links_to_parts_of_one_page_are_named() -> None:
    page = b"https://post.example/a"
    parts = [page, page + b"#1", page + b"#1", page + b"#2", b"https://post.example/b#1"]
    items = b"".join(b"<item><link>%b</link></item>" % part for part in parts)
    body = b'<rss version="2.0"><channel><title>T</title>%b</channel></rss>' % items
    found = parse_fetched((body, "", "https://post.example/rss")).same_page
    assert found == (*[f"{page.decode()}#1"] * 2, f"{page.decode()}#2")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            atom("", feed='<link rel="hub" href="/hub"/><link rel="next" href="?page=2&amp;x=1"/>'),
            id="Atom",
        ),
        pytest.param(
            atom(
                "",
                base=' xml:base="https://post.example/a/"',
                feed='<link rel="hub" href="../hub"/>'
                '<link rel="next" href="/feed?page=2&amp;x=1"/>',
            ),
            id="Atom with xml:base",
        ),
        pytest.param(
            RSS.replace(
                b"<item>",
                b'<atom:link rel="hub" href="https://post.example/hub"/>'
                b"<atom:link href='https://post.example/feed?page=2&amp;x=1' rel='prev-archive'/>"
                b'<atom:link rel="next" href="https://post.example/other"/><item>',
            ),
            id="RSS",
        ),
        pytest.param(
            JSON_FEED.replace(
                b'"title"',
                b'"next_url": "https://post.example/feed?page=2&x=1", '
                b'"hubs": [{"type": "WebSub", "url": "https://post.example/hub"}], "title"',
                1,
            ),
            id="JSON",
        ),
    ],
)
def test_a_feed_names_its_hub_and_its_older_page(body: bytes) -> None:
    feed = parse_feed(body, url="https://post.example/feed")
    assert feed.hub_url == "https://post.example/hub"
    assert feed.older_url == "https://post.example/feed?page=2&x=1"


@pytest.mark.parametrize("zone", ["GMT+1", "UTC-05"])
def test_a_date_with_an_odd_zone_is_dropped_and_the_others_stay(zone: str) -> None:
    other = RSS.decode().replace("10:00:00 +0100", f"10:00:00 {zone}")
    item = other[other.index("<item>") : other.index("</item>") + 7]
    body = RSS.decode().replace("<item>", f"{item}<item>")
    # A time in a summary or title is not a date.
    body = body.replace("One.", f"Live at 19:45 {zone}.")
    first, second = parse_feed(body.encode()).entries
    assert (first.published_at, second.published_at) == (
        None,
        datetime(2025, 11, 3, 9, tzinfo=UTC),
    )
    assert second.summary == f"Live at 19:45 {zone}."


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html><body>Hello</body></html>", id="a web page"),
        pytest.param(b"%PDF-1.4", id="a document"),
    ],
)
def test_bytes_that_are_not_a_feed_are_rejected(body: bytes) -> None:
    with pytest.raises(InputError, match="not a feed"):
        parse_feed(body, url="https://post.example/x")


def test_a_feed_without_entries_is_still_a_feed() -> None:
    body = b'<rss version="2.0"><channel><title>Quiet</title></channel></rss>'
    assert parse_feed(body) == Feed("Quiet", "", ())


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        pytest.param("a &amp; b", "a & b", id="entity"),
        pytest.param("a &lt;i&gt;b&lt;/i&gt;", "a b", id="escaped tag"),
        pytest.param("5 < 6", "5 < 6", id="no tag at all"),
        pytest.param("  a\n b ", "a b", id="space"),
        pytest.param(None, "", id="nothing"),
    ],
)
def test_markup_becomes_plain_text(markup: str | None, text: str) -> None:
    assert plain(markup) == text


def test_entries_links_titles_and_dates_are_feedparsers_on_99_percent(bench_data: Path) -> None:
    manifest = json.loads((bench_data / "feeds/MANIFEST.json").read_text())
    names = [entry["file"] for entry in manifest][::3]
    same: list[bool] = []
    for name in names:
        body = (bench_data / "feeds" / name).read_bytes()
        theirs = feedparser.parse(body).entries
        ours = _entries(body)
        if name.endswith(".json"):
            # feedparser does not read JSON feeds, so their own items are the reference.
            assert (len(ours), theirs) == (len(json.loads(body)["items"]), [])
            continue
        same += [_facts(a) == b for a, b in zip(map(_known, theirs), ours, strict=False)]
        same += [False] * abs(len(theirs) - len(ours))
    assert len(same) > 700
    assert sum(same) / len(same) >= 0.99


def _entries(body: bytes) -> list[tuple[str, str, datetime | None]]:
    try:
        return [(e.link, e.title, e.published_at) for e in parse_feed(body).entries]
    except InputError:
        return []


def _known(entry: Any) -> tuple[str, str, Any]:
    return (
        (entry.get("link") or "").strip(),
        plain(entry.get("title")),
        entry.get("published_parsed") or entry.get("updated_parsed"),
    )


def _facts(known: tuple[str, str, Any]) -> tuple[str, str, datetime | None]:
    link, title, parsed = known
    moment = datetime.fromtimestamp(calendar.timegm(parsed), UTC) if parsed else None
    return link, title, moment
