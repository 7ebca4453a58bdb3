"""Who works on which article: claims with a lease and a fencing number, and their renewal.

A claim is one UPDATE … RETURNING. On SQLite the write lock makes it exclusive, on PostgreSQL
`FOR UPDATE SKIP LOCKED`. The number `attempt` grows with every claim: a worker that comes back
after its lease was taken over finds another number and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import read_transaction


@dataclass(frozen=True, slots=True)
class ArticleClaim:
    """One article in the hands of one worker."""

    row_id: int
    attempt: int
    owner: str
    url: str
    url_canon: str
    url_hash: str
    feed_url: str
    retries: int
    text_hash: str


def claim_articles(
    engine: sa.Engine, owner: str, *, limit: int, lease_seconds: int, now: datetime
) -> list[ArticleClaim]:
    """Take up to `limit` articles that are due: pending ones, then those whose lease ran out."""
    due = (
        sa.select(RAW.c.row_id)
        .where(_is_due(lease_seconds=lease_seconds, now=now))
        .order_by(RAW.c.row_id.desc())  # news first
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    taken = (
        sa.update(RAW)
        .where(RAW.c.row_id.in_(due.scalar_subquery()))
        .values(status="processing", lock_owner=owner, lock_at=now, attempt=RAW.c.attempt + 1)
        .returning(*_CLAIM_COLUMNS)
    )
    with engine.begin() as connection:
        claims = [ArticleClaim(*row) for row in connection.execute(taken)]
    # What an update returns has an order of the database's own.
    return sorted(claims, key=lambda claim: claim.row_id, reverse=True)


def has_due_articles(engine: sa.Engine, *, lease_seconds: int, now: datetime) -> bool:
    """Tell whether a worker would find anything to claim."""
    is_due = _is_due(lease_seconds=lease_seconds, now=now)
    with read_transaction(engine) as connection:
        return (
            connection.execute(sa.select(RAW.c.row_id).where(is_due).limit(1)).first() is not None
        )


def renew_claims(engine: sa.Engine, claims: Iterable[ArticleClaim], *, now: datetime) -> None:
    """Start the lease of claims still in hand anew; one that was lost stays lost."""
    with engine.begin() as connection:
        for claim in claims:
            connection.execute(sa.update(RAW).where(*held_by(claim)).values(lock_at=now))


def held_by(claim: ArticleClaim) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the condition under which the claim still holds its row."""
    return (
        RAW.c.row_id == claim.row_id,
        RAW.c.status == "processing",
        RAW.c.lock_owner == claim.owner,
        RAW.c.attempt == claim.attempt,
    )


def _is_due(*, lease_seconds: int, now: datetime) -> sa.ColumnElement[bool]:
    expired = now - timedelta(seconds=lease_seconds)
    return sa.or_(
        sa.and_(
            RAW.c.status == "pending",
            sa.or_(RAW.c.next_try_at.is_(None), RAW.c.next_try_at <= now),
        ),
        sa.and_(RAW.c.status == "processing", RAW.c.lock_at < expired),
    )


_CLAIM_COLUMNS = (
    RAW.c.row_id,
    RAW.c.attempt,
    RAW.c.lock_owner,
    RAW.c.article_url,
    RAW.c.article_url_canon,
    RAW.c.url_hash,
    RAW.c.feed_url,
    RAW.c.retries,
    RAW.c.text_hash,
)
