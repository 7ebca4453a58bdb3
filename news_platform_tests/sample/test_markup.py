"""Metadata survives hostile headlines and states times on the outlet's clock."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from lxml import html

from news_platform.sample.markup import article_metadata, head, keywords, local_time
from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import OUTLETS, Outlet

HEADLINE = 'He said "</script><b>no</b>" & left'


def sample_article(articles: tuple[SampleArticle, ...], *, metadata: str) -> SampleArticle:
    article = articles[0]
    outlet: Outlet = replace(article.outlet, metadata=metadata)
    return replace(article, outlet=outlet, story=replace(article.story, headline=HEADLINE))


@pytest.mark.parametrize("metadata", ["jsonld", "graph"])
def test_a_headline_cannot_end_the_script_it_stands_in(
    articles: tuple[SampleArticle, ...], metadata: str
) -> None:
    markup = article_metadata(sample_article(articles, metadata=metadata))
    assert markup.count("</script>") == 1
    body = re.search(r"ld\+json\">(.*)</script>", markup, re.DOTALL)
    assert body is not None
    document = json.loads(body[1])
    assert document.get("@graph", [document])[-1]["headline"] == HEADLINE


def test_opengraph_escapes_what_html_would_read(articles: tuple[SampleArticle, ...]) -> None:
    markup = article_metadata(sample_article(articles, metadata="opengraph"))
    page = html.document_fromstring(f"<html><head>{markup}</head><body></body></html>")
    stated = {meta.get("property"): meta.get("content") for meta in page.iterfind(".//meta")}
    assert stated["og:title"] == HEADLINE
    assert stated["og:url"] == articles[0].url
    assert stated["article:published_time"] == articles[0].published_at.isoformat()


def test_an_outlet_may_state_nothing(articles: tuple[SampleArticle, ...]) -> None:
    assert article_metadata(sample_article(articles, metadata="none")) == ""


def test_keywords_are_the_section_and_the_places(articles: tuple[SampleArticle, ...]) -> None:
    article = next(a for a in articles if a.story.topic == "economy" and a.outlet.language == "de")
    assert keywords(article) == ["Wirtschaft", *article.story.places]


def test_local_time_keeps_the_instant() -> None:
    japan = next(outlet for outlet in OUTLETS if outlet.language == "ja")
    noon = datetime(2025, 11, 1, 12, tzinfo=UTC)
    assert local_time(japan, noon) == noon
    assert local_time(japan, noon).isoformat() == "2025-11-01T21:00:00+09:00"


def test_the_feed_is_offered_in_full_or_relative_to_the_root() -> None:
    for outlet in OUTLETS:
        markup = head(outlet, title="t", url=outlet.origin)
        whole = f'href="{outlet.origin}{outlet.feed.path}"' in markup
        assert whole != (f'href="{outlet.feed.path}"' in markup)
    assert {"plain", "modern", "classic"} == {outlet.layout for outlet in OUTLETS}
