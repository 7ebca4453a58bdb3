"""The world as the platform sees it: its languages, its rules, its sites through the fetcher."""

import asyncio
from collections.abc import Mapping

import pytest

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.sites import Site
from news_platform.text.language import detect
from news_platform.web.fetch import FetchOptions, Response, WebFetcher
from news_platform.web.robots import Robots

HostMap = Mapping[str, tuple[str, int]]
Sites = Mapping[str, Site]


def test_every_article_is_recognised_as_its_language(articles: tuple[SampleArticle, ...]) -> None:
    for article in articles:
        found = detect(article.story.text)
        assert found.code == article.outlet.language
        assert found.probability >= 0.8


def rules(sites: Sites, host: str) -> Robots:
    return Robots.parse(sites[host]["/robots.txt"].body)


def test_premium_articles_are_disallowed_and_all_others_allowed(
    articles: tuple[SampleArticle, ...], sites: Sites
) -> None:
    for article in articles:
        allowed = rules(sites, article.outlet.host).allows("NewsPlatformBot", article.url)
        assert allowed == (article.kind != "premium")


@pytest.mark.parametrize(
    ("host", "bot", "policy"),
    [
        ("wire.meridian.example", "GPTBot", "disallow_all"),
        ("www.calderpost.example", "GPTBot", "partial"),
        ("www.kupfertaler.example", "CCBot", "allow"),
        ("elfaro.almazul.example", "GPTBot", "unspecified"),
    ],
)
def test_policies_towards_ai_bots_range_from_open_to_closed(
    sites: Sites, host: str, bot: str, policy: str
) -> None:
    assert rules(sites, host).ai_policies()[bot].policy == policy


def fetch(host_map: HostMap, url: str) -> Response:
    async def ask() -> Response:
        async with WebFetcher(FetchOptions(host_map=host_map)) as fetcher:
            return await fetcher.fetch(url)

    return asyncio.run(ask())


def test_the_fetcher_reaches_a_site_by_https_through_the_host_map(sample_hosts: HostMap) -> None:
    response = fetch(sample_hosts, "https://www.calderpost.example/feed")
    assert (response.status, response.final_url) == (
        200,
        "https://www.calderpost.example/feeds/news.xml",
    )
    assert response.body.startswith(b"<?xml")
