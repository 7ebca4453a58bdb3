"""Resolve the links of a page, and find the feeds it links to (`<link rel="alternate">`)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html import unescape
from urllib.parse import urljoin, urlsplit

from resiliparse.parse.html import DOMNode, HTMLTree

from news_platform.html.decode import html_text


def join_link(base: str, link: str) -> str:
    """Return a link relative to `base` as an absolute address, '' if it cannot be parsed."""
    try:
        return urljoin(base, link)
    except ValueError:  # such as a broken IPv6 host
        return ""


def absolute_link(base: str, link: str) -> str | None:
    """Return the http or https address that a link on a page leads to; None for any other link."""
    joined = join_link(base, link.strip())
    try:
        parts = urlsplit(joined)
    except ValueError:
        return None
    return joined if parts.scheme in ("http", "https") and parts.hostname else None


def base_url(page_url: str, base_href: str | None) -> str:
    """Return what relative links of a page are relative to: its `<base href>`, else its URL."""
    return join_link(page_url, base_href.strip()) or page_url if base_href else page_url


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
