"""Pure: every host of the sample world with what it answers at each address."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TypeAlias

from news_platform.sample.dates import WORLD_NOW
from news_platform.sample.feeds import Entry, render_feed
from news_platform.sample.institutions import institutions
from news_platform.sample.logo import LOGO
from news_platform.sample.markup import FEED_TYPES, keywords, local_time
from news_platform.sample.newsroom import Article
from news_platform.sample.outlets import OUTLETS, Outlet
from news_platform.sample.pages import (
    SECTIONS,
    article_page,
    front_page,
    moved_page,
    script_only_page,
)
from news_platform.sample.resource import Resource
from news_platform.sample.rules import robots
from news_platform.sample.sitemaps import sitemaps
from news_platform.sample.snapshots import institution_site

Site: TypeAlias = Mapping[str, Resource]

_TEXT = "text/plain; charset=utf-8"
_GONE = Resource(b"Gone\n", content_type=_TEXT, status=410)
_WITHDRAWN = -7
_FRONT_TEASERS = 12
_RELATED = 4


def build_sites(articles: Sequence[Article]) -> dict[str, Site]:
    """Return every host's answers by request target (path and query)."""
    sites: dict[str, Site] = {}
    for key, group in groupby(articles, key=lambda article: article.outlet.key):
        outlet = next(outlet for outlet in OUTLETS if outlet.key == key)
        sites[outlet.host] = _outlet_site(outlet, list(group))
        for alias in outlet.aliases:
            sites[alias] = _alias_site(outlet, alias)
    for institution in institutions():
        sites[institution.host] = institution_site(institution)
        moved = _moved(f"{institution.origin}/robots.txt")
        sites.setdefault(institution.domain, {"/robots.txt": moved})
    return sites


def page_of(article: Article, articles: Sequence[Article]) -> Resource:
    """Return the page of an article; `articles` are those of its outlet."""
    others = [other for other in articles if other.story.topic == article.story.topic]
    at = others.index(article) if article in others else 0
    related = [other for other in others[at + 1 :] + others[:at] if other.kind == "own"]
    return _page(article.outlet, article_page(article, related[:_RELATED]), at=article.changed_at)


def feed_entries(outlet: Outlet, articles: Sequence[Article]) -> list[Entry]:
    """Return what the outlet's feed announces, newest first."""
    newest = sorted(articles, key=lambda article: article.published_at, reverse=True)
    return [_entry(article, rank) for rank, article in enumerate(newest[: outlet.feed.entries])]


def _outlet_site(outlet: Outlet, articles: list[Article]) -> Site:
    site = {article.path: page_of(article, articles) for article in articles}
    site.update(_fronts(outlet, articles))
    site.update(_redirects(outlet, articles))
    site.update(sitemaps(outlet, articles))
    site.update(_feeds(outlet, articles))
    site["/robots.txt"] = robots(outlet.key)
    site["/logo.png"] = Resource(LOGO, content_type="image/png", etag=True)
    return site


def _alias_site(outlet: Outlet, alias: str) -> Site:
    """Answer for a bare domain: most send readers on, two keep a robots.txt of their own."""
    if alias == "co.example":
        return {"/robots.txt": Resource(b"", content_type=_TEXT, status=404)}
    site = {path: _moved(outlet.origin + path) for path in ("/", "/sitemap.xml", outlet.feed.path)}
    own_robots = outlet.key in ("northmoor", "limani")
    moved = _moved(f"{outlet.origin}/robots.txt")
    return {**site, "/robots.txt": robots(outlet.key) if own_robots else moved}


def _fronts(outlet: Outlet, articles: list[Article]) -> dict[str, Resource]:
    newest = list(reversed(articles))
    fronts = {"/": _page(outlet, front_page(outlet, newest[:_FRONT_TEASERS]))}
    for section in SECTIONS:
        told = [article for article in newest if article.story.topic == section]
        page = front_page(outlet, told[:_FRONT_TEASERS], section=section)
        fronts[f"/{section}"] = _page(outlet, page)
    fronts["/app"] = _page(outlet, script_only_page(outlet))
    return fronts


def _redirects(outlet: Outlet, articles: list[Article]) -> dict[str, Resource]:
    """Return short links and the addresses that pages had before the last relaunch."""
    if outlet.key == "calderpost":
        return {f"/go/{article.number}": _moved(article.url, 302) for article in articles}
    if outlet.key == "harbourhill":
        moved = {f"/story/{article.number}": _moved(article.path) for article in articles}
        # Withdrawn since: the feed still announces it, the crawl still has it.
        return moved | {articles[_WITHDRAWN].path: _GONE}
    if outlet.key == "northmoor":
        return {"/live": Resource(b"Busy\n", _TEXT, status=503, retry_after_seconds=120)}
    return {}


def _feeds(outlet: Outlet, articles: list[Article]) -> dict[str, Resource]:
    habit = outlet.feed
    feeds = {habit.path: _feed(outlet, feed_entries(outlet, articles), kind=habit.kind)}
    if outlet.key == "calderpost":
        stale = [_aged(entry) for entry in feed_entries(outlet, articles)[:5]]
        feeds["/feeds/archive.xml"] = _feed(outlet, stale, kind="rss")
        feeds["/feed"] = _moved(outlet.origin + habit.path)
    if outlet.key == "harbourhill":
        feeds["/old-feed.xml"] = _GONE
    return feeds


def _feed(outlet: Outlet, entries: list[Entry], *, kind: str) -> Resource:
    newest = max(entry.published_at for entry in entries if entry.published_at)
    charset = outlet.feed.charset
    return Resource(
        render_feed(outlet, entries, kind=kind, now=newest),
        content_type=f"{FEED_TYPES[kind]}; charset={charset}",
        modified_at=newest if outlet.feed.last_modified else None,
        etag=outlet.feed.etag,
        gzipped=outlet.key in ("meridian", "zarechye"),
    )


def _entry(article: Article, rank: int) -> Entry:
    habit = article.outlet.feed
    undated = habit.undated_every and rank % habit.undated_every == habit.undated_every - 1
    return Entry(
        id=f"{article.outlet.host}:{article.number}",
        link=_announced_link(article, rank),
        title=article.story.headline,
        summary=article.story.lead,
        author=article.author,
        tags=tuple(keywords(article)),
        published_at=None if undated else local_time(article.outlet, article.published_at),
    )


def _announced_link(article: Article, rank: int) -> str:
    """Return the link as feeds write it: with trackers, or through a short link."""
    if article.outlet.key == "calderpost" and rank % 3 == 2:
        return f"{article.outlet.origin}/go/{article.number}"
    if article.outlet.key == "harbourhill" and rank % 4 == 3:
        return f"{article.outlet.origin}/story/{article.number}"
    if article.outlet.feed.tracked:
        mark = "&" if "?" in article.path else "?"
        return f"{article.url}{mark}utm_source=rss&utm_medium=feed&utm_campaign=top"
    return article.url


def _aged(entry: Entry) -> Entry:
    published_at = (entry.published_at or WORLD_NOW) - timedelta(days=41)
    return replace(entry, id=f"{entry.id}:old", published_at=published_at)


def _page(outlet: Outlet, body: bytes, *, at: datetime | None = None) -> Resource:
    declared = f"; charset={outlet.charset}" if outlet.charset_in_header else ""
    return Resource(body, content_type=f"text/html{declared}", modified_at=at, gzipped=True)


def _moved(location: str, status: int = 301) -> Resource:
    return Resource(moved_page(location), status=status, location=location)
