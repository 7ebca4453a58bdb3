"""What a page states about itself in JSON-LD, OpenGraph and links: title, date, author, feeds.

Nothing is guessed: a fact that the page does not state is None.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import unescape

from resiliparse.parse.html import HTMLTree

_LD_MARK = b"application/ld+json"
_LD_BLOCKS = 8
_JSON = json.JSONDecoder(strict=False)  # pages break lines within strings
_LD_FIELDS = (b'"headline"', b'"datePublished"', b'"author"')
_ARTICLE_ENDINGS = ("Article", "Posting", "Report", "Review")
_META_KEYS = frozenset(
    (
        "og:title",
        "twitter:title",
        "article:published_time",
        "og:published_time",
        "datepublished",
        "date",
        "dc.date.issued",
        "parsely-pub-date",
        "author",
        "article:author",
        "parsely-author",
    )
)
_FEED_TYPES = frozenset(
    ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")
)
_TEXT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Stated:
    """Title, publication time (ISO 8601, zone as stated) and authors as the page states them."""

    title: str | None = None
    published_at: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class FeedLink:
    """A feed that a page points at; `href` may be relative to the page."""

    href: str
    mime_type: str
    title: str | None


def stated_facts(tree: HTMLTree, html: bytes) -> Stated:
    """Return what JSON-LD states, and where it is silent what the meta elements and title state."""
    article = _article(html)
    title = _text(article.get("headline"))
    published_at = _iso(article.get("datePublished"))
    author = _authors(article.get("author"))
    if title and published_at and author:
        return Stated(title, published_at, author)
    meta = _meta(tree)
    return Stated(
        title=title or _text(meta.get("og:title") or meta.get("twitter:title") or tree.title),
        published_at=published_at
        or next((iso for key in _DATE_KEYS if (iso := _iso(meta.get(key)))), None),
        author=author
        or next((name for key in _AUTHOR_KEYS if (name := _person(meta.get(key)))), None),
    )


_DATE_KEYS = (
    "article:published_time",
    "og:published_time",
    "datepublished",
    "parsely-pub-date",
    "dc.date.issued",
    "date",
)
_AUTHOR_KEYS = ("author", "parsely-author", "article:author")


def feed_links(tree: HTMLTree) -> tuple[FeedLink, ...]:
    """Return the feeds linked from the page's head, in the order written."""
    if tree.head is None:
        return ()
    found = tree.head.query_selector_all('link[rel~="alternate"][type][href]')
    return tuple(
        FeedLink(link.getattr("href").strip(), mime, _text(link.getattr("title")))
        for link in found
        if (mime := link.getattr("type").strip().lower()) in _FEED_TYPES
    )


def _meta(tree: HTMLTree) -> Mapping[str, str]:
    """Return the first value of each meta element we know."""
    found: dict[str, str] = {}
    for node in tree.head.get_elements_by_tag_name("meta") if tree.head else ():
        key = node.getattr("property") or node.getattr("name") or node.getattr("itemprop") or ""
        if (key := key.lower()) in _META_KEYS and key not in found:
            found[key] = node.getattr("content") or ""
    return found


def _article(html: bytes) -> Mapping[str, object]:
    """Return the first JSON-LD node that describes an article, else the first that has a date."""
    second: Mapping[str, object] = {}
    for block in _ld_blocks(html):
        for node in _ld_nodes(block):
            if _is_article(node):
                return node
            if "datePublished" in node and not second:
                second = node
    return second


def _ld_blocks(html: bytes) -> Iterator[object]:
    at = 0
    for _ in range(_LD_BLOCKS):
        at = html.find(_LD_MARK, at)
        start, end = html.find(b">", at) + 1, html.find(b"</script", at)
        if at < 0 or end < start:
            return
        block, at = html[start:end], end
        if any(field in block for field in _LD_FIELDS):
            try:
                yield _JSON.decode(block.decode().removeprefix("\ufeff"))
            except (ValueError, RecursionError):
                continue  # a broken block states nothing


def _ld_nodes(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, list):
        for part in value:
            yield from _ld_nodes(part)
    elif isinstance(value, dict):
        yield value
        for key in ("@graph", "mainEntity", "mainEntityOfPage"):
            if isinstance(value.get(key), list | dict):
                yield from _ld_nodes(value[key])


def _is_article(node: Mapping[str, object]) -> bool:
    kind = node.get("@type")
    kinds = kind if isinstance(kind, list) else [kind]
    return any(isinstance(name, str) and name.endswith(_ARTICLE_ENDINGS) for name in kinds)


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join(value[:_TEXT_LIMIT].split())
    return (unescape(text) if "&" in text else text) or None


def _iso(value: object) -> str | None:
    text = _text(value)
    try:
        return datetime.fromisoformat(text).isoformat() if text else None
    except ValueError:
        return None


def _authors(value: object) -> str | None:
    parts = value if isinstance(value, list) else [value]
    names = (_person(part.get("name") if isinstance(part, dict) else part) for part in parts)
    return ", ".join(dict.fromkeys(name for name in names if name)) or None


def _person(value: object) -> str | None:
    """Return a name; profile addresses are not names."""
    text = _text(value)
    return None if text is None or text.startswith(("http:", "https:", "/")) else text
