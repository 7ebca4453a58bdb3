"""What pages state about themselves in JSON-LD, meta elements and links, and what they do not."""

import json

import pytest
from resiliparse.parse.html import HTMLTree

from news_platform.html.decode import parse_document
from news_platform.html.jsonld import (
    PageMetadata,
    all_objects,
    first_article_object,
    fullest_article,
    parse_page_metadata,
)
from news_platform.html.links import FeedLink, feed_links


def _stated(html: str) -> PageMetadata:
    return parse_page_metadata(HTMLTree.parse(html), html.encode())


def _ld(document: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(document)}</script>'


ARTICLE = {
    "@type": "NewsArticle",
    "headline": "Bridge opens &amp; closes",
    "datePublished": "2025-11-01T08:00:00+01:00",
    "author": [{"@type": "Person", "name": "Ada  Moss"}, {"name": "Bo Lind"}],
}
EXPECTED = PageMetadata("Bridge opens & closes", "2025-11-01T08:00:00+01:00", "Ada Moss, Bo Lind")


@pytest.mark.parametrize(
    "document",
    [
        ARTICLE,
        [{"@type": "Organization", "author": "x"}, ARTICLE],
        ARTICLE | {"@type": ["Thing", "ReportageNewsArticle"]},
        {"@type": "WebPage", "datePublished": "1999-01-01", "mainEntity": ARTICLE},
    ],
    ids=["alone", "in a list", "of two types", "as the page's entity"],
)
def test_json_ld_states_title_date_and_authors(document: object) -> None:
    assert _stated(f"<html><head>{_ld(document)}</head></html>") == EXPECTED


def test_json_ld_is_found_in_the_body_and_after_broken_blocks() -> None:
    broken = '<script type="application/ld+json">{"headline": oops</script>'
    assert _stated(f"<html><body>{broken}<p>x</p>{_ld(ARTICLE)}</body></html>") == EXPECTED


def test_open_graph_speaks_where_json_ld_is_silent() -> None:
    head = (
        '<title>Site: Bridge</title><meta property="og:title" content="Bridge">'
        '<meta property="article:published_time" content="2025-11-01T08:00:00Z">'
        '<meta name="author" content="Ada Moss">'
    )
    expected = PageMetadata("Bridge", "2025-11-01T08:00:00+00:00", "Ada Moss")
    assert _stated(f"<html><head>{head}</head></html>") == expected


def test_the_title_element_is_the_last_resort() -> None:
    assert _stated("<title> Bridge\n opens </title>") == PageMetadata("Bridge opens", None, None)


@pytest.mark.parametrize("date", ["yesterday", "2025-99-01", "01.11.2025"])
def test_a_date_that_is_none_is_not_guessed(date: str) -> None:
    html = f'<head><meta property="article:published_time" content="{date}"></head>'
    assert _stated(html).published_at is None


def test_the_address_of_a_profile_is_no_author() -> None:
    html = '<head><meta property="article:author" content="https://a.example/ada"></head>'
    assert _stated(html).author is None
    assert _stated(_ld(ARTICLE | {"author": "https://a.example/ada"})).author is None


@pytest.mark.parametrize(
    "html",
    ["", "<p>x", _ld({"@type": 7, "headline": 3, "author": {"name": ["x"]}}), _ld("x"), "<script"],
)
def test_odd_pages_state_nothing(html: str) -> None:
    assert _stated(html) == PageMetadata(None, None, None)


def test_feeds_are_links_of_a_feed_type() -> None:
    html = (
        '<head><link rel="alternate" type="application/rss+xml" href=" /rss " title="All  news">'
        '<link rel="alternate home" type="Application/Atom+XML" href="https://a.example/atom">'
        '<link rel="alternate" hreflang="de" href="/de">'
        '<link rel="alternate" type="text/html" href="/amp">'
        '<link rel="stylesheet" type="application/rss+xml" href="/no"></head>'
    )
    assert feed_links(HTMLTree.parse(html), html.encode(), url="https://b.example/1") == (
        FeedLink("https://b.example/rss", "application/rss+xml", "All news"),
        FeedLink("https://a.example/atom", "application/atom+xml", None),
    )
    assert feed_links(HTMLTree.parse(""), b"", url="https://b.example/1") == ()
    # Anywhere in the page, and relative to its base element.
    link = '<link rel="alternate" type="application/rss+xml" href="{}">'
    html = f'<head>{link.format("/1")}</head><p>{link.format("2")}</p><base href="https://c.example/x/">'
    assert [one.url for one in feed_links(HTMLTree.parse(html), html.encode(), url="")] == [
        "https://c.example/1",
        "https://c.example/x/2",
    ]


STORY = {"@type": "NewsArticle", "headline": "Bridge opens", "datePublished": "2025-11-01"}


def script(text: str) -> str:
    return f'<html><script type="application/ld+json">{text}</script></html>'


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(STORY),
        f"\n {json.dumps(STORY)} ;\n",
        json.dumps(STORY, indent=1).replace("Bridge opens", "Bridge opens\n"),
    ],
    ids=["alone", "semicolon", "line break in a string"],
)
def test_both_readers_find_the_article(text: str) -> None:
    root = parse_document(script(text))
    assert root is not None
    for found in (fullest_article(all_objects(root)), first_article_object(script(text).encode())):
        assert found["headline"].strip() == "Bridge opens"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '"headline"',
        "[" * 20_000 + '"headline"',
    ],
)
def test_broken_and_deep_scripts_state_nothing(text: str) -> None:
    root = parse_document(script(text))
    assert root is not None
    assert fullest_article(all_objects(root)) == {}
    assert first_article_object(script(text).encode()) == {}


def test_the_crawl_does_not_take_a_listed_article_for_the_page() -> None:
    listed = {"@type": "ItemList", "itemListElement": [STORY]}
    assert first_article_object(script(json.dumps(listed)).encode()) == {}


def test_a_page_with_a_date_is_the_second_choice() -> None:
    page = {"@type": "WebPage", "datePublished": "2025-11-02"}
    assert first_article_object(script(json.dumps(page)).encode()) == page
    both = script(json.dumps([page, STORY])).encode()
    assert first_article_object(both) == STORY
