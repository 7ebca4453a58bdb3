"""Resolve the links of a page, and find the feeds it links to (`<link rel="alternate">`)."""

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from html import unescape
from urllib.parse import urljoin, urlsplit

from resiliparse.parse.html import DOMNode, HTMLTree

from news_platform.html.decode import decode_html


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
# One of FEED_TYPES in the source of a page; `re` skips quickly to its first character.
_FEED_TYPE = re.compile(rb"\+(?<=/rss\+|/rdf\+|atom\+|feed\+)(?:xml|json)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"\s*https?://", re.IGNORECASE)
# Where content management systems put the feed if the page does not link to it.
_USUAL_PATHS = ("/feed", "/rss", "/rss.xml", "/feed.xml", "/atom.xml", "/index.xml")
_MAX_TITLE = 1000


@dataclass(frozen=True, slots=True)
class FeedLink:
    """A feed that a page links to."""

    url: str
    mime_type: str
    title: str | None


def feed_links(
    tree: HTMLTree, html: bytes, *, url: str, types: Collection[str] = FEED_TYPES
) -> tuple[FeedLink, ...]:
    """Return the feeds that a page links to from anywhere, each once, in the order written."""
    # Searching the whole tree takes long: many pages name no feed, and most others in the head.
    named = len(_FEED_TYPE.findall(html)) if types is FEED_TYPES else sys.maxsize
    links = _typed_links(tree.head, types) if named and tree.head else []
    if len(links) < named:
        links = _typed_links(tree.document, types)
    is_absolute = all(_ABSOLUTE.match(link.getattr("href")) for link, _ in links)
    base = url if is_absolute else _base_of(tree, url)
    found: dict[str, FeedLink] = {}
    for link, mime_type in links:
        if address := absolute_link(base, link.getattr("href")):
            title = " ".join((link.getattr("title") or "")[:_MAX_TITLE].split())
            found.setdefault(address, FeedLink(address, mime_type, unescape(title) or None))
    return tuple(found.values())


def _typed_links(node: DOMNode, types: Collection[str]) -> list[tuple[DOMNode, str]]:
    """Return the links below a node that have one of these types, each with its type."""
    links = (
        (link, link.getattr("type").partition(";")[0].strip().lower())
        for link in node.query_selector_all(_FEED_LINK)
        if link.getattr("href").strip()
    )
    return [(link, mime_type) for link, mime_type in links if mime_type in types]


def _base_of(tree: HTMLTree, url: str) -> str:
    base = tree.document.query_selector("base[href]")
    return base_url(url, base.getattr("href") if base else None)


def feed_urls(page: bytes, *, url: str, charset: str | None = None) -> tuple[str, ...]:
    """Return the addresses that may be feeds and that a page links to, in order, each once."""
    decoded = decode_html(page, charset)
    tree = HTMLTree.parse(decoded.text)
    found = feed_links(tree, decoded.utf8, url=url, types=FEED_TYPES | _GENERIC_TYPES)
    return tuple(link.url for link in found)


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
