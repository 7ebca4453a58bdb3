"""Pages are what real ones are: in their charset, with metadata, feed links and clutter."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

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


def test_a_page_decodes_by_its_charset_and_holds_the_whole_text(
    articles: Articles, sites: Sites
) -> None:
    for outlet in OUTLETS:
        article = first_of(articles, outlet)
        page = html.document_fromstring(page_text(sites, article))
        shown = "".join(map(str, page.itertext()))
        assert all(paragraph in shown for paragraph in article.story.paragraphs)
        assert page.get("lang") == outlet.language


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
