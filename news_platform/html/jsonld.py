"""Read what a page states about itself: JSON-LD objects and meta elements.

Nothing is guessed. `parse_page_metadata` serves the crawl, which has no time for an lxml tree.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from lxml import html
from resiliparse.parse.html import HTMLTree

from news_platform.html.dates import iso_as_stated
from news_platform.text.normalize import normalize_spaces, scrub_json

JsonObject = dict[str, Any]

_WORKS = frozenset(("HowTo", "Recipe", "CreativeWork", "MedicalWebPage"))
# schema.org's kinds of article: NewsArticle, BlogPosting, Report, CriticReview and so on.
_ARTICLE_ENDINGS = ("Article", "Posting", "Report", "Review")
# Deeper nesting than any real page has; keeps the recursion short.
_MAX_DEPTH = 40
_DECODER = json.JSONDecoder(strict=False)  # raw line breaks inside strings are common
# Escapes of surrogates, NUL and other controls; the page around the script is scrubbed already.
_RISKY_ESCAPE = re.compile(r"\\u(?:d[89a-f]|00[0189])", re.IGNORECASE)
# Marks of XHTML around a script.
_WRAPPING = re.compile(r"<!\[CDATA\[|\]\]>|<!--|-->|^\s*//\s*$|\ufeff", re.MULTILINE)
_SCRIPT_TYPE = b"application/ld+json"
_MAX_SCRIPTS = 8
# Most blocks describe the site or its breadcrumbs; a search in bytes is cheaper than parsing them.
_ARTICLE_FIELDS = (b'"headline"', b'"datePublished"', b'"author"')
# The entries of a live blog and what readers wrote are articles of their own.
_OTHERS = frozenset(("liveBlogUpdate", "comment"))
# Where steps, questions and answers have their text.
_TEXT_FIELDS = ("name", "text", "acceptedAnswer", "itemListElement")
_TAG = re.compile(r"<[^<>]*>")
# An article anywhere else (`itemListElement`, `hasPart`) is one the page links to, not the page.
_PAGE_FIELDS = ("@graph", "mainEntity", "mainEntityOfPage")


def all_objects(root: html.HtmlElement) -> list[JsonObject]:
    """Return every object in the JSON-LD of the page, in the order written."""
    return [found for document in _documents(root) for found in iter_objects(document)]


def page_object(objects: Iterable[JsonObject]) -> JsonObject:
    """Return the first object that describes the page itself; {} without one."""
    return next((found for found in objects if "WebPage" in kinds(found)), {})


def described_works(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the objects that describe a page which is not an article: a recipe, a guide."""
    return [found for found in objects if not _WORKS.isdisjoint(kinds(found))]


def kinds(thing: JsonObject) -> list[str]:
    """Return the texts of the object's `@type`."""
    return [kind for kind in parts(thing.get("@type")) if isinstance(kind, str)]


def fullest_article(objects: Sequence[JsonObject]) -> JsonObject:
    """Return the article object that states most, with references resolved; {} without one."""
    articles = [found for found in objects if is_article(found)]
    best = max(articles, key=_fullness, default={})
    by_id = {
        found["@id"]: found for found in objects if "name" in found and _has_text(found, "@id")
    }
    return {key: _resolved(value, by_id) for key, value in best.items()}


def first_article_object(page: bytes) -> JsonObject:
    """Return the first object that describes the page's article, else the first with a date.

    Searches the bytes of the page (UTF-8) and builds no tree: the crawl has no time for more.
    """
    dated: JsonObject = {}
    for script in _iter_article_scripts(page):
        for found in iter_objects(_parsed(script.decode("utf-8", "replace")), fields=_PAGE_FIELDS):
            if is_article(found):
                return found
            if "datePublished" in found and not dated:
                dated = found
    return dated


def iter_objects(
    value: object, *, fields: Collection[str] | None = None, depth: int = 0
) -> Iterator[JsonObject]:
    """Yield every object inside a JSON value, outer before inner; inside objects only `fields`."""
    if depth > _MAX_DEPTH:
        return
    inside: Collection[object] = value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield value
        wanted = [key for key in value if key not in _OTHERS] if fields is None else fields
        inside = [value.get(key) for key in wanted]
    for part in inside:
        if isinstance(part, dict | list):
            yield from iter_objects(part, fields=fields, depth=depth + 1)


def is_article(thing: JsonObject) -> bool:
    """Return True if the object's `@type` is a kind of article."""
    return any(kind.endswith(_ARTICLE_ENDINGS) for kind in kinds(thing))


def is_news(article: JsonObject) -> bool:
    """Return True if the article calls itself news."""
    return any("News" in kind or kind == "Report" for kind in kinds(article))


def names(value: object) -> list[str]:
    """Return the names in an author, publisher or section value, in the order written."""
    if isinstance(value, list):
        return [name for part in value for name in names(part)]
    if isinstance(value, dict):
        whole = value.get("name") or " ".join(
            str(value[part]) for part in ("givenName", "familyName") if value.get(part)
        )
        return names(whole)
    return [normalize_spaces(unescape(value))] if isinstance(value, str) and value.strip() else []


def people(value: object) -> list[object]:
    """Return the parts of an author value that are not stated to be organisations."""
    return [part for part in parts(value) if not _is_organisation(part)]


def organisations(value: object) -> list[object]:
    """Return the parts of an author value that are stated to be organisations."""
    return [part for part in parts(value) if _is_organisation(part)]


def parts(value: object) -> list[object]:
    """Return the parts of a value that may be a list or a single thing."""
    return value if isinstance(value, list) else [value]


def live_updates(article: JsonObject) -> list[str]:
    """Return the texts of a live blog's entries, each with its headline, in the order written."""
    entries = [entry for entry in parts(article.get("liveBlogUpdate")) if isinstance(entry, dict)]
    return [
        " ".join(filter(None, (text(entry, "headline"), text(entry, "articleBody"))))
        for entry in entries
    ]


def shown_parts(objects: Iterable[JsonObject]) -> list[str]:
    """Return the ingredients and steps of recipes, and the questions and answers, as stated."""
    found: list[str] = []
    for thing in objects:
        own = kinds(thing)
        if "Recipe" in own:
            found += _texts(thing.get("recipeIngredient"))
            found += _texts(thing.get("recipeInstructions"))
        if "FAQPage" in own:
            found += _texts(thing.get("mainEntity"))
    return found


def _texts(value: object, depth: int = 0) -> list[str]:
    """Return the texts of steps, sections of steps, questions and answers, without markup."""
    if isinstance(value, str):
        return [normalize_spaces(_TAG.sub(" ", unescape(value)))] if value.strip() else []
    if isinstance(value, dict):
        value = [value.get(key) for key in _TEXT_FIELDS]
    inside = value if isinstance(value, list) and depth < _MAX_DEPTH else []
    return [text for part in inside for text in _texts(part, depth + 1)]


def _is_organisation(thing: object) -> bool:
    return isinstance(thing, dict) and any(kind.endswith("Organization") for kind in kinds(thing))


def urls(value: object) -> list[str]:
    """Return the addresses in an image or link value, in the order written."""
    if isinstance(value, list):
        return [url for part in value for url in urls(part)]
    if isinstance(value, dict):
        return urls(value.get("url") or value.get("contentUrl") or value.get("@id"))
    return [value.strip()] if isinstance(value, str) and value.strip() else []


def text(thing: JsonObject, key: str) -> str:
    """Return the first text under `key`, on one line, or ''."""
    return next(iter(names(thing.get(key))), "")


def _documents(root: html.HtmlElement) -> Iterator[object]:
    for script in root.iter("script"):
        if "ld+json" in (script.get("type") or "") and script.text:
            yield _parsed(script.text) or _repaired(script.text)


def _iter_article_scripts(page: bytes) -> Iterator[bytes]:
    at = 0
    for _ in range(_MAX_SCRIPTS):
        at = page.find(_SCRIPT_TYPE, at)
        start, end = page.find(b">", at) + 1, page.find(b"</script", at)
        if at < 0 or end < start:
            return
        script, at = page[start:end], end
        if any(field in script for field in _ARTICLE_FIELDS):
            yield script


def _parsed(script: str) -> object:
    """Return the value of a JSON-LD script; a broken one states nothing."""
    try:
        value = _DECODER.decode(script.strip().removeprefix("\ufeff").rstrip(";"))
        return scrub_json(value) if "\\" in script and _RISKY_ESCAPE.search(script) else value
    except (ValueError, RecursionError):
        return None


def _repaired(script: str) -> object:
    """Return the value of a script that is wrapped, escaped, or followed by something else."""
    text = _WRAPPING.sub("", unescape(script) if "&quot;" in script else script).strip()
    try:
        return scrub_json(_DECODER.raw_decode(text)[0])
    except (ValueError, RecursionError):
        return None


def _fullness(thing: JsonObject) -> int:
    return sum(bool(thing.get(key)) for key in ("headline", "author", "datePublished"))


def _resolved(value: Any, by_id: dict[str, JsonObject]) -> Any:
    """Return the value with `{"@id": …}` references replaced by what they name."""
    if isinstance(value, list):
        return [_resolved(part, by_id) for part in value]
    if isinstance(value, dict) and "name" not in value and _has_text(value, "@id"):
        return by_id.get(value["@id"], value)
    return value


def _has_text(thing: JsonObject, key: str) -> bool:
    return isinstance(thing.get(key), str)


_DATE_KEYS = (
    "article:published_time",
    "og:published_time",
    "datepublished",
    "parsely-pub-date",
    "dc.date.issued",
    "date",
)
_AUTHOR_KEYS = ("author", "parsely-author", "article:author")
_META_KEYS = frozenset(("og:title", "twitter:title", *_DATE_KEYS, *_AUTHOR_KEYS))
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


class MetaTags:
    """The meta elements of a page by lower-case name, in the order written."""

    def __init__(self, root: html.HtmlElement) -> None:
        self.values: dict[str, list[str]] = {}
        for element in root.iter("meta"):
            content = normalize_spaces(element.get("content") or "")
            for key in ("property", "name", "itemprop") if content else ():
                if name := element.get(key):
                    self.values.setdefault(name.strip().lower(), []).append(content)

    def all(self, *names: str) -> Iterator[str]:
        """Yield every value under the names, name by name, in the order written."""
        for name in names:
            yield from self.values.get(name, ())

    def first(self, *names: str) -> str:
        """Return the first value under the names, or ''."""
        return next(self.all(*names), "")
