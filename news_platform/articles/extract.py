"""Extract the article of a news page: text, title, authors, date, section, tags, links."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from lxml.html import HtmlElement

from news_platform.articles.article import Article
from news_platform.articles.authors import shown_authors
from news_platform.articles.block_features import StatedTexts
from news_platform.articles.blocks import text_blocks, text_size
from news_platform.articles.body import ArticleBody, extract_body
from news_platform.articles.metadata import (
    ArticleMetadata,
    parse_article_metadata,
    shows_wall,
)
from news_platform.articles.published import PublishedDate, corrected_date, shown_date
from news_platform.html.decode import decode_page, parse_decoded, parse_document
from news_platform.html.links import absolute_link
from news_platform.text.language import Language, detect

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
