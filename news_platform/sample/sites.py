"""The responses of every host of the sample world, by URL."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from html import escape
from itertools import groupby
from typing import TypeAlias

from news_platform.sample.dates import WORLD_NOW
from news_platform.sample.feeds import SampleEntry, render_feed
from news_platform.sample.institutions import institution_site, institutions
from news_platform.sample.markup import FEED_TYPES, keywords, local_time
from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import OUTLETS, Outlet
from news_platform.sample.pages import (
    SECTIONS,
    article_page,
    front_page,
    moved_page,
    script_only_page,
)
from news_platform.sample.responses import SiteResponse, gzip_member
from news_platform.sample.rules import robots, usage_files

_XML = "application/xml; charset=utf-8"
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_NEWS = "http://www.google.com/schemas/sitemap-news/0.9"


def sitemaps(outlet: Outlet, articles: Sequence[SampleArticle]) -> dict[str, SiteResponse]:
    """Return the sitemaps of an outlet by path; robots.txt may not name them all."""
    plain = SiteResponse(_urlset(articles), content_type=_XML, etag=True)
    news = SiteResponse(_news_urlset(articles), content_type=_XML, gzipped=True)
    packed = SiteResponse(gzip_member(_urlset(articles)), content_type="application/gzip")
    match outlet.key:
        case "meridian":
            return {"/sitemap-news.xml": news}
        case "calderpost" | "kupfertal" | "marsa":
            children = ("/sitemap-2025-11.xml.gz", "/sitemap-news.xml")
            index = SiteResponse(_index(outlet, children), content_type=_XML)
            return {"/sitemap_index.xml": index, children[0]: packed, children[1]: news}
        case "northmoor":
            return {"/sitemap.txt": SiteResponse(_text(articles), content_type="text/plain")}
        case "tidewater":
            return {"/sitemap.xml": plain, "/sitemap-news.xml": news}
        case "zarechye":
            return {"/sitemap.xml.gz": packed}
        case "limani" | "fenwick":
            return {}
        case _:
            return {"/sitemap.xml": plain}


def _urlset(articles: Sequence[SampleArticle]) -> bytes:
    urls = "\n".join(
        f"<url><loc>{escape(article.url)}</loc>"
        f"<lastmod>{local_time(article.outlet, article.changed_at).isoformat()}</lastmod></url>"
        for article in articles
    )
    return _xml(f'<urlset xmlns="{_NAMESPACE}">\n{urls}\n</urlset>')


def _news_urlset(articles: Sequence[SampleArticle]) -> bytes:
    urls = "\n".join(_news_url(article) for article in articles)
    return _xml(f'<urlset xmlns="{_NAMESPACE}" xmlns:news="{_NEWS}">\n{urls}\n</urlset>')


def _news_url(article: SampleArticle) -> str:
    outlet = article.outlet
    published = local_time(outlet, article.published_at).isoformat()
    return f"""<url><loc>{escape(article.url)}</loc><news:news>
<news:publication><news:name>{escape(outlet.name)}</news:name><news:language>{outlet.language}</news:language></news:publication>
<news:publication_date>{published}</news:publication_date>
<news:title>{escape(article.story.headline)}</news:title>
<news:keywords>{escape(", ".join(keywords(article)))}</news:keywords></news:news></url>"""


def _index(outlet: Outlet, children: Sequence[str]) -> bytes:
    entries = "\n".join(
        f"<sitemap><loc>{outlet.origin}{child}</loc></sitemap>" for child in children
    )
    return _xml(f'<sitemapindex xmlns="{_NAMESPACE}">\n{entries}\n</sitemapindex>')


def _text(articles: Sequence[SampleArticle]) -> bytes:
    return "".join(f"{article.url}\n" for article in articles).encode()


def _xml(content: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n'.encode()


_DARK, _LIGHT = b"\x1f\x3a\x5f", b"\xe8\xb0\x4a"
_SIDE = 16


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return len(content).to_bytes(4, "big") + kind + content + check.to_bytes(4, "big")


def _rows() -> bytes:
    lines = (
        b"\0" + b"".join(_DARK if (x // 4 + y // 4) % 2 else _LIGHT for x in range(_SIDE))
        for y in range(_SIDE)
    )
    return b"".join(lines)


# Level 0 does not compress, so every zlib gives the same bytes.
LOGO = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", _SIDE.to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00")
    + _chunk(b"IDAT", zlib.compress(_rows(), 0))
    + _chunk(b"IEND", b"")
)


Site: TypeAlias = Mapping[str, SiteResponse]

_TEXT = "text/plain; charset=utf-8"
_GONE = SiteResponse(b"Gone\n", content_type=_TEXT, status=410)
_WITHDRAWN = -7
_FRONT_TEASERS = 12
_RELATED = 4


def build_sites(articles: Sequence[SampleArticle]) -> dict[str, Site]:
    """Return the responses of every host by request target (path and query)."""
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


def page_of(article: SampleArticle, articles: Sequence[SampleArticle]) -> SiteResponse:
    """Return the page of an article; `articles` are those of its outlet."""
    others = [other for other in articles if other.story.topic == article.story.topic]
    at = others.index(article) if article in others else 0
    related = [other for other in others[at + 1 :] + others[:at] if other.kind == "own"]
    return _page(article.outlet, article_page(article, related[:_RELATED]), at=article.changed_at)


def feed_entries(outlet: Outlet, articles: Sequence[SampleArticle]) -> list[SampleEntry]:
    """Return the entries of the outlet's feed, newest first."""
    newest = sorted(articles, key=lambda article: article.published_at, reverse=True)
    return [_entry(article, rank) for rank, article in enumerate(newest[: outlet.feed.entries])]


def _outlet_site(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    site = {article.path: page_of(article, articles) for article in articles}
    site.update(_fronts(outlet, articles))
    site.update(_redirects(outlet, articles))
    site.update(sitemaps(outlet, articles))
    site.update(_feeds(outlet, articles))
    site["/robots.txt"] = robots(outlet.key)
    site.update(usage_files(outlet.key))
    site["/logo.png"] = SiteResponse(LOGO, content_type="image/png", etag=True)
    return site


def _alias_site(outlet: Outlet, alias: str) -> Site:
    """Return the responses of a bare domain: most redirect, two have their own robots.txt."""
    if alias == "co.example":
        return {"/robots.txt": SiteResponse(b"", content_type=_TEXT, status=404)}
    site = {path: _moved(outlet.origin + path) for path in ("/", "/sitemap.xml", outlet.feed.path)}
    own_robots = outlet.key in ("northmoor", "limani")
    moved = _moved(f"{outlet.origin}/robots.txt")
    return {**site, "/robots.txt": robots(outlet.key) if own_robots else moved}


def _fronts(outlet: Outlet, articles: list[SampleArticle]) -> dict[str, SiteResponse]:
    newest = list(reversed(articles))
    fronts = {"/": _page(outlet, front_page(outlet, newest[:_FRONT_TEASERS]))}
    for section in SECTIONS:
        told = [article for article in newest if article.story.topic == section]
        page = front_page(outlet, told[:_FRONT_TEASERS], section=section)
        fronts[f"/{section}"] = _page(outlet, page)
    fronts["/app"] = _page(outlet, script_only_page(outlet))
    return fronts


def _redirects(outlet: Outlet, articles: list[SampleArticle]) -> dict[str, SiteResponse]:
    """Return short links, and the URLs that pages had before the last redesign."""
    if outlet.key == "calderpost":
        return {f"/go/{article.number}": _moved(article.url, 302) for article in articles}
    if outlet.key == "harbourhill":
        moved = {f"/story/{article.number}": _moved(article.path) for article in articles}
        # Withdrawn, but the feed still lists it and the crawl still contains it.
        return moved | {articles[_WITHDRAWN].path: _GONE}
    if outlet.key == "northmoor":
        return {"/live": SiteResponse(b"Busy\n", _TEXT, status=503, retry_after_seconds=120)}
    return {}


def _feeds(outlet: Outlet, articles: list[SampleArticle]) -> dict[str, SiteResponse]:
    habit = outlet.feed
    feeds = {habit.path: _feed(outlet, feed_entries(outlet, articles), kind=habit.kind)}
    if outlet.key == "calderpost":
        stale = [_aged(entry) for entry in feed_entries(outlet, articles)[:5]]
        feeds["/feeds/archive.xml"] = _feed(outlet, stale, kind="rss")
        feeds["/feed"] = _moved(outlet.origin + habit.path)
    if outlet.key == "harbourhill":
        feeds["/old-feed.xml"] = _GONE
    return feeds


def _feed(outlet: Outlet, entries: list[SampleEntry], *, kind: str) -> SiteResponse:
    newest = max(entry.published_at for entry in entries if entry.published_at)
    charset = outlet.feed.charset
    return SiteResponse(
        render_feed(outlet, entries, kind=kind, now=newest),
        content_type=f"{FEED_TYPES[kind]}; charset={charset}",
        modified_at=newest if outlet.feed.last_modified else None,
        etag=outlet.feed.etag,
        gzipped=outlet.key in ("meridian", "zarechye"),
    )


def _entry(article: SampleArticle, rank: int) -> SampleEntry:
    habit = article.outlet.feed
    undated = habit.undated_every and rank % habit.undated_every == habit.undated_every - 1
    return SampleEntry(
        id=f"{article.outlet.host}:{article.number}",
        link=_announced_link(article, rank),
        title=article.story.headline,
        summary=article.story.lead,
        author=article.author,
        tags=tuple(keywords(article)),
        published_at=None if undated else local_time(article.outlet, article.published_at),
    )


def _announced_link(article: SampleArticle, rank: int) -> str:
    """Return the link as in feeds: with tracking parameters, or as a short link."""
    if article.outlet.key == "calderpost" and rank % 3 == 2:
        return f"{article.outlet.origin}/go/{article.number}"
    if article.outlet.key == "harbourhill" and rank % 4 == 3:
        return f"{article.outlet.origin}/story/{article.number}"
    if article.outlet.feed.tracked:
        mark = "&" if "?" in article.path else "?"
        return f"{article.url}{mark}utm_source=rss&utm_medium=feed&utm_campaign=top"
    return article.url


def _aged(entry: SampleEntry) -> SampleEntry:
    published_at = (entry.published_at or WORLD_NOW) - timedelta(days=41)
    return replace(entry, id=f"{entry.id}:old", published_at=published_at)


def _page(outlet: Outlet, body: bytes, *, at: datetime | None = None) -> SiteResponse:
    declared = f"; charset={outlet.charset}" if outlet.charset_in_header else ""
    return SiteResponse(body, content_type=f"text/html{declared}", modified_at=at, gzipped=True)


def _moved(location: str, status: int = 301) -> SiteResponse:
    return SiteResponse(moved_page(location), status=status, location=location)
