"""The world as the platform sees it: its languages, its sites through the fetcher."""

import asyncio
from collections.abc import Mapping

from news_platform.sample.newsroom import SampleArticle
from news_platform.text.language import detect
from news_platform.web.fetch import FetchOptions, Response, WebFetcher

HostMap = Mapping[str, tuple[str, int]]


def test_every_article_is_recognised_as_its_language(articles: tuple[SampleArticle, ...]) -> None:
    for article in articles:
        found = detect(article.story.text)
        assert found.code == article.outlet.language
        assert found.probability >= 0.8


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
