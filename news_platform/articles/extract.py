"""Extract the article of a news page: text, title, authors, date, section, tags, links.

Of its metadata only stated values count (JSON-LD, OpenGraph, meta elements, microdata); nothing is
guessed.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from lxml.html import HtmlElement

from news_platform.articles.article import Article
from news_platform.articles.authors import article_authors, shown_authors
from news_platform.articles.block_features import StatedTexts
from news_platform.articles.blocks import text_blocks, text_size
from news_platform.articles.body import ArticleBody, extract_body
from news_platform.articles.published import (
    PublishedDate,
    corrected_date,
    modified_date,
    shown_date,
    stated_date,
)
from news_platform.articles.titles import article_title, site_names
from news_platform.html import jsonld
from news_platform.html.dates import StatedDate
from news_platform.html.decode import decode_page, parse_decoded, parse_document
from news_platform.html.jsonld import JsonObject, MetaTags
from news_platform.html.links import absolute_link
from news_platform.text.language import Language, detect
from news_platform.text.normalize import normalize_spaces

# A shorter text is not an article, or the article was not found.
_FEW_CHARACTERS = 250
# On hostile pages, the fallback takes minutes for a few megabytes.
_MAX_FALLBACK = 2_000_000
# It warns of every page without text ("discarding data: None"), which is what it is asked about.
logging.getLogger("trafilatura").setLevel(logging.ERROR)
# The mean F1 of the pages on which another source than the page's text had the article.
_FALLBACK_CONFIDENCE = 0.6
# From this probability on, the detected language is right for 99.8 % of texts.
_SURE = 0.8
_TYPE_BY_KIND = {
    "OpinionNewsArticle": "opinion",
    "LiveBlogPosting": "live",
    "ReviewNewsArticle": "review",
    "Review": "review",
    "BlogPosting": "blog",
    "AnalysisNewsArticle": "analysis",
    "BackgroundNewsArticle": "analysis",
    "AdvertiserContentArticle": "sponsored",
    "ImageGallery": "gallery",
    "MediaGallery": "gallery",
}
# Folders of an address; the slug of an article is a headline and says nothing about its type.
_TYPE_BY_FOLDER = {
    folder: name
    for name, folders in {
        "opinion": "opinion opinions op-ed editorial editorials commentisfree kommentar kommentare "
        "meinung opinie tribune columnists",
        "live": "live liveblog live-blog live-updates liveticker ticker direct",
        "gallery": "gallery galleries galerie galerien fotostrecke bildergalerie slideshow "
        "diaporama photos fotos galeri galeria",
        "video": "video videos watch",
        "review": "review reviews",
        "blog": "blog blogs",
    }.items()
    for folder in folders.split()
}
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


@dataclass(frozen=True, slots=True)
class InspectedPage:
    """An article and what it was found by: its blocks, what the page states, and its tree."""

    article: Article
    body: ArticleBody
    stated: ArticleMetadata
    root: HtmlElement


def extract_article(html: str | bytes, url: str, charset: str | None = None) -> Article:
    """Return the article of a page; a page without markup gives an empty Article.

    `charset` is the charset of the HTTP header; it is used for bytes only.
    """
    found = inspect_page(html, url, charset)
    return found.article if found is not None else Article()


def inspect_page(html: str | bytes, url: str, charset: str | None = None) -> InspectedPage | None:
    """Return the article of a page and what it was found by; None for a page without markup."""
    page = decode_page(html, charset)
    root = parse_decoded(page)
    if root is None:
        return None
    stated = parse_article_metadata(root, url=url)
    kind = article_type(stated.kind, url=url)
    body = extract_body(root, stated_texts(stated, kind))
    clean, source = clean_text_of(page.text, body.clean, stated.body)
    published = _published(root, stated, body, url=url)
    language = _language(clean or body.full, declared=stated.declared_language[:2].lower())
    article = Article(
        clean_text=clean,
        full_text=body.full if source == "page" and body.full else clean or body.full,
        title=stated.title,
        subtitle=stated.subtitle,
        authors=stated.authors or shown_authors(body.place),
        published_at=published.date.at if published else None,
        section=stated.section,
        tags=stated.tags,
        language=language.code,
        out_links=tuple(dict.fromkeys(_out_links(body, url=url))),
        article_type=kind,
        published_at_source=published.source if published else "",
        published_at_has_time=published is not None and published.date.has_time,
        published_at_has_zone=published is not None and published.date.has_zone,
        modified_at=stated.modified.at if stated.modified else None,
        image_url=stated.image_url,
        canonical_link=stated.canonical_link,
        is_paywalled=_is_paywalled(stated, body),
        language_probability=round(language.probability, 3),
        text_source=source,
        confidence=_confidence(body, source),
    )
    return InspectedPage(article, body, stated, root)


def stated_texts(stated: ArticleMetadata, kind: str = "") -> StatedTexts:
    """Return what the metadata say that helps to find the body; `kind` is the type of article."""
    return StatedTexts(
        stated.title, stated.description, stated.body, stated.is_news, kind, stated.parts
    )


def _published(
    root: HtmlElement, stated: ArticleMetadata, body: ArticleBody, *, url: str
) -> PublishedDate | None:
    language = stated.declared_language
    if stated.published is None:
        return shown_date(root, body.place, url=url, language=language)
    return corrected_date(stated.published, root, body.place, url=url, language=language)


def _is_paywalled(stated: ArticleMetadata, body: ArticleBody) -> bool | None:
    if stated.is_paywalled is not None:
        return stated.is_paywalled
    return True if shows_wall(body.place.blocks.lowered) else None


def _confidence(body: ArticleBody, source: str) -> float:
    if source == "page":
        return body.confidence
    return _FALLBACK_CONFIDENCE if source else 0.0


def clean_text_of(html: str, found: str, stated: str = "") -> tuple[str, str]:
    """Return the text and its source: ours, or another that is twice as long.

    Pages rendered by a script have their text in JSON-LD (`stated`) or `<noscript>`. Trafilatura
    handles the latter; it runs only for pages with little text, for it takes three times as long.
    """
    own = found, "page" if found else ""
    size = text_size(found)
    enough = max(2 * size, _FEW_CHARACTERS)
    if size >= _FEW_CHARACTERS:
        return own
    if text_size(stated) > enough:
        return _without_markup(stated), "json-ld"
    if len(html) > _MAX_FALLBACK:
        return own
    # The import takes a second, and most workers never need it.
    from trafilatura import extract

    theirs = extract(html, include_comments=False) or ""
    return (theirs, "trafilatura") if text_size(theirs) > enough else own


def _without_markup(text: str) -> str:
    root = parse_document(text) if "<" in text and ">" in text else None
    return text if root is None else "\n".join(text_blocks(root).texts)


def article_type(kind: str, *, url: str) -> str:
    """Return news, opinion, live, gallery, review, video, blog, analysis or sponsored.

    The stated schema.org type decides, otherwise the first folder of the URL that names a type.
    """
    stated = _TYPE_BY_KIND.get(kind)
    if stated:
        return stated
    folders = urlsplit(url).path.lower().strip("/").split("/")[:-1]
    return next((_TYPE_BY_FOLDER[name] for name in folders if name in _TYPE_BY_FOLDER), "news")


def _language(text: str, *, declared: str) -> Language:
    """Return the detected language if it is certain, else the language that the page declares."""
    found = detect(text)
    if found.probability >= _SURE or not declared:
        return found
    return Language(declared, found.probability if found.code == declared else 0.0)


def _out_links(body: ArticleBody, *, url: str) -> Iterator[str]:
    own = urlsplit(url).hostname
    for target in body.links:
        link = absolute_link(url, target)
        if link is not None and urlsplit(link).hostname != own:
            yield link


def parse_article_metadata(root: HtmlElement, *, url: str) -> ArticleMetadata:
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


def _canonical_link(root: HtmlElement, meta: MetaTags, *, url: str) -> str:
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
