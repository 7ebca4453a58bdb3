"""Explain what the ledger knows about an article: its feeds, states, text and robots rule."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.evidence import Evidence
from news_platform.rss.ledger.newsroom_tables import FEED_ITEMS
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEEDS, RAW, REVISIONS
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.same_page import PageAddress

ROOM = "rss"
_TEXTS = {
    "pending": "The article waits to be fetched.",
    "processing": "A worker is fetching the article.",
    "stored": "The article is stored.",
    "duplicate": "The article repeats another one and is not stored again.",
    "error": "The article could not be fetched or read.",
    "skipped": "The article was not fetched.",
}


def explain_article(engine: sa.Engine, page: PageAddress) -> Iterator[Evidence]:
    """Yield what the ledger knows about a page, in the order in which it happened."""
    with read_transaction(engine) as connection:
        rows = _rows(connection, page)
        for row in rows:
            yield from _listed(connection, row)
            yield _status(row)
            yield from _revisions(connection, row)
    if not rows:
        yield Evidence(ROOM, "absent", "No feed or news sitemap has listed this address.")


def _rows(connection: sa.Connection, page: PageAddress) -> Sequence[sa.Row[Any]]:
    # ArticlesIndex also holds the aliases of an article, such as addresses that redirect to it.
    known = sa.select(ARTICLES_INDEX.c.row_id_raw).where(ARTICLES_INDEX.c.url_hash.in_(page.hashes))
    named = sa.select(RAW.c.row_id).where(RAW.c.url_hash.in_(page.hashes))
    chosen = sa.select(RAW).where(RAW.c.row_id.in_(sa.union(known, named)))
    return connection.execute(chosen.order_by(RAW.c.row_id)).all()


def _listed(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    feeds = sa.select(FEED_ITEMS.c.feed_url).where(FEED_ITEMS.c.row_id == row.row_id)
    names = dict.fromkeys((row.feed_url, *row.sources_list, *connection.execute(feeds).scalars()))
    for name in filter(None, names):
        is_first = name == row.feed_url
        yield Evidence(
            ROOM,
            "listed",
            f"The feed {name} {'listed it first' if is_first else 'lists it, too'}.",
            at=row.found_at if is_first else row.last_seen_rss,
            source=f"ledger raw {row.row_id}",
            details={"feed": name},
        )


def _status(row: sa.Row[Any]) -> Evidence:
    text = _TEXTS.get(row.status, f"The ledger has the article as {row.status}.")
    reason = f" Reason: {row.error_msg}." if row.error_msg else ""
    return Evidence(
        ROOM,
        row.status,
        text + reason,
        at=_last_moment(row),
        source=f"ledger raw {row.row_id}",
        details={"url": row.article_url_canon},
    )


def _last_moment(row: sa.Row[Any]) -> datetime:
    moments = (row.processed_at, row.stored_at, row.fetched_at, row.lock_at, row.found_at)
    return next(moment for moment in moments if moment is not None)


def _revisions(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    chosen = sa.select(REVISIONS).where(REVISIONS.c.row_id == row.row_id)
    for one in connection.execute(chosen.order_by(REVISIONS.c.rev_n)):
        yield Evidence(
            ROOM,
            "revised",
            f"The publisher changed the text (revision {one.rev_n}).",
            at=one.revised_at,
            source=f"ledger article_revisions {row.row_id}/{one.rev_n}",
        )


def is_feed(engine: sa.Engine, canonical: str) -> bool:
    """Return whether the ledger knows an address as a feed."""
    chosen = sa.select(FEEDS.c.feed_url_canon).where(FEEDS.c.feed_url_canon == canonical)
    with read_transaction(engine) as connection:
        return connection.execute(chosen).first() is not None
