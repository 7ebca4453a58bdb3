"""What pages state about their articles, and what they do not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from news_platform.articles.extract import ArticleMetadata, parse_article_metadata
from news_platform.html.decode import parse_document

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
            "<title>新桥将于下月通车-社会频道-新华网</title>",
            "",
            "新桥将于下月通车",
            id="Chinese without spaces",
        ),
        pytest.param(
            "<title>Small models at last | My Blog</title>",
            '<h1><a href="/">My Blog</a></h1><h2>Small models at last</h2>',
            "Small models at last",
            id="a heading that links home names the site",
        ),
    ],
)
def test_the_title_is_the_stated_one_without_the_site(head: str, body: str, title: str) -> None:
    assert read(head, body).title == title


@pytest.mark.parametrize(
    ("og_title", "body", "page_title", "title"),
    [
        pytest.param(
            "Sleeping bags: the test",
            "<h1>Where to sleep well</h1>",
            "Sleeping bags: the test - The Post",
            "Where to sleep well",
            id="the page shows the headline, and states another title for search engines",
        ),
        pytest.param(
            "Where to sleep tonight",
            "<h1>Live: all beds taken</h1>",
            "Where to sleep well - The Post",
            "Where to sleep well",
            id="the page shows neither, and its title is the headline",
        ),
        pytest.param(
            "All beds are taken",
            "<h1>All beds are taken</h1>",
            "Where to sleep well",
            "All beds are taken",
            id="the page shows the stated title",
        ),
    ],
)
def test_the_page_decides_between_two_stated_titles(
    og_title: str, body: str, page_title: str, title: str
) -> None:
    headline = '{"@type": "NewsArticle", "headline": "Where to sleep well"}'
    head = (
        f'<title>{page_title}</title><meta property="og:title" content="{og_title}">'
        f'<script type="application/ld+json">{headline}</script>'
    )
    assert read(head, body).title == title


def test_what_follows_two_different_kickers_is_the_title() -> None:
    head = '<meta property="og:title" content="Attack in the north: The answer has to wait">'
    body = "<h1>A region in crisis - The answer has to wait</h1>"
    assert read(head, body).title == "The answer has to wait"
    head = '<meta property="og:title" content="UN: The answer has to wait">'
    assert read(head, "<h1>UN: The answer has to wait</h1>").title == "UN: The answer has to wait"


@pytest.mark.parametrize(
    ("head", "body", "authors"),
    [
        pytest.param(ld(author=[{"name": "Ada"}, "Bo"]), "", ("Ada", "Bo"), id="several"),
        pytest.param(
            ld(author="Ada Writer and Bo Author"), "", ("Ada Writer", "Bo Author"), id="and"
        ),
        pytest.param('<meta name="author" content="By Ada, Bo">', "", ("Ada", "Bo"), id="meta"),
        pytest.param(
            ld(author={"name": "The Post"}, publisher={"name": "The Post"}),
            '<span class="byline">Ada</span>',
            ("Ada",),
            id="people before the site",
        ),
        pytest.param(
            "",
            '<span class="byline">By Christian Thiele | 07 Dezember 2022</span>',
            ("Christian Thiele",),
            id="a date is no name",
        ),
        pytest.param(
            "",
            '<div class="comments"><a rel="author">Reader</a></div><a rel="author">Ada</a>',
            ("Ada",),
            id="who comments is no author",
        ),
        pytest.param(
            ld(author={"@type": "Organization", "name": "Desk"}),
            '<p>von <a href="/autoren/name/ada">Dr. Ada Bell</a></p>',
            ("Dr. Ada Bell",),
            id="a person before an organisation",
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
            "",
            '<time itemprop="datePublished" datetime="2025-11-03T08:00:00Z">x</time>',
            MORNING,
            id="microdata",
        ),
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


@pytest.mark.parametrize(
    ("script", "title"),
    [
        ('<![CDATA[ {"@type": "NewsArticle", "headline": "A"} ]]>', "A"),
        ('{"@type": "NewsArticle", "headline": "A"} }', "A"),
        ("{&quot;@type&quot;: &quot;NewsArticle&quot;, &quot;headline&quot;: &quot;A&quot;}", "A"),
    ],
    ids=["CDATA", "more behind it", "escaped"],
)
def test_json_ld_in_a_wrapping_is_read(script: str, title: str) -> None:
    assert read(f'<script type="application/ld+json">{script}</script>').title == title


def test_the_entries_of_a_live_blog_are_not_its_title_or_date() -> None:
    entry = {
        "@type": "BlogPosting",
        "headline": "Rain",
        "author": "Bo",
        "datePublished": "2025-11-04T10:00:00Z",
        "articleBody": "It rains.",
    }
    blog = {
        "@type": "LiveBlogPosting",
        "headline": "The vote",
        "datePublished": "2025-11-03T08:00Z",
    }
    whole = blog | {"liveBlogUpdate": [entry]}
    head = f'<script type="application/ld+json">{json.dumps(whole)}</script>'
    found = read(head)
    assert (found.title, found.published_at, found.kind) == ("The vote", MORNING, "LiveBlogPosting")
    assert found.body == "Rain It rains."


@pytest.mark.parametrize(
    ("head", "locked"),
    [
        (ld(isAccessibleForFree=False), True),
        (ld(hasPart={"@type": "WebPageElement", "isAccessibleForFree": "False"}), True),
        ('<meta property="article:content_tier" content="metered">', True),
        ('<meta property="article:content_tier" content="free">', False),
        ("", None),
    ],
)
def test_a_paywall_is_stated_or_unknown(head: str, locked: bool | None) -> None:
    assert read(head).is_paywalled is locked
