"""Read what a page states about its article: title, authors, date, section, tags.

Only stated values count (JSON-LD, OpenGraph, meta elements, microdata); nothing is guessed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lxml import html

from news_platform.articles.authors import article_authors
from news_platform.articles.published import PublishedDate, modified_date, stated_date
from news_platform.articles.titles import article_title, site_names
from news_platform.html import jsonld
from news_platform.html.dates import StatedDate
from news_platform.html.jsonld import JsonObject, MetaTags
from news_platform.html.links import absolute_link
from news_platform.text.normalize import normalize_spaces

_TIER_META = ("article:content_tier", "access", "content_tier", "article.content_tier")
_LOCKED_TIERS = frozenset(("locked", "metered", "paid", "premium", "subscriber", "no", "plus"))
_FALSE = frozenset(("false", "0", "no", "http://schema.org/false", "https://schema.org/false"))
# A wall is known by what it says: the class `paywall` is on free articles of such sites too.
_MAX_WALL = 200
_WALL = re.compile(
    r"subscribe (?:now )?to (?:continue|keep) reading"
    r"|(?:sign in|log in|register) to continue reading"
    r"|to (?:continue reading|read) (?:the rest of )?this (?:article|story),? (?:please )?"
    r"(?:subscribe|sign|log)"
    r"|(?:for|only to) subscribers only|subscriber.only (?:content|article|story)"
    r"|(?:nur|exklusiv) für abonnent|weiterlesen mit [\w-]*(?:plus|\+|abo)"
    r"|réservée? (?:à nos|aux) abonnés|(?:solo|exclusivo) para suscriptores"
    r"|riservato agli abbonati|tylko dla (?:prenumeratorów|subskrybentów)|alleen voor abonnees"
    r"|только для подписчиков"
)
# Every alternative of the pattern contains one of these.
_WALL_SIGNS = (
    "reading", "to read ", "subscriber", "abonn", "weiterlesen", "suscriptores", "abbonati",
    "prenumerator", "subskrybent", "подписчик",
)  # fmt: skip
# Kinds of pages whose pictures are the content.
_GALLERIES = frozenset(("ImageGallery", "MediaGallery"))


@dataclass(frozen=True, slots=True)
class ArticleMetadata:
    """The metadata that a page states about its article; a value it does not state is empty."""

    title: str
    subtitle: str
    description: str
    authors: tuple[str, ...]
    published: PublishedDate | None
    modified: StatedDate | None
    section: str
    tags: tuple[str, ...]
    kind: str
    declared_language: str
    body: str = ""
    image_url: str = ""
    canonical_link: str = ""
    is_paywalled: bool | None = None
    is_news: bool = False
    parts: tuple[str, ...] = ()

    @property
    def published_at(self) -> datetime | None:
        """Return the stated moment in UTC, or None."""
        return self.published.date.at if self.published else None


def parse_article_metadata(root: html.HtmlElement, *, url: str) -> ArticleMetadata:
    """Return the metadata of the page at `url`."""
    objects, meta = jsonld.all_objects(root), MetaTags(root)
    article = jsonld.fullest_article(objects)
    described = [
        thing
        for thing in (article, jsonld.page_object(objects), *jsonld.described_works(objects))
        if thing
    ]
    description = meta.first("og:description", "description", "twitter:description")
    names = site_names(article, meta, url=url)
    return ArticleMetadata(
        title=article_title(root, article, meta, site_names=names),
        subtitle=jsonld.text(article, "alternativeHeadline") or description,
        description=" ".join((description, jsonld.text(article, "description"))).strip(),
        authors=article_authors(root, article, meta, site_names=names),
        published=stated_date(root, described, meta),
        modified=modified_date(described, meta),
        section=meta.first("article:section", "section") or jsonld.text(article, "articleSection"),
        tags=_tags(article, meta),
        kind=_kind(article, objects),
        declared_language=root.get("lang") or meta.first("og:locale"),
        body=jsonld.text(article, "articleBody") or "\n".join(jsonld.live_updates(article)),
        image_url=_image_url(article, meta, url=url),
        canonical_link=_canonical_link(root, meta, url=url),
        is_paywalled=_stated_paywall(article, meta),
        is_news=jsonld.is_news(article),
        parts=tuple(jsonld.shown_parts(objects)),
    )


def _kind(article: JsonObject, objects: Iterable[JsonObject]) -> str:
    """Return the schema.org type of the article; a gallery is one even beside an article."""
    found = {kind for thing in objects for kind in jsonld.kinds(thing)}
    return next(iter(sorted(found & _GALLERIES)), "") or next(iter(jsonld.kinds(article)), "")


def _image_url(article: JsonObject, meta: MetaTags, *, url: str) -> str:
    """Return the address of the page's main picture, absolute, or ''."""
    stated = (
        *meta.all("og:image:secure_url", "og:image", "og:image:url", "twitter:image"),
        *jsonld.urls(article.get("image")),
        *jsonld.urls(article.get("thumbnailUrl")),
    )
    return next((link for text in stated if (link := absolute_link(url, text))), "")


def _canonical_link(root: html.HtmlElement, meta: MetaTags, *, url: str) -> str:
    """Return the address that the page calls its own, absolute, or ''."""
    links = (
        link.get("href") or ""
        for link in root.iter("link")
        if (link.get("rel") or "").lower() == "canonical"
    )
    stated = (*links, *meta.all("og:url"))
    return next((link for text in stated if text and (link := absolute_link(url, text))), "")


def _stated_paywall(article: JsonObject, meta: MetaTags) -> bool | None:
    """Return whether the page says that its text is for subscribers; None if it does not say."""
    parts = [part for part in jsonld.parts(article.get("hasPart")) if isinstance(part, dict)]
    stated = [thing.get("isAccessibleForFree") for thing in (article, *parts)]
    known = [str(free).strip().lower() in _FALSE for free in stated if free is not None]
    if known:
        return any(known)
    tier = meta.first(*_TIER_META).lower()
    return tier in _LOCKED_TIERS if tier else None


def shows_wall(lowered: Iterable[str]) -> bool:
    """Return True if one of the page's short texts, in lower case, asks to subscribe."""
    short = [text for text in lowered if len(text) <= _MAX_WALL]
    page = "\n".join(short)
    signs = [sign for sign in _WALL_SIGNS if sign in page]
    return any(any(map(text.__contains__, signs)) and _WALL.search(text) for text in short if signs)


def _tags(article: JsonObject, meta: MetaTags) -> tuple[str, ...]:
    listed = jsonld.names(article.get("keywords")) or list(
        meta.all("article:tag", "news_keywords", "keywords", "parsely-tags")
    )
    # Most sites write all tags into one text.
    if len(listed) == 1:
        listed = listed[0].split(",")
    return tuple(dict.fromkeys(tag for text in listed if (tag := normalize_spaces(text))))
