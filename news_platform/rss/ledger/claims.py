"""Claim articles for workers, renew the claims, and check that a claim still holds its row."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import (
    LeaseTable,
    LeaseTerm,
    claim_rows,
    is_expired,
    is_held,
    renew,
)

_LEASES = LeaseTable(
    key=RAW.c.row_id,
    time=RAW.c.lock_at,
    stores="start",
    owner=RAW.c.lock_owner,
    attempt=RAW.c.attempt,
    state=RAW.c.status,
    held_state="processing",
)


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
    due = sa.select(RAW.c.row_id).where(_is_due(lease_seconds=lease_seconds, now=now))
    newest = due.order_by(RAW.c.row_id.desc()).limit(limit)
    term = LeaseTerm(now, lease_seconds, owner)
    with engine.begin() as connection:
        rows = claim_rows(connection, _LEASES, newest, term=term, returning=_CLAIM_COLUMNS)
    claims = [ArticleClaim(*row) for row in rows]
    # UPDATE … RETURNING gives rows in no defined order; the newest articles come first.
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
            renew(connection, _LEASES, held_by(claim), term=LeaseTerm(now, 0))


def held_by(claim: ArticleClaim) -> sa.ColumnElement[bool]:
    """Return the condition under which the claim still holds its row."""
    return is_held(_LEASES, claim.row_id, attempt=claim.attempt, owner=claim.owner)


def _is_due(*, lease_seconds: int, now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(
        sa.and_(
            RAW.c.status == "pending",
            sa.or_(RAW.c.next_try_at.is_(None), RAW.c.next_try_at <= now),
        ),
        is_expired(_LEASES, now=now, seconds=lease_seconds),
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
