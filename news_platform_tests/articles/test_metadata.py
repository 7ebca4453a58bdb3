"""What pages state about their articles, and what they do not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from news_platform.articles.metadata import ArticleMetadata, parse_article_metadata
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
            "<title>A bridge at last - Section - Post</title>",
            "<h1>Culture - A bridge at last</h1>",
            "A bridge at last",
            id="without the kicker of the heading",
        ),
        pytest.param(
            "<title>The Post: A bridge at last | Post</title>",
            "<h1>The Post: A bridge at last</h1>",
            "The Post: A bridge at last",
            id="what is stated whole is not cut",
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
        pytest.param(
            "<title>Sports Wire</title>",
            "<h2>Congress asks for an investigation</h2>",
            "Congress asks for an investigation",
            id="a section is not a title",
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
            "Where to sleep",
            "<h1>Where to sleep well</h1>",
            "Where to sleep well",
            "Where to sleep well",
            id="the stated title is a shortened headline",
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
            "<h1>Where to sleep well</h1>",
            "Where to sleep well",
            "All beds are taken",
            id="only the stated title differs",
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


@pytest.mark.parametrize(
    ("stated", "shown", "title"),
    [
        (
            "Attack in the north: The answer has to wait",
            "A region in crisis - The answer has to wait",
            "The answer has to wait",
        ),
        (
            "UN: The answer has to wait",
            "UN: The answer has to wait",
            "UN: The answer has to wait",
        ),
        (
            "A bridge in town: The answer has to wait",
            "A bridge in our town: The answer has to wait",
            "A bridge in our town: The answer has to wait",
        ),
    ],
    ids=["two kickers", "a short one that both have stays", "a reworded beginning is none"],
)
def test_what_follows_two_different_kickers_is_the_title(
    stated: str, shown: str, title: str
) -> None:
    head = f'<meta property="og:title" content="{stated}">'
    assert read(head, f"<h1>{shown}</h1>").title == title


@pytest.mark.parametrize(
    ("head", "body", "authors"),
    [
        pytest.param(ld(author=[{"name": "Ada"}, "Bo"]), "", ("Ada", "Bo"), id="several"),
        pytest.param(
            ld(author={"givenName": "Ada", "familyName": "Writer"}), "", ("Ada Writer",), id="parts"
        ),
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
        pytest.param(
            '<meta property="og:site_name" content="The Post">'
            '<meta name="author" content="The Post, Frankfurt, Germany">',
            "",
            ("The Post",),
            id="an address is not a list of names",
        ),
        pytest.param(
            ld(author={"@type": "Organization", "name": "Desk"}),
            '<p>von <a href="/autoren/name/ada">Dr. Ada Bell</a></p>',
            ("Dr. Ada Bell",),
            id="a person before an organisation",
        ),
        pytest.param(
            ld(author={"@type": "Organization", "name": "Desk of the Post"}),
            '<span class="author">capital</span>',
            ("Desk of the Post",),
            id="an organisation before what is not clearly a person",
        ),
        pytest.param(
            "",
            '<span class="story-author">Ada Bell</span><span class="author-title">Gardener</span>',
            ("Ada Bell",),
            id="the title of an author",
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
        ("", None),
    ],
)
def test_a_paywall_is_stated_or_unknown(head: str, locked: bool | None) -> None:
    assert read(head).is_paywalled is locked
