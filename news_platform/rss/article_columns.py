"""The article of a page and what the feed says about it in, the columns of its Raw row out."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

from news_platform.articles.article import (
    WRONG_PAGE,
    Article,
    ExtractedPage,
    PageAsked,
    PageVerdict,
    fits,
    judge_page,
)
from news_platform.articles.category import guess_category
from news_platform.rss.ledger.article_queue import ArticleClaim
from news_platform.rss.ledger.feed_items import FeedItem, believed_date
from news_platform.text.language import detect
from news_platform.text.normalize import text_hash, unique_text_hash, without_meter_lines
from news_platform.web.urls import url_hash

_WORD = re.compile(r"\w+")
# A shorter text of a feed is a teaser, not an article.
_FEW_CHARACTERS = 250
FEED = "feed"


def merge_article(article: Article, item: FeedItem) -> Article:
    """Return the article of a page, completed by its feed where the page is silent.

    Requests to subscribe are removed from the text, which is then marked as paywalled. The text of
    the feed is used, and marked, if the page has none or shows less of it for its paywall.
    """
    clean, is_metered = without_meter_lines(article.clean_text)
    full, _ = without_meter_lines(article.full_text)
    is_paywalled = True if is_metered and article.is_paywalled is None else article.is_paywalled
    merged = replace(
        article,
        clean_text=clean,
        full_text=full,
        is_paywalled=is_paywalled,
        authors=article.authors or item.authors,
        tags=article.tags or item.tags,
        image_url=article.image_url or item.image_url,
    )
    is_hidden = bool(is_paywalled) and len(item.content) > len(clean)
    if has_text(item) and (is_hidden or not clean.strip()):
        return _with_feed_text(merged, item)
    return merged


def judge_claimed(
    claim: ArticleClaim, page: ExtractedPage, item: FeedItem, *, url: str, other_title: str
) -> PageVerdict:
    """Return whether a page is that of the article; a stored text is guarded more closely."""
    titles = [title for title in (item.title, claim.title) if title] or [""]
    asked = PageAsked(claim.url_canon, titles[0], other_title)
    verdict = judge_page(page, url=url, asked=asked)
    known = [fits(page.article, url=claim.url_canon, title=title) for title in titles]
    if claim.text_hash and not any(known) and False in known:
        return PageVerdict(WRONG_PAGE)
    return verdict


def has_text(item: FeedItem) -> bool:
    """Return whether the feed carries the text of the article, not only a teaser."""
    return len(item.content) >= _FEW_CHARACTERS


def feed_article(item: FeedItem) -> Article:
    """Return the article that the feed carries, for a page that gives none."""
    plain = Article(
        title=item.title,
        authors=item.authors,
        tags=item.tags,
        published_at=item.published_at,
        image_url=item.image_url,
        article_type="news",
        extractor_version="",
    )
    return _with_feed_text(plain, item)


def _with_feed_text(article: Article, item: FeedItem) -> Article:
    # Removed when the feed was parsed; older rows have it still.
    text, is_metered = without_meter_lines(item.content)
    language = detect(text)
    return replace(
        article,
        clean_text=text,
        full_text=text,
        text_source=FEED,
        language=language.code,
        language_probability=round(language.probability, 3),
        is_paywalled=article.is_paywalled or item.is_paywalled or is_metered or None,
    )


def article_columns(article: Article, item: FeedItem, *, url: str, now: datetime) -> dict[str, Any]:
    """Return the columns of Raw that an article fills; `url` is its canonical final URL."""
    published_at, stated = believed_date(article.published_at, now=now)
    return {
        # The final URL: two feed URLs that redirect to one article get the same hash.
        "article_url_canon": url,
        "url_hash": url_hash(url),
        "text_hash": text_hash(article.clean_text),
        "unique_text_hash": unique_text_hash(
            article.clean_text,
            title=article.title or item.title,
            is_paywalled=article.is_paywalled,
        ),
        "published_at": published_at,
        "stated_published_at": stated,
        "language": article.language,
        "title": article.title,
        "subtitle": article.subtitle,
        "authors": article.authors,
        "section": article.section,
        "tags": article.tags,
        "article_type": article.article_type,
        "clean_text": article.clean_text,
        "clean_text_len": len(article.clean_text),
        "full_text_len": len(article.full_text),
        "word_count": len(_WORD.findall(article.clean_text)),
        "out_links": article.out_links,
        "extractor_version": article.extractor_version,
        # Nothing was extracted from the feed's own text, so there is nothing to be unsure of.
        "confidence": None if article.text_source == FEED else article.confidence,
        "published_at_source": article.published_at_source,
        "text_source": article.text_source,
        "summary": item.summary or article.subtitle,
        "image_url": article.image_url,
        "is_paywalled": article.is_paywalled,
        "category_guess": guess_category(
            url=url,
            section=article.section,
            tags=article.tags,
            title=article.title,
            text=article.clean_text,
        ),
    }
