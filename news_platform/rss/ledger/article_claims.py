"""Lease pending articles to workers, with a fencing number for each claim."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.ledger.article_states import note_states
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
    RAW.c.text_source,
    RAW.c.deferred_since,
)
# Of one source; the newest of a long feed must not keep all other sites waiting.
_SHARE_PER_CLAIM = 0.2


@dataclass(frozen=True, slots=True)
class ArticleClaim:
    """One article that a worker has leased; `text_hash` is '' until it was stored once."""

    row_id: int
    attempt: int
    owner: str
    url: str
    url_canon: str
    url_hash: str
    feed_url: str
    retries: int
    text_hash: str
    text_source: str = ""
    deferred_since: datetime | None = None


def claim_articles(
    engine: sa.Engine, owner: str, *, limit: int, lease_seconds: int, now: datetime
) -> list[ArticleClaim]:
    """Lease up to `limit` articles that are pending and due, or whose lease has expired.

    Of each source the newest come first, and no source gets more than its share while others wait.
    """
    is_due = _is_due(lease_seconds=lease_seconds, now=now)
    due = sa.select(RAW.c.row_id).where(is_due)
    newest = due.order_by(RAW.c.row_id.desc()).limit(limit)
    term = LeaseTerm(now, lease_seconds, owner)
    with engine.begin() as connection:
        rows = []
        for picked in (newest.where(RAW.c.row_id.in_(_fair_share(is_due, limit))), newest):
            rows = claim_rows(connection, _LEASES, picked, term=term, returning=_CLAIM_COLUMNS)
            # None, although some are due: other workers hold all that this one saw.
            if rows:
                break
        # The first column is the row_id.
        note_states(
            connection,
            [row[0] for row in rows],
            "processing",
            now=now,
            reason=f"claimed by {owner}",
        )
    claims = [ArticleClaim(*row) for row in rows]
    # UPDATE … RETURNING gives rows in no defined order; the newest articles come first.
    return sorted(claims, key=lambda claim: claim.row_id, reverse=True)


def _fair_share(is_due: sa.ColumnElement[bool], limit: int) -> sa.Select[tuple[int]]:
    """Return the row_ids of the next articles of all sources in turns, in rounds of a share."""
    place = sa.func.row_number().over(partition_by=RAW.c.source, order_by=RAW.c.row_id.desc())
    share = max(int(limit * _SHARE_PER_CLAIM), 1)
    ranked = sa.select(RAW.c.row_id, ((place - 1) // share).label("turn")).where(is_due).subquery()
    order = (ranked.c.turn, ranked.c.row_id.desc())
    return sa.select(ranked.c.row_id).order_by(*order).limit(limit)


def has_due_articles(engine: sa.Engine, *, lease_seconds: int, now: datetime) -> bool:
    """Return whether any article can be claimed now."""
    is_due = _is_due(lease_seconds=lease_seconds, now=now)
    with read_transaction(engine) as connection:
        return (
            connection.execute(sa.select(RAW.c.row_id).where(is_due).limit(1)).first() is not None
        )


def renew_claims(engine: sa.Engine, claims: Iterable[ArticleClaim], *, now: datetime) -> None:
    """Restart the leases of these claims; a claim that another worker took over is not renewed."""
    with engine.begin() as connection:
        for claim in claims:
            # The table stores the start of a lease, so the length does not matter here.
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
