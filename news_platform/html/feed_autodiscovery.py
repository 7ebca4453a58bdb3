"""The HTML of a site in, the addresses of its feeds out."""

from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from news_platform.html.document import parse_document

_FEED_TYPES = frozenset(
    (
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
        "application/json",
        "text/xml",
        "application/xml",
    )
)
# Where content systems put the feed when the page does not say.
_USUAL_PATHS = ("/feed", "/rss", "/rss.xml", "/feed.xml", "/atom.xml", "/index.xml")


def feed_links(page: bytes, *, url: str, charset: str | None = None) -> tuple[str, ...]:
    """Return the feeds that a page names by <link rel=alternate>, absolute, in order, each once."""
    root = parse_document(page, charset)
    if root is None:
        return ()
    base = next((b.get("href") for b in root.iter("base") if b.get("href")), "")
    found: dict[str, None] = {}
    for link in root.iter("link"):
        kind = (link.get("type") or "").partition(";")[0].strip().lower()
        if "alternate" in (link.get("rel") or "").lower().split() and kind in _FEED_TYPES:
            found.update(dict.fromkeys(_absolute(link.get("href"), url=urljoin(url, base))))
    return tuple(found)


def usual_feed_urls(url: str) -> tuple[str, ...]:
    """Return the addresses where a site's feed usually lies."""
    parts = urlsplit(url)
    return tuple(f"{parts.scheme}://{parts.netloc}{path}" for path in _USUAL_PATHS)


def looks_like_html(body: bytes, content_type: str) -> bool:
    """Tell a web page from a feed that calls itself text/html."""
    start = body[:1024].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html")) or (
        "html" in content_type and not start.startswith((b"<?xml", b"<rss", b"<feed", b"<rdf"))
    )


def _absolute(href: str | None, *, url: str) -> Iterator[str]:
    try:
        link = urljoin(url, (href or "").strip())
    except ValueError:
        return
    if href and link.startswith(("http://", "https://")):
        yield link
