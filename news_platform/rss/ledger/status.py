"""Count and list what is in the ledger, and find rows that break its invariants."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.errors import StorageError
from news_platform.rss.article_files import full_text_path
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEEDS, RAW
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import has_table, read_transaction, shown_url

_TOP = 10
# Exports and full texts, which the ledger's articles leave in the root.
_ARTICLES = "articles"


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """Counts of feeds and articles; `articles_per_hour` covers the last 24 hours."""

    feeds: Mapping[str, int]
    articles: Mapping[str, int]
    duplicates: Mapping[str, int]
    errors_by_host: Mapping[str, int]
    articles_per_hour: Mapping[str, int]
    oldest_pending_at: datetime | None


def ledger_status(engine: sa.Engine, *, now: datetime) -> LedgerStatus:
    """Return the counts of feeds and articles at `now`."""
    with read_transaction(engine) as connection:
        return LedgerStatus(
            feeds=counts_by(connection, FEEDS.c.status),
            articles=counts_by(connection, RAW.c.status),
            duplicates=counts_by(
                connection, ARTICLES_INDEX.c.reason, ARTICLES_INDEX.c.is_duplicate.is_(True)
            ),
            errors_by_host=_errors_by_host(connection),
            articles_per_hour=_per_hour(connection, now=now),
            oldest_pending_at=connection.execute(
                sa.select(sa.func.min(RAW.c.found_at)).where(RAW.c.status == "pending")
            ).scalar_one(),
        )


# The text of an article without a page is that of its feed, which no extractor made.
HAS_PAGE = (RAW.c.status == "stored", RAW.c.page_url != "")


def outdated_articles(engine: sa.Engine) -> Mapping[str, int]:
    """Count the articles of older versions of the extractor, with a kept page and without one."""
    has_page = RAW.c.page_ref != ""
    chosen = (
        sa.select(has_page, sa.func.count())
        .where(*HAS_PAGE, is_older(EXTRACTOR_VERSION))
        .group_by(has_page)
    )
    with read_transaction(engine) as connection:
        found = connection.execute(chosen).all()
    return {"kept page" if is_kept else "no page": count for is_kept, count in found}


def is_older(version: str) -> sa.ColumnElement[bool]:
    """Return the condition for rows of an earlier version; versions are whole numbers."""
    column = RAW.c.extractor_version
    # As texts of one length: '2' < '10'. An empty version is from before there were any.
    shorter = sa.func.length(column) < len(version)
    return sa.or_(shorter, sa.and_(sa.func.length(column) == len(version), column < version))


def worst_feeds(engine: sa.Engine, *, limit: int = _TOP) -> list[sa.Row[Any]]:
    """Return the polled feeds with the lowest health: URL, status, score, silent days."""
    chosen = (
        sa.select(
            FEEDS.c.feed_url,
            FEEDS.c.status,
            FEEDS.c.health_score,
            FEEDS.c.no_updates_days,
        )
        .where(FEEDS.c.status.in_(("active", "dead")))
        .order_by(FEEDS.c.health_score, FEEDS.c.feed_url)
        .limit(limit)
    )
    with read_transaction(engine) as connection:
        return list(connection.execute(chosen))


def doubled_main_rows(engine: sa.Engine) -> list[str]:
    """Return the url_hashes that more than one main row has; there must be none."""
    chosen = (
        sa.select(RAW.c.url_hash)
        .where(RAW.c.status != "duplicate")
        .group_by(RAW.c.url_hash)
        .having(sa.func.count() > 1)
    )
    with read_transaction(engine) as connection:
        return list(connection.execute(chosen).scalars())


def missing_full_texts(engine: sa.Engine, store: ObjectStore, *, since: datetime) -> list[str]:
    """Return the URLs of articles stored since `since` whose full text is missing, not expired."""
    chosen = sa.select(RAW.c.article_url_canon, RAW.c.url_hash).where(
        RAW.c.status == "stored",
        RAW.c.full_text_expired_at.is_(None),
        RAW.c.processed_at >= since,
    )
    with read_transaction(engine) as connection:
        rows = connection.execute(chosen).all()
    return [row.article_url_canon for row in rows if not store.exists(full_text_path(row.url_hash))]


def overdue_locks(engine: sa.Engine, *, lease_seconds: int, now: datetime) -> list[str]:
    """Return the URLs of articles whose lease expired and that no worker has claimed since."""
    # One lease until it expires, and one more for the next worker to claim the article.
    before = now - timedelta(seconds=2 * lease_seconds)
    chosen = sa.select(RAW.c.article_url_canon).where(
        RAW.c.status == "processing", RAW.c.lock_at < before
    )
    with read_transaction(engine) as connection:
        return list(connection.execute(chosen).scalars())


def counts_by(
    connection: sa.Connection, column: sa.Column[str], *conditions: sa.ColumnElement[bool]
) -> dict[str, int]:
    """Count the rows that fulfil the conditions, by the values of a column."""
    chosen = sa.select(column, sa.func.count()).where(*conditions).group_by(column).order_by(column)
    return {value: count for value, count in connection.execute(chosen)}


def _errors_by_host(connection: sa.Connection) -> dict[str, int]:
    # A stored article keeps the message of a failed second fetch; that is not an error.
    failed = connection.execute(
        sa.select(RAW.c.article_url_canon).where(RAW.c.error_msg != "", RAW.c.status != "stored")
    ).scalars()
    counted = Counter(urlsplit(url).hostname or "" for url in failed)
    return dict(counted.most_common(_TOP))


def _per_hour(connection: sa.Connection, *, now: datetime) -> dict[str, int]:
    since = now - timedelta(hours=24)
    moments = connection.execute(
        sa.select(RAW.c.stored_at).where(RAW.c.stored_at > since)
    ).scalars()
    counted = Counter(f"{moment:%Y-%m-%d %H}:00" for moment in moments)
    return dict(sorted(counted.items()))


def require_articles(engine: sa.Engine, store: ObjectStore) -> None:
    """Raise StorageError if the ledger is new or empty, but the root holds articles of another.

    Otherwise a lost ledger would pass for the truth: the workbook would lose its rows, and every
    article would be fetched again.
    """
    if _has_articles(engine):
        return
    proof = next(iter(store.list(_ARTICLES)), None)
    if proof is None:
        return
    thing, found = shown_url(engine.url), store.uri(proof.path)
    raise StorageError(
        f"ledger {thing!r} holds no articles, but the root does, such as {found!r}: "
        f"run `news-platform ledger check`, restore the ledger from a backup, or move the folder "
        f"{_ARTICLES!r} out of the root to begin anew",
        thing=thing,
    )


def _has_articles(engine: sa.Engine) -> bool:
    if not has_table(engine, RAW.name):
        return False
    with read_transaction(engine) as connection:
        return connection.execute(sa.select(RAW.c.row_id).limit(1)).first() is not None
