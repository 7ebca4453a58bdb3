"""The article of a page and what the feed says about it in, the columns of its Raw row out.

What each feed says is kept in `feed_items`, for what the page does not state.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.articles.article import (
    WRONG_PAGE,
    Article,
    ExtractedPage,
    PageAsked,
    PageVerdict,
    believed_date,
    fits,
    guess_category,
    judge_page,
)
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.article_queue import ArticleClaim
from news_platform.rss.ledger.tables import FEED_ITEMS, FEED_POLLS, RAW
from news_platform.storage.chunks import chunked
from news_platform.text.language import detect
from news_platform.text.normalize import text_hash, unique_text_hash, without_meter_lines
from news_platform.web.urls import url_hash

_WORD = re.compile(r"\w+")
# A shorter text of a feed is a teaser, not an article.
_FEW_CHARACTERS = 250
FEED = "feed"


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """What a feed said about an article when it was last followed."""

    item_hash: str
    newest_date: datetime | None


@dataclass(frozen=True, slots=True)
class FeedItem:
    """What a feed carries of an article, for what its page does not state."""

    title: str = ""
    published_at: datetime | None = None
    authors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    summary: str = ""
    content: str = ""
    image_url: str = ""
    is_paywalled: bool = False


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
    claim: ArticleClaim, page: ExtractedPage, item: FeedItem, *, url: str, other_title: str = ""
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


def read_items(
    connection: sa.Connection, feed_url: str, row_ids: Sequence[int]
) -> dict[int, SaidBefore]:
    """Return what this feed said about these articles, by row_id; others are left out."""
    items = FEED_ITEMS.c
    said: dict[int, SaidBefore] = {}
    for part in chunked(row_ids):
        chosen = sa.select(
            items.row_id, items.item_hash, items.published_at, items.updated_at
        ).where(items.row_id.in_(part), items.feed_url == feed_url)
        for row_id, item_hash, published_at, updated_at in connection.execute(chosen):
            dates = [date for date in (published_at, updated_at) if date is not None]
            said[row_id] = SaidBefore(item_hash, max(dates, default=None))
    return said


def has_items(connection: sa.Connection, feed_url: str) -> bool:
    """Return whether this feed has listed an article before."""
    is_same = sa.and_(FEED_ITEMS.c.row_id == RAW.c.row_id, FEED_ITEMS.c.feed_url == RAW.c.feed_url)
    chosen = sa.select(RAW.c.row_id).join(FEED_ITEMS, is_same).where(RAW.c.feed_url == feed_url)
    if connection.execute(chosen.limit(1)).first() is not None:
        return True
    # The articles of a feed that has moved name its old URL, but its polls have moved with it.
    polls = FEED_POLLS.c
    had_items = (polls.feed_url == feed_url, polls["items"] > polls.items_without_link)
    return connection.execute(sa.select(polls.id).where(*had_items).limit(1)).first() is not None


def read_item(connection: sa.Connection, row_id: int, prefer: str) -> FeedItem:
    """Return what the feeds say about an article: the longest text, first of the feed `prefer`."""
    columns = [FEED_ITEMS.c[name] for name in FeedItem.__slots__]
    chosen = sa.select(FEED_ITEMS.c.feed_url, *columns).where(FEED_ITEMS.c.row_id == row_id)
    found = [(row[0], FeedItem(*row[1:])) for row in connection.execute(chosen)]
    if not found:
        return FeedItem()
    return max(found, key=lambda pair: (len(pair[1].content), pair[0] == prefer, pair[0]))[1]


def insert_items(
    connection: sa.Connection, feed_url: str, entries: Mapping[int, FeedEntry], *, now: datetime
) -> None:
    """Add what a feed says about articles that it did not list before."""
    if entries:
        rows = [_item_row(row_id, feed_url, entry, now=now) for row_id, entry in entries.items()]
        connection.execute(sa.insert(FEED_ITEMS), rows)


def replace_items(
    connection: sa.Connection, feed_url: str, entries: Mapping[int, FeedEntry], *, now: datetime
) -> None:
    """Write what a feed says now about these articles."""
    for part in chunked(entries):
        items = FEED_ITEMS.c
        connection.execute(
            sa.delete(FEED_ITEMS).where(items.row_id.in_(part), items.feed_url == feed_url)
        )
    insert_items(connection, feed_url, entries, now=now)


def _item_row(row_id: int, feed_url: str, entry: FeedEntry, *, now: datetime) -> dict[str, Any]:
    content = entry.content
    return {
        "row_id": row_id,
        "feed_url": feed_url,
        "item_id": entry.id,
        "title": entry.title,
        "published_at": entry.published_at,
        "updated_at": entry.updated_at,
        "authors": content.authors,
        "tags": content.tags,
        "summary": entry.summary,
        "content": content.text,
        "image_url": content.image_url,
        "is_paywalled": content.is_metered,
        "item_hash": entry.item_hash,
        "changed_at": now,
    }
