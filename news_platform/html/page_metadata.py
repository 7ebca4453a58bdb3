"""Read the title, date and authors that a crawled page states (JSON-LD, OpenGraph, meta).

Nothing is guessed: what the page does not state is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape

from resiliparse.parse.html import HTMLTree

from news_platform.html.dates import iso_as_stated
from news_platform.html.jsonld import first_article_object

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
_TEXT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """Title, publication time (ISO 8601, zone as stated) and authors as the page states them."""

    title: str | None = None
    published_at: str | None = None
    author: str | None = None


def parse_page_metadata(tree: HTMLTree, html: bytes) -> PageMetadata:
    """Return what JSON-LD states; meta elements and the title fill in what it does not state."""
    article = first_article_object(html)
    title = _text(article.get("headline"))
    published_at = _iso(article.get("datePublished"))
    author = _authors(article.get("author"))
    if title and published_at and author:
        return PageMetadata(title, published_at, author)
    meta = _meta(tree)
    return PageMetadata(
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


def _meta(tree: HTMLTree) -> Mapping[str, str]:
    """Return the first value of each known meta element."""
    found: dict[str, str] = {}
    for node in tree.head.get_elements_by_tag_name("meta") if tree.head else ():
        key = node.getattr("property") or node.getattr("name") or node.getattr("itemprop") or ""
        if (key := key.lower()) in _META_KEYS and key not in found:
            found[key] = node.getattr("content") or ""
    return found


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join(value[:_TEXT_LIMIT].split())
    return (unescape(text) if "&" in text else text) or None


def _iso(value: object) -> str | None:
    text = _text(value)
    return iso_as_stated(text) if text else None


def _authors(value: object) -> str | None:
    parts = value if isinstance(value, list) else [value]
    names = (_person(part.get("name") if isinstance(part, dict) else part) for part in parts)
    return ", ".join(dict.fromkeys(name for name in names if name)) or None


def _person(value: object) -> str | None:
    """Return a name, None for the URL of a profile."""
    text = _text(value)
    return None if text is None or text.startswith(("http:", "https:", "/")) else text
