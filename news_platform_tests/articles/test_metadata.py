"""What pages state about their articles, and what they do not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from news_platform.articles.metadata import ArticleMetadata, parse_article_metadata
from news_platform.html.document import parse_document
from news_platform.html.jsonld import article_object, names

URL = "https://www.post.example/a"


def read(head: str, body: str = "", url: str = URL) -> ArticleMetadata:
    root = parse_document(f"<html><head>{head}</head><body>{body}</body></html>")
    assert root is not None
    return parse_article_metadata(root, url=url)


def ld(**facts: Any) -> str:
    thing = {"@context": "https://schema.org", "@type": "NewsArticle", **facts}
    return f'<script type="application/ld+json">{json.dumps(thing)}</script>'


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        pytest.param('<meta property="og:title" content="A">', "<h1>B</h1>", "A", id="OpenGraph"),
        pytest.param(ld(headline="A &amp; B"), "<h1>C</h1>", "A & B", id="JSON-LD"),
        pytest.param(
            "<title>A bridge at last | Local</title>",
            "<h1>Post</h1><h1>A bridge at last</h1>",
            "A bridge at last",
            id="headline",
        ),
        pytest.param(
            '<meta property="og:title" content="Bridge guide 2025: all you need to know">',
            "<h1>The bridge guide</h1>",
            "The bridge guide",
            id="outside of news the shown title",
        ),
        pytest.param(
            '<meta property="og:site_name" content="The Post">'
            '<meta property="og:title" content="A - The Post">',
            "",
            "A",
            id="the site's name is cut",
        ),
        pytest.param(
            '<meta property="og:title" content="A: B | Something">',
            "<h1>A: B</h1>",
            "A: B",
            id="the headline tells where to cut",
        ),
        pytest.param("<title>A - post</title>", "", "A", id="the host's name is cut"),
        pytest.param('<meta property="og:title" content="A - B">', "", "A - B", id="kept"),
        pytest.param("", "", "", id="nothing"),
    ],
)
def test_the_title_is_the_stated_one_without_the_site(head: str, body: str, title: str) -> None:
    assert read(head, body).title == title


@pytest.mark.parametrize(
    ("head", "body", "authors"),
    [
        pytest.param(ld(author={"name": "Ada"}), "", ("Ada",), id="a person"),
        pytest.param(ld(author=[{"name": "Ada"}, "Bo"]), "", ("Ada", "Bo"), id="several"),
        pytest.param(
            ld(author={"givenName": "Ada", "familyName": "Writer"}), "", ("Ada Writer",), id="parts"
        ),
        pytest.param(
            ld(author="Ada Writer and Bo Author"), "", ("Ada Writer", "Bo Author"), id="and"
        ),
        pytest.param(ld(author="Ada (abc)"), "", ("Ada",), id="initials"),
        pytest.param('<meta name="author" content="By Ada, Bo">', "", ("Ada", "Bo"), id="meta"),
        pytest.param(
            '<meta name="author" content="https://facebook.example/ada">',
            '<a rel="author">Ada</a>',
            ("Ada",),
            id="an address is no name",
        ),
        pytest.param(
            ld(author={"name": "The Post"}, publisher={"name": "The Post"}),
            '<span class="byline">Ada</span>',
            ("Ada",),
            id="people before the site",
        ),
        pytest.param(
            ld(author={"name": "The Post"}, publisher={"name": "The Post"}),
            "",
            ("The Post",),
            id="the site when nobody else is named",
        ),
        pytest.param(
            "",
            '<span class="byline">By Christian Thiele | 07 Dezember 2022</span>',
            ("Christian Thiele",),
            id="a date is no name",
        ),
        pytest.param(
            "",
            '<span class="author">Written by Shelby Loos, PhD</span>',
            ("Shelby Loos",),
            id="a degree is no name",
        ),
        pytest.param(
            "",
            '<div class="comments"><a rel="author">Reader</a></div><a rel="author">Ada</a>',
            ("Ada",),
            id="who comments is no author",
        ),
        pytest.param("", "<p>Trudi was there</p>", (), id="nobody"),
    ],
)
def test_authors_are_those_stated(head: str, body: str, authors: tuple[str, ...]) -> None:
    assert read(head, body).authors == authors


def test_a_reference_to_a_person_is_followed() -> None:
    graph = {
        "@graph": [
            {"@type": "Article", "headline": "A", "author": {"@id": "#ada"}},
            {"@type": "Person", "@id": "#ada", "name": "Ada"},
        ]
    }
    head = f'<script type="application/ld+json">{json.dumps(graph)}</script>'
    assert read(head).authors == ("Ada",)


MORNING = datetime(2025, 11, 3, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("head", "body", "moment"),
    [
        pytest.param(ld(datePublished="2025-11-03T09:00:00+01:00"), "", MORNING, id="JSON-LD"),
        pytest.param(
            '<meta property="article:published_time" content="2025-11-03T08:00Z">',
            "",
            MORNING,
            id="OpenGraph",
        ),
        pytest.param(
            "",
            '<time itemprop="datePublished" datetime="2025-11-03T08:00:00Z">x</time>',
            MORNING,
            id="microdata",
        ),
        pytest.param('<meta name="date" content="soon">', "", None, id="not a date"),
        pytest.param("", "", None, id="nothing"),
    ],
)
def test_the_date_is_the_stated_one_or_none(head: str, body: str, moment: datetime | None) -> None:
    assert read(head, body).published_at == moment


def test_section_tags_subtitle_and_language_are_read() -> None:
    head = (
        '<meta property="article:section" content="Local">'
        '<meta property="og:description" content="D">'
        '<meta name="keywords" content="bridge, river , bridge">'
        '<meta property="og:locale" content="en_GB">'
    )
    found = read(head)
    assert (found.section, found.tags, found.subtitle) == ("Local", ("bridge", "river"), "D")
    assert found.declared_language == "en_GB"


@pytest.mark.parametrize("broken", ["{", '{"@type": "NewsArticle", }', "[" * 5_000, "null", "3"])
def test_broken_json_ld_is_passed_over(broken: str) -> None:
    root = parse_document(f'<script type="application/ld+json">{broken}</script>')
    assert root is not None
    assert article_object(root) == {}


def test_names_are_found_in_any_shape() -> None:
    assert names([{"name": ["A", "B"]}, "C", None, 3, {"name": None}]) == ["A", "B", "C"]
