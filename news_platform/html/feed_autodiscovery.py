"""Find the feeds that a web page links to (`<link rel="alternate">`)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlsplit

from resiliparse.parse.html import DOMNode, HTMLTree

from news_platform.html.decode import html_text
from news_platform.html.links import absolute_link, base_url

FEED_TYPES = frozenset(
    ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")
)
# Feeds are also linked with these types, but so is much else: a candidate must be fetched to know.
_GENERIC_TYPES = frozenset(("application/json", "text/xml", "application/xml"))
_FEED_LINK = 'link[rel~="alternate" i][type][href]'
# Where content management systems put the feed if the page does not link to it.
_USUAL_PATHS = ("/feed", "/rss", "/rss.xml", "/feed.xml", "/atom.xml", "/index.xml")
_MAX_TITLE = 1000


@dataclass(frozen=True, slots=True)
class FeedLink:
    """A feed that a page links to; `href` may be relative to the page."""

    href: str
    mime_type: str
    title: str | None


def feed_links(tree: HTMLTree) -> tuple[FeedLink, ...]:
    """Return the feeds linked from the page's head, in the order written."""
    return tuple(_iter_links(tree.head, FEED_TYPES)) if tree.head else ()


def feed_urls(page: bytes, *, url: str, charset: str | None = None) -> tuple[str, ...]:
    """Return the feeds linked from anywhere in a page, as absolute URLs, in order, each once."""
    document = HTMLTree.parse(html_text(page, charset)).document
    base = document.query_selector("base[href]")
    relative_to = base_url(url, base.getattr("href") if base else None)
    links = _iter_links(document, FEED_TYPES | _GENERIC_TYPES)
    found = (absolute_link(relative_to, link.href) for link in links if link.href)
    return tuple(dict.fromkeys(link for link in found if link))


def usual_feed_urls(url: str) -> tuple[str, ...]:
    """Return the addresses where a site usually serves its feed."""
    parts = urlsplit(url)
    return tuple(f"{parts.scheme}://{parts.netloc}{path}" for path in _USUAL_PATHS)


def looks_like_html(body: bytes, content_type: str) -> bool:
    """Return True for a web page, False for a feed even if it is served as text/html."""
    start = body[:1024].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html")) or (
        "html" in content_type and not start.startswith((b"<?xml", b"<rss", b"<feed", b"<rdf"))
    )


def _iter_links(within: DOMNode, types: Collection[str]) -> Iterator[FeedLink]:
    for link in within.query_selector_all(_FEED_LINK):
        mime_type = link.getattr("type").partition(";")[0].strip().lower()
        if mime_type in types:
            title = " ".join((link.getattr("title") or "")[:_MAX_TITLE].split())
            yield FeedLink(link.getattr("href").strip(), mime_type, unescape(title) or None)
