"""Render the head of an article page: links, OpenGraph and JSON-LD."""

import json
from datetime import datetime, timedelta, timezone
from html import escape

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import Outlet
from news_platform.sample.story import phrasebook

FEED_TYPES = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "rdf": "application/rdf+xml",
    "json": "application/feed+json",
}


def local_time(outlet: Outlet, instant: datetime) -> datetime:
    """Return the instant in the outlet's time zone."""
    return instant.astimezone(timezone(timedelta(hours=outlet.utc_offset_hours)))


def head(outlet: Outlet, *, title: str, url: str, extra: str = "") -> str:
    """Return the head of every page of an outlet, with the link to its feed."""
    kind = FEED_TYPES[outlet.feed.kind]
    # Half of the outlets link to the feed by an absolute URL, the others by a relative one.
    feed = outlet.feed.path if outlet.layout == "plain" else outlet.origin + outlet.feed.path
    return f"""<head>
<meta charset="{outlet.charset}">
<title>{escape(title)} | {escape(outlet.name)}</title>
<link rel="canonical" href="{escape(url)}">
<link rel="alternate" type="{kind}" title="{escape(outlet.name)}" href="{escape(feed)}">
<link rel="icon" href="/logo.png">
{extra}</head>"""


def article_metadata(article: SampleArticle) -> str:
    """Return the metadata that an outlet states about an article; some state none."""
    match article.outlet.metadata:
        case "none":
            return ""
        case "opengraph":
            return _opengraph(article)
        case "graph":
            return _opengraph(article) + _script(_graph(article))
        case _:
            return _opengraph(article) + _script(_news_article(article))


def keywords(article: SampleArticle) -> list[str]:
    """Return the tags of an article: its section and its places."""
    section = phrasebook(article.outlet.language).labels[article.story.topic]
    return [section, *article.story.places]


def _opengraph(article: SampleArticle) -> str:
    stated = {
        "og:type": "article",
        "og:site_name": article.outlet.name,
        "og:title": article.story.headline,
        "og:description": article.story.lead,
        "og:url": article.url,
        "og:image": f"{article.outlet.origin}/logo.png",
        "article:published_time": _stamp(article, article.published_at),
        "article:modified_time": _stamp(article, article.changed_at),
        "article:author": article.author,
        "article:section": keywords(article)[0],
    }
    return "".join(
        f'<meta property="{name}" content="{escape(value)}">\n' for name, value in stated.items()
    )


def _news_article(article: SampleArticle) -> dict[str, object]:
    return {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": article.story.headline,
        "description": article.story.lead,
        "datePublished": _stamp(article, article.published_at),
        "dateModified": _stamp(article, article.changed_at),
        "author": [{"@type": "Person", "name": article.author}],
        "publisher": {"@type": "Organization", "name": article.outlet.name},
        "articleSection": keywords(article)[0],
        "keywords": keywords(article),
        "inLanguage": article.outlet.language,
        "mainEntityOfPage": article.url,
    }


def _graph(article: SampleArticle) -> dict[str, object]:
    page = {"@type": "WebPage", "@id": article.url, "name": article.story.headline}
    site = {"@type": "NewsMediaOrganization", "@id": article.outlet.origin, "url": "/"}
    news = {key: value for key, value in _news_article(article).items() if key != "@context"}
    return {"@context": "https://schema.org", "@graph": [site, page, news]}


def _script(document: dict[str, object]) -> str:
    body = json.dumps(document, ensure_ascii=False, indent=1).replace("</", "<\\/")
    return f'<script type="application/ld+json">\n{body}\n</script>\n'


def _stamp(article: SampleArticle, instant: datetime) -> str:
    return local_time(article.outlet, instant).isoformat()
