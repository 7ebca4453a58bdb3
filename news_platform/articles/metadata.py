"""The tree of a page in, the title, authors, date, section and tags that it states out.

Only stated values count (JSON-LD, OpenGraph, meta elements, microdata); nothing is guessed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from lxml import html

from news_platform.articles.blocks import visible_text
from news_platform.html import jsonld
from news_platform.html.dates import parse_date, parse_shown_date
from news_platform.html.jsonld import JsonObject
from news_platform.text.normalize import normalize_letters, normalize_spaces

_SEPARATOR = re.compile(r"\s+[|\-–—•»:·]+\s+|\s*[|｜：]\s*")
_AUTHOR_SEPARATOR = re.compile(
    r"\s*[,|]\s+|\s*;\s*|\s+(?:and|und|og|och|y|et|e|en|&)\s+", re.IGNORECASE
)
_AUTHOR_PREFIX = re.compile(r"^\s*(?:by|von|par|por|di|av|af|door)\s*:?\s+", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_NOT_A_NAME = re.compile(r"https?:|www\.|@|^\W*$", re.IGNORECASE)
# A longer "name" is a sentence about the author.
_MAX_NAME_LENGTH = 80
# A longer text contains a date, it does not show one.
_MAX_SHOWN_DATE = 60
_DATE_CLASS = re.compile(
    r"(?:^|[\s_-])(?:date|datum|published|pub-?date|post-?date|entry-?date|created)(?:$|[\s_-])",
    re.IGNORECASE,
)
# Meta elements that state when an article was published, in the order in which they are tried.
_DATE_META = (
    "article:published_time",
    "og:article:published_time",
    "datepublished",
    "date",
    "publish-date",
    "publishdate",
    "pubdate",
    "publication_date",
    "parsely-pub-date",
    "sailthru.date",
    "dc.date",
    "dc.date.issued",
    "dcterms.date",
    "dcterms.created",
    "cxenseparse:recs:publishtime",
)


@dataclass(frozen=True, slots=True)
class ArticleMetadata:
    """The metadata that a page states about its article; a value it does not state is empty."""

    title: str
    subtitle: str
    description: str
    authors: tuple[str, ...]
    published_at: datetime | None
    section: str
    tags: tuple[str, ...]
    kind: str
    declared_language: str


def parse_article_metadata(root: html.HtmlElement, *, url: str) -> ArticleMetadata:
    """Return the metadata of the page at `url`."""
    article, meta = jsonld.article_object(root), _MetaTags(root)
    description = meta.first("og:description", "description", "twitter:description")
    return ArticleMetadata(
        title=_title(root, article, meta, url=url),
        subtitle=jsonld.text(article, "alternativeHeadline") or description,
        description=" ".join((description, jsonld.text(article, "description"))).strip(),
        authors=_authors(root, article, meta, url=url),
        published_at=_published_at(root, article, meta),
        section=meta.first("article:section", "section") or jsonld.text(article, "articleSection"),
        tags=_tags(article, meta),
        kind=_kind(article),
        declared_language=(root.get("lang") or meta.first("og:locale"))[:2].lower(),
    )


class _MetaTags:
    """The meta elements of a page by lower-case name, in the order written."""

    def __init__(self, root: html.HtmlElement) -> None:
        self.values: dict[str, list[str]] = {}
        for element in root.iter("meta"):
            content = normalize_spaces(element.get("content") or "")
            for key in ("property", "name", "itemprop"):
                if content and element.get(key):
                    self.values.setdefault(element.get(key).strip().lower(), []).append(content)

    def all(self, *names: str) -> Iterator[str]:
        """Yield every value under the names, name by name, in the order written."""
        for name in names:
            yield from self.values.get(name, ())

    def first(self, *names: str) -> str:
        """Return the first value under the names, or ''."""
        return next(self.all(*names), "")


def _title(root: html.HtmlElement, article: JsonObject, meta: _MetaTags, *, url: str) -> str:
    headlines = [visible_text(h1) for h1 in root.iter("h1")]
    stated = [meta.first("og:title"), jsonld.text(article, "headline"), meta.first("twitter:title")]
    page_title = next((visible_text(title) for title in root.iter("title")), "")
    site = {normalize_letters(name) for name in _site_names(article, meta, url=url)}
    bare = [jsonld.text(article, "headline"), *headlines]
    chosen = next((text for text in (*stated, *headlines[:1], page_title) if text), "")
    return _without_site(chosen, site=site, bare=bare)


def _site_names(article: JsonObject, meta: _MetaTags, *, url: str) -> Iterator[str]:
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    yield from (meta.first("og:site_name"), meta.first("application-name"), host)
    yield host.partition(".")[0]
    yield from jsonld.names(article.get("publisher"))


def _without_site(title: str, *, site: set[str], bare: Iterable[str]) -> str:
    """Return the title without a separator and the site's name at its end."""
    known = {normalize_letters(text) for text in bare if text}
    for cut in reversed(list(_SEPARATOR.finditer(title))):
        head, tail = title[: cut.start()], title[cut.end() :]
        if head and (normalize_letters(head) in known or normalize_letters(tail) in site):
            return head
    return title


def _authors(
    root: html.HtmlElement, article: JsonObject, meta: _MetaTags, *, url: str
) -> tuple[str, ...]:
    """Return the authors of the first source that names people, else of the first with any name."""
    sources = (
        jsonld.names(article.get("author")),
        meta.all("author", "article:author", "parsely-author", "dc.creator", "sailthru.author"),
        _bylines(root),
    )
    named = [tuple(dict.fromkeys(n for v in source for n in _split_names(v))) for source in sources]
    site = {normalize_letters(name) for name in _site_names(article, meta, url=url)}
    people = (tuple(n for n in found if normalize_letters(n) not in site) for found in named)
    return next((found for found in people if found), next((f for f in named if f), ()))


def _split_names(value: str) -> Iterator[str]:
    for part in _AUTHOR_SEPARATOR.split(_AUTHOR_PREFIX.sub("", value, count=1)):
        name = _IN_BRACKETS.sub("", part).strip(" .,")
        if name and len(name) <= _MAX_NAME_LENGTH and not _NOT_A_NAME.search(name):
            yield name


def _bylines(root: html.HtmlElement) -> Iterator[str]:
    """Yield the first text that is marked as the author; later ones belong to other articles."""
    for element in root.iter("a", "span", "div", "p", "address"):
        marked = element.get("rel") == "author" or element.get("itemprop") == "author"
        if marked or _is_byline_class(element.get("class") or ""):
            name = visible_text(element)
            if any(_split_names(name)):
                yield name
                return


def _is_byline_class(name: str) -> bool:
    return re.search(r"(?:^|\s)(?:author|byline)(?:[_-]+(?:name|link))?(?:$|\s)", name) is not None


def _published_at(root: html.HtmlElement, article: JsonObject, meta: _MetaTags) -> datetime | None:
    stated = (
        jsonld.text(article, "datePublished"),
        *meta.all(*_DATE_META),
        jsonld.text(article, "dateCreated"),
        *_marked_times(root),
    )
    return next((moment for text in stated if text and (moment := parse_date(text))), None)


def _marked_times(root: html.HtmlElement) -> Iterator[str]:
    """Yield the dates of elements marked as publication time, then of times in the article."""
    for element in root.iter("time", "span", "abbr", "div"):
        if element.get("itemprop") == "datePublished" or element.get("pubdate") is not None:
            yield element.get("datetime") or element.get("title") or visible_text(element)
    headline = next(root.iter("h1"), None)
    if headline is not None:
        for article in headline.iterancestors("article"):
            yield from (time.get("datetime") or "" for time in article.iter("time"))
        yield from _shown_date(headline)


def _shown_date(headline: html.HtmlElement) -> Iterator[str]:
    """Yield the day shown as a date after the headline, if there is exactly one."""
    shown: dict[datetime, str] = {}
    for element in headline.xpath("following::*[self::span or self::div or self::p or self::time]"):
        if _DATE_CLASS.search(element.get("class") or ""):
            text = visible_text(element)
            moment = parse_shown_date(text) if len(text) <= _MAX_SHOWN_DATE else None
            if moment:
                shown[moment.replace(hour=0, minute=0)] = moment.isoformat()
    if len(shown) == 1:
        yield from shown.values()


def _tags(article: JsonObject, meta: _MetaTags) -> tuple[str, ...]:
    listed = jsonld.names(article.get("keywords")) or list(
        meta.all("article:tag", "news_keywords", "keywords", "parsely-tags")
    )
    # Most sites write all tags into one text.
    if len(listed) == 1:
        listed = listed[0].split(",")
    return tuple(dict.fromkeys(tag for text in listed if (tag := normalize_spaces(text))))


def _kind(article: JsonObject) -> str:
    kinds = article.get("@type")
    return next(
        (kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)),
        "",
    )
