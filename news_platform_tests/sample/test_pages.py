"""Pages are what real ones are: in their charset, with metadata, feed links and clutter."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urljoin

import pytest
from lxml import html

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import OUTLETS, Outlet
from news_platform.sample.pages import article_page
from news_platform.sample.sites import Site

Articles = tuple[SampleArticle, ...]
Sites = Mapping[str, Site]


def first_of(articles: Articles, outlet: Outlet) -> SampleArticle:
    return next(
        article
        for article in articles
        if article.outlet.key == outlet.key and article.kind == "own" and not article.updated_at
    )


def page_text(sites: Sites, article: SampleArticle) -> str:
    return sites[article.outlet.host][article.path].body.decode(article.outlet.charset)


@pytest.mark.parametrize("outlet", OUTLETS, ids=lambda outlet: outlet.key)
def test_a_page_decodes_by_its_charset_and_holds_the_whole_text(
    articles: Articles, sites: Sites, outlet: Outlet
) -> None:
    article = first_of(articles, outlet)
    page = html.document_fromstring(page_text(sites, article))
    shown = "".join(map(str, page.itertext()))
    assert all(paragraph in shown for paragraph in article.story.paragraphs)
    assert page.get("lang") == outlet.language


@pytest.mark.parametrize("outlet", OUTLETS, ids=lambda outlet: outlet.key)
def test_a_page_declares_its_charset_in_the_header_or_in_a_meta_tag(
    articles: Articles, sites: Sites, outlet: Outlet
) -> None:
    article = first_of(articles, outlet)
    declared = f"charset={outlet.charset}"
    page = sites[outlet.host][article.path]
    assert (declared in page.content_type) == outlet.charset_in_header
    assert f'<meta charset="{outlet.charset}">' in page_text(sites, article)


@pytest.mark.parametrize("outlet", OUTLETS, ids=lambda outlet: outlet.key)
def test_a_page_offers_the_feed_of_its_outlet(
    articles: Articles, sites: Sites, outlet: Outlet
) -> None:
    page = html.document_fromstring(page_text(sites, first_of(articles, outlet)))
    (feed,) = page.iterfind(".//link[@rel='alternate']")
    assert urljoin(f"{outlet.origin}/a/b", feed.get("href")) == outlet.origin + outlet.feed.path
    assert outlet.feed.path in sites[outlet.host]


@pytest.mark.parametrize("outlet", OUTLETS, ids=lambda outlet: outlet.key)
def test_a_page_states_what_its_outlet_states(
    articles: Articles, sites: Sites, outlet: Outlet
) -> None:
    article = first_of(articles, outlet)
    page = page_text(sites, article)
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
    assert (found is not None) == (outlet.metadata in ("jsonld", "graph"))
    assert ("og:title" in page) == (outlet.metadata != "none")
    if found:
        document = json.loads(found[1])
        news = document.get("@graph", [document])[-1]
        assert news["headline"] == article.story.headline
        assert news["author"][0]["name"] == article.author
        assert news["datePublished"].startswith("2025-1")


def test_an_updated_page_shows_both_times(articles: Articles, sites: Sites) -> None:
    article = next(a for a in articles if a.updated_at and a.outlet.key == "meridian")
    page = page_text(sites, article)
    assert page.count("<time ") == 2
    assert "Updated 2025-11-0" in page


@pytest.mark.parametrize("metadata", ["jsonld", "graph"])
def test_a_headline_cannot_end_the_script_it_stands_in(articles: Articles, metadata: str) -> None:
    headline = 'He said "</script><b>no</b>" & left'
    outlet = replace(articles[0].outlet, metadata=metadata, layout="classic")
    story = replace(articles[0].story, headline=headline)
    page = article_page(replace(articles[0], outlet=outlet, story=story), []).decode()
    script = re.search(r"ld\+json\">(.*?)</script>", page, re.DOTALL)
    assert script is not None
    document = json.loads(script[1])
    assert document.get("@graph", [document])[-1]["headline"] == headline
    assert html.document_fromstring(page).findtext(".//h1") == headline


def test_arabic_pages_run_from_right_to_left(articles: Articles, sites: Sites) -> None:
    marsa = next(outlet for outlet in OUTLETS if outlet.language == "ar")
    assert '<html lang="ar" dir="rtl">' in page_text(sites, first_of(articles, marsa))


def test_a_mention_links_to_the_older_article(articles: Articles, sites: Sites) -> None:
    article = next(article for article in articles if article.mentions and article.kind == "own")
    page = html.document_fromstring(page_text(sites, article))
    assert article.mentions in {link.get("href") for link in page.iterfind(".//p/a")}


def test_related_links_lead_to_pages_that_exist(articles: Articles, sites: Sites) -> None:
    for outlet in OUTLETS:
        page = html.document_fromstring(page_text(sites, first_of(articles, outlet)))
        lists = (".//aside//a", ".//div[@id='more']//a", ".//div[@class='layout__side sidebar']//a")
        links = [link.get("href") for path in lists for link in page.iterfind(path)]
        assert len(links) >= 1
        assert all(link in sites[outlet.host] for link in links)
