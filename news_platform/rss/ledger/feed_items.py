"""Read and write what each feed says about an article, for what its page does not state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.tables import FEED_ITEMS, FEED_POLLS, RAW
from news_platform.storage.chunks import chunked

# A zone that is missing or wrong, or an article of tomorrow; what is later was never published.
_AHEAD = timedelta(days=1)


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


def believed_date(
    stated: datetime | None, *, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return when an article was published, and the stated date if it is too far ahead for that."""
    if stated is None or stated <= now + _AHEAD:
        return stated, None
    return None, stated


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
        "enclosures": content.enclosures,
        "comments_url": content.comments_url,
        "is_paywalled": content.is_metered,
        "item_hash": entry.item_hash,
        "changed_at": now,
    }
