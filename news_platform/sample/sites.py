"""The responses of every host of the sample world, by URL."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import TypeAlias

from news_platform.sample.feeds import feeds, sitemaps
from news_platform.sample.institutions import institution_site, institutions
from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import OUTLET_OF, Outlet
from news_platform.sample.package_data import DATA, read_tree
from news_platform.sample.pages import (
    SECTIONS,
    article_page,
    front_page,
    moved_page,
    script_only_page,
)
from news_platform.sample.responses import TEXT, SiteResponse

Site: TypeAlias = Mapping[str, SiteResponse]

_FRONT_TEASERS = 12
_RELATED = 4


def build_sites(articles: Sequence[SampleArticle]) -> dict[str, Site]:
    """Return the responses of every host by request target (path and query)."""
    sites: dict[str, Site] = {}
    for key, group in groupby(articles, key=lambda article: article.outlet.key):
        outlet = OUTLET_OF[key]
        site = sites[outlet.host] = _outlet_site(outlet, list(group))
        for alias in outlet.aliases:
            sites[alias] = _alias_site(outlet, alias, site["/robots.txt"])
    for institution in institutions():
        sites[institution.host] = institution_site(institution)
        moved = _moved(f"{institution.origin}/robots.txt")
        sites.setdefault(institution.domain, {"/robots.txt": moved})
    return sites


def page_of(article: SampleArticle, articles: Sequence[SampleArticle]) -> SiteResponse:
    """Return the page of an article; `articles` are those of its outlet."""
    others = [other for other in articles if other.story.topic == article.story.topic]
    at = others.index(article) if article in others else 0
    related = [other for other in others[at + 1 :] + others[:at] if other.kind == "own"]
    return _page(article.outlet, article_page(article, related[:_RELATED]), at=article.changed_at)


def _outlet_site(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    logo = DATA.joinpath("logo.png").read_bytes()
    return {
        **{article.path: page_of(article, articles) for article in articles},
        **_fronts(outlet, articles),
        **_short_links(outlet, articles),
        **_withdrawn(outlet, articles),
        **sitemaps(outlet, articles),
        **feeds(outlet, articles),
        **_stored_files(outlet),
        **{path: _with_body(response) for path, response in outlet.responses.items()},
        "/logo.png": SiteResponse(logo, content_type="image/png", etag=True),
    }


def _alias_site(outlet: Outlet, alias: str, robots: SiteResponse) -> Site:
    """Return the responses of a bare domain: most redirect, two have their own robots.txt."""
    if alias == "co.example":  # a public suffix, which answers nothing
        return {"/robots.txt": SiteResponse(content_type=TEXT, status=404)}
    paths = ("/", "/sitemap.xml", outlet.feed.path, "/robots.txt")
    site = {path: _moved(outlet.origin + path) for path in paths}
    return site | ({"/robots.txt": robots} if outlet.robots_on_aliases else {})


def _fronts(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    newest = list(reversed(articles))
    fronts = {"/": _page(outlet, front_page(outlet, newest[:_FRONT_TEASERS]))}
    for section in SECTIONS:
        told = [article for article in newest if article.story.topic == section]
        page = front_page(outlet, told[:_FRONT_TEASERS], section=section)
        fronts[f"/{section}"] = _page(outlet, page)
    fronts["/app"] = _page(outlet, script_only_page(outlet))
    return fronts


def _short_links(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    """Return the redirects of short links, or of the URLs before the last redesign."""
    links = outlet.short_links
    if links is None:
        return {}
    return {
        f"{links.path}{article.number}": _moved(
            article.path if links.is_relative else article.url, links.status
        )
        for article in articles
    }


def _withdrawn(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    if outlet.withdrawn is None:
        return {}
    gone = SiteResponse(b"Gone\n", content_type=TEXT, status=410)
    return {articles[-outlet.withdrawn].path: gone}


def _stored_files(outlet: Outlet) -> Site:
    """Return robots.txt and the other files in which the outlet states how it may be used."""
    types = {"txt": TEXT, "json": "application/json"}
    return {
        f"/{path}": SiteResponse(body, content_type=types[path.rpartition(".")[2]], etag=True)
        for path, body in read_tree(DATA.joinpath("sites", outlet.host)).items()
    }


def _with_body(response: SiteResponse) -> SiteResponse:
    if response.location and not response.body:
        return replace(response, body=moved_page(response.location))
    return response


def _page(outlet: Outlet, body: bytes, *, at: datetime | None = None) -> SiteResponse:
    declared = f"; charset={outlet.charset}" if outlet.charset_in_header else ""
    return SiteResponse(body, content_type=f"text/html{declared}", modified_at=at, gzipped=True)


def _moved(location: str, status: int = 301) -> SiteResponse:
    return SiteResponse(moved_page(location), status=status, location=location)
