"""The world as the platform sees it: its languages, its rules, its sites through the fetcher."""

import asyncio
from collections.abc import Mapping

import pytest

from news_platform.errors import FetchError
from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import OUTLETS, Outlet
from news_platform.sample.sites import Site
from news_platform.text.language import detect
from news_platform.web.fetch import FetchOptions, Response, WebFetcher
from news_platform.web.robots import Robots
from news_platform.web.urls import canonical_url

HostMap = Mapping[str, tuple[str, int]]
Sites = Mapping[str, Site]


@pytest.mark.parametrize("outlet", OUTLETS, ids=lambda outlet: outlet.key)
def test_every_article_is_recognised_as_its_language(
    articles: tuple[SampleArticle, ...], outlet: Outlet
) -> None:
    for article in articles:
        if article.outlet.key == outlet.key:
            found = detect(article.story.text)
            assert found.code == outlet.language
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
        ("fenwickledger.example", "CCBot", "disallow_all"),
        ("www.aomine.example", "GPTBot", "allow"),
        ("www.kupfertaler.example", "CCBot", "allow"),
        ("elfaro.almazul.example", "GPTBot", "unspecified"),
        ("foni.limani.example", "Bytespider", "disallow_all"),
    ],
)
def test_policies_towards_ai_bots_range_from_open_to_closed(
    sites: Sites, host: str, bot: str, policy: str
) -> None:
    assert rules(sites, host).ai_policies()[bot].policy == policy


def test_trackers_of_the_feeds_vanish_from_canonical_addresses(
    articles: tuple[SampleArticle, ...],
) -> None:
    for article in articles[:20]:
        mark = "&" if "?" in article.url else "?"
        tracked = f"{article.url}{mark}utm_source=rss&utm_medium=feed&utm_campaign=top"
        assert canonical_url(tracked) == canonical_url(article.url)


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


def test_the_fetcher_follows_a_bare_domain_to_its_outlet(sample_hosts: HostMap) -> None:
    response = fetch(sample_hosts, "https://zarechye.example/robots.txt")
    assert response.final_url == "https://vestnik.zarechye.example/robots.txt"
    assert b"Yandex" in response.body


def test_the_server_alone_does_not_open_the_way_to_loopback(sample_hosts: HostMap) -> None:
    address, port = sample_hosts["www.calderpost.example"]
    with pytest.raises(FetchError):
        fetch(sample_hosts, f"http://{address}:{port}/")
