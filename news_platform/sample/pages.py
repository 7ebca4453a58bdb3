"""Render the articles, front pages, feeds and sitemaps of an outlet."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from html import escape

from news_platform.sample.newsroom import WORLD_NOW, SampleArticle
from news_platform.sample.outlets import FEED_TYPES, Outlet, SiteResponse, gzip_member, render
from news_platform.sample.story import phrasebook

SECTIONS = ("politics", "economy", "sports", "science", "technology", "culture", "local")


def article_page(article: SampleArticle, related: Sequence[SampleArticle]) -> bytes:
    """Return the page of an article in the encoding of its outlet."""
    return _page(
        article.outlet,
        f"{article.outlet.layout}.html",
        title=article.story.headline,
        url=article.url,
        article=article,
        related=related,
        json_ld=_json_ld(article),
    )


def front_page(outlet: Outlet, articles: Sequence[SampleArticle], *, section: str = "") -> bytes:
    """Return the front page of the outlet or of a section, newest articles first."""
    title = phrasebook(outlet.language).labels[section or "home"]
    url = f"{outlet.origin}/{section}"
    return _page(outlet, "front.html", title=title, url=url, articles=articles)


def missing_page(outlet: Outlet) -> bytes:
    """Return the page for a URL that does not exist."""
    title = phrasebook(outlet.language).labels["not_found"]
    return _page(outlet, "missing.html", title=title, url=f"{outlet.origin}/")


def script_only_page(outlet: Outlet) -> bytes:
    """Return a page that is empty without JavaScript."""
    return _page(outlet, "script_only.html", title=outlet.name, url=f"{outlet.origin}/app")


def moved_page(location: str) -> bytes:
    """Return the body of a redirect."""
    link = escape(location)
    return f'<html><body>Moved: <a href="{link}">{link}</a></body></html>\n'.encode()


def _page(outlet: Outlet, template: str, **values: object) -> bytes:
    page = render(
        template,
        outlet=outlet,
        labels=phrasebook(outlet.language).labels,
        sections=SECTIONS,
        feed_type=FEED_TYPES[outlet.feed.kind],
        **values,
    )
    return page.encode(outlet.charset, "xmlcharrefreplace")


def _json_ld(article: SampleArticle) -> str | None:
    """Return the JSON-LD that the outlet states about an article: alone, in a graph, or none."""
    if article.outlet.metadata not in ("jsonld", "graph"):
        return None
    document = _news_article(article)
    if article.outlet.metadata == "graph":
        page = {"@type": "WebPage", "@id": article.url, "name": article.story.headline}
        site = {"@type": "NewsMediaOrganization", "@id": article.outlet.origin, "url": "/"}
        document = {"@graph": [site, page, document]}
    stated = {"@context": "https://schema.org", **document}
    return json.dumps(stated, ensure_ascii=False, indent=1).replace("</", "<\\/")


def _news_article(article: SampleArticle) -> dict[str, object]:
    outlet = article.outlet
    return {
        "@type": "NewsArticle",
        "headline": article.story.headline,
        "description": article.story.lead,
        "datePublished": outlet.local(article.published_at).isoformat(),
        "dateModified": outlet.local(article.changed_at).isoformat(),
        "author": [{"@type": "Person", "name": article.author}],
        "publisher": {"@type": "Organization", "name": outlet.name},
        "articleSection": article.keywords[0],
        "keywords": article.keywords,
        "inLanguage": outlet.language,
        "mainEntityOfPage": article.url,
    }


_XML = "application/xml; charset=utf-8"
_ARCHIVED = 5


@dataclass(frozen=True, slots=True)
class SampleEntry:
    """One entry of a feed; `published_at` None leaves the date out."""

    id: str
    link: str
    title: str
    summary: str
    author: str
    tags: tuple[str, ...]
    published_at: datetime | None


def feeds(outlet: Outlet, articles: Sequence[SampleArticle]) -> dict[str, SiteResponse]:
    """Return the feed of an outlet, and the stale one that some have, by path."""
    newest = sorted(articles, key=lambda article: article.published_at, reverse=True)
    entries = [_entry(article, rank) for rank, article in enumerate(newest[: outlet.feed.entries])]
    offered = {outlet.feed.path: _feed(outlet, entries)}
    if outlet.feed.archive:
        offered[outlet.feed.archive] = _feed(
            outlet, [_aged(entry) for entry in entries[:_ARCHIVED]]
        )
    return offered


def render_feed(outlet: Outlet, entries: Sequence[SampleEntry], *, now: datetime) -> bytes:
    """Return the feed document in the encoding of the outlet's feed."""
    kind, charset = outlet.feed.kind, outlet.feed.charset
    if kind == "json":
        return _json_feed(outlet, entries)
    text = render(f"{kind}.xml", outlet=outlet, entries=entries, now=now)
    declared = f'<?xml version="1.0" encoding="{charset}"?>\n{text}'
    return declared.encode(charset, "xmlcharrefreplace")


def _feed(outlet: Outlet, entries: Sequence[SampleEntry]) -> SiteResponse:
    habit = outlet.feed
    newest = max(entry.published_at for entry in entries if entry.published_at)
    return SiteResponse(
        render_feed(outlet, entries, now=newest),
        content_type=f"{FEED_TYPES[habit.kind]}; charset={habit.charset}",
        modified_at=newest if habit.last_modified else None,
        etag=habit.etag,
        gzipped=habit.gzipped,
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
        tags=article.keywords,
        published_at=None if undated else article.outlet.local(article.published_at),
    )


def _announced_link(article: SampleArticle, rank: int) -> str:
    """Return the link as in feeds: a short link, or with tracking parameters."""
    outlet = article.outlet
    if outlet.short_links and rank % outlet.short_links.every == outlet.short_links.every - 1:
        return f"{outlet.origin}{outlet.short_links.path}{article.number}"
    if outlet.feed.tracked:
        mark = "&" if "?" in article.path else "?"
        return f"{article.url}{mark}utm_source=rss&utm_medium=feed&utm_campaign=top"
    return article.url


def _aged(entry: SampleEntry) -> SampleEntry:
    published_at = (entry.published_at or WORLD_NOW) - timedelta(days=41)
    return replace(entry, id=f"{entry.id}:old", published_at=published_at)


def _json_feed(outlet: Outlet, entries: Sequence[SampleEntry]) -> bytes:
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": outlet.name,
        "home_page_url": f"{outlet.origin}/",
        "feed_url": outlet.origin + outlet.feed.path,
        "language": outlet.language,
        "items": [_json_item(entry) for entry in entries],
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def _json_item(entry: SampleEntry) -> dict[str, object]:
    item: dict[str, object] = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "summary": entry.summary,
        "content_html": f"<p>{escape(entry.summary)}</p>",
        "authors": [{"name": entry.author}],
        "tags": list(entry.tags),
    }
    if entry.published_at:
        item["date_published"] = entry.published_at.isoformat()
    return item


def sitemaps(outlet: Outlet, articles: Sequence[SampleArticle]) -> dict[str, SiteResponse]:
    """Return the sitemaps of an outlet by path; robots.txt may not name them all."""
    return {path: _sitemap(path, outlet, articles) for path in outlet.sitemaps}


def _sitemap(path: str, outlet: Outlet, articles: Sequence[SampleArticle]) -> SiteResponse:
    if path.endswith(".txt"):
        lines = "".join(f"{article.url}\n" for article in articles)
        return SiteResponse(lines.encode(), content_type="text/plain")
    if path.endswith("_index.xml"):
        index = render("sitemap_index.xml", outlet=outlet, children=outlet.sitemaps[1:])
        return SiteResponse(index.encode(), content_type=_XML)
    if path.endswith("-news.xml"):
        news = render("sitemap_news.xml", outlet=outlet, articles=articles)
        return SiteResponse(news.encode(), content_type=_XML, gzipped=True)
    body = render("sitemap.xml", outlet=outlet, articles=articles).encode()
    if path.endswith(".gz"):
        return SiteResponse(gzip_member(body), content_type="application/gzip")
    return SiteResponse(body, content_type=_XML, etag=True)
