"""Render articles and front pages as HTML, in three layouts with the clutter of real pages."""

import json
from collections.abc import Sequence
from html import escape

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import FEED_TYPES, Outlet
from news_platform.sample.package_data import render
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
