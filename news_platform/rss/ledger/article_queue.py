"""Lease pending articles to workers, close their claims, and keep every state that they had.

Each claim has a fencing number: what a worker found is written only while its claim holds the row.
The table of articles has the present state alone; each change is appended to `article_states` in
the transaction that makes it. The newest changes of an article are kept, and end with it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.isolation.boundary import boundary
from news_platform.rss.ledger.tables import (
    ALERT_MATCHES,
    ANALYSES,
    ARTICLE_STATES,
    ARTICLES_INDEX,
    FEED_ITEMS,
    LINKS,
    RAW,
    REVISIONS,
)
from news_platform.rss.ledger.transactions import LedgerTransaction, unnumbered_transaction
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import (
    LeaseTable,
    LeaseTerm,
    claim_rows,
    is_expired,
    is_held,
    renew,
)
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.web.urls import canonical_url, url_host

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
    RAW.c.title,
)
# Of one source; the newest of a long feed must not keep all other sites waiting.
_SHARE_PER_CLAIM = 0.2
# A page that fails for weeks is claimed and closed again and again.
MOST_STATES = 40
# An article that is claimed so often has many states; the oldest end now and then.
_TRIMMED_EVERY = 8
_LONGEST_REASON = 300
# A closed row belongs to no worker.
UNLOCKED: dict[str, Any] = {
    "lock_owner": "",
    "lock_at": None,
    "deferred_since": None,
    "fetch_again": False,
}
# The publisher changed the article: it is due at once, and all retries count anew.
DUE: dict[str, Any] = {"status": "pending", "next_try_at": None, "retries": 0}


OpenStatus = Literal["pending", "skipped", "error"]
"""The statuses of an article that has no text yet."""


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
    title: str = ""

    @property
    def link(self) -> str:
        """Return the canonical form of the feed's link; a redirect gives the row another URL."""
        return canonical_url(self.url)


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """How articles are claimed, fetched and stored."""

    pending_batch_size: int = 100
    lease_seconds: int = 600
    max_retries: int = 5
    # The wait after the first failure; it doubles with each further one, up to a day.
    retry_seconds: int = 600
    concurrency: int = 32
    robots_cache_seconds: int = 24 * 3600
    # An article is skipped whose robots.txt could not be read for this long.
    robots_patience_seconds: int = 7 * 24 * 3600
    extractors: int = 2
    # None means no limit: work until nothing is due.
    max_articles: int | None = None
    takedowns: Takedowns = NO_TAKEDOWNS
    # Called with the addresses of a page that turned out to be taken down.
    keep_alias: Callable[[Sequence[str]], object] = len


@dataclass(frozen=True, slots=True)
class WorkReport:
    """How many articles a worker claimed, and the number of articles by outcome."""

    claimed: int
    outcomes: Mapping[str, int]

    @property
    def stored(self) -> int:
        """Return how many articles were stored or revised."""
        return self.outcomes.get("stored", 0) + self.outcomes.get("revised", 0)

    @property
    def duplicates(self) -> int:
        """Return how many articles were duplicates, by URL or by text."""
        return sum(n for outcome, n in self.outcomes.items() if outcome.startswith("duplicate"))


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
        claims = [ArticleClaim(*row) for row in rows]
        ids = [claim.row_id for claim in claims]
        note_states(connection, ids, "processing", now=now, reason=f"claimed by {owner}")
    # UPDATE … RETURNING gives rows in no defined order; the newest articles come first.
    return sorted(claims, key=lambda claim: claim.row_id, reverse=True)


def _fair_share(is_due: sa.ColumnElement[bool], limit: int) -> sa.Select[tuple[int]]:
    """Return the row_ids of the next articles of all sources in turns, in rounds of a share."""
    place = sa.func.row_number().over(partition_by=RAW.c.source, order_by=RAW.c.row_id.desc())
    share = max(int(limit * _SHARE_PER_CLAIM), 1)
    ranked = sa.select(RAW.c.row_id, ((place - 1) // share).label("turn")).where(is_due).subquery()
    order = (ranked.c.turn, ranked.c.row_id.desc())
    return sa.select(ranked.c.row_id).order_by(*order).limit(limit)


def interleave_hosts(claims: Iterable[ArticleClaim]) -> list[ArticleClaim]:
    """Return the claims with their hosts taking turns.

    Requests to one host wait for each other; in turns, one host cannot stop all consumers.
    """
    by_host: dict[str, deque[ArticleClaim]] = {}
    for claim in claims:
        host = ""
        with boundary("article", claim.url_canon):
            host = url_host(claim.url_canon)
        by_host.setdefault(host, deque()).append(claim)
    turns = zip_longest(*by_host.values())
    return [claim for turn in turns for claim in turn if claim is not None]


def has_due_articles(engine: sa.Engine, *, lease_seconds: int, now: datetime) -> bool:
    """Return whether any article can be claimed now."""
    is_due = _is_due(lease_seconds=lease_seconds, now=now)
    chosen = sa.select(RAW.c.row_id).where(is_due).limit(1)
    with read_transaction(engine) as connection:
        return connection.execute(chosen).first() is not None


def renew_claims(engine: sa.Engine, claims: Iterable[ArticleClaim], *, now: datetime) -> None:
    """Restart the leases of these claims; a claim that another worker took over is not renewed."""
    with unnumbered_transaction(engine) as connection:
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


def note_states(
    connection: sa.Connection,
    row_ids: Iterable[int],
    status: str,
    *,
    now: datetime,
    reason: str = "",
) -> None:
    """Record that some articles have a new state from `now` on."""
    rows: list[Mapping[str, Any]] = [
        {"row_id": row_id, "status": status, "at": now, "reason": reason[:_LONGEST_REASON]}
        for row_id in row_ids
    ]
    if rows:
        connection.execute(sa.insert(ARTICLE_STATES), rows)


def close_article(
    transaction: LedgerTransaction,
    claim: ArticleClaim,
    status: OpenStatus,
    reason: str,
    *,
    now: datetime,
    **columns: Any,
) -> bool:
    """End a claim that gave no text; return False if another worker has taken the article over.

    An article that was stored before, and whose second fetch failed, stays stored; one that its
    publisher changed meanwhile is due again. `columns` are further columns, such as when to try
    again.
    """
    held = sa.select(RAW.c.fetch_again).where(held_by(claim)).with_for_update()
    fetch_again = transaction.connection.execute(held).scalar_one_or_none()
    if fetch_again is None:
        return False
    new = "stored" if claim.text_hash and status != "pending" else status
    values = {**UNLOCKED, "status": new, "error_msg": reason, **columns}
    if fetch_again:
        values |= DUE
    changed = sa.update(RAW).where(RAW.c.row_id == claim.row_id)
    transaction.connection.execute(changed.values(changed_seq=transaction.seq, **values))
    status_now = values["status"]
    note_states(transaction.connection, [claim.row_id], status_now, now=now, reason=reason)
    if claim.attempt % _TRIMMED_EVERY == 0:
        _trim_states(transaction.connection, claim.row_id)
    return True


def queue_duplicate(
    transaction: LedgerTransaction, row_id: int, url_hash: str, *, now: datetime, reason: str
) -> None:
    """Queue an article again that was only known as a duplicate by its text."""
    connection, seq = transaction.connection, transaction.seq
    index = ARTICLES_INDEX.c
    main = sa.select(index.row_id_raw).where(index.url_hash == url_hash).scalar_subquery()
    chosen = sa.select(RAW.c.row_id, RAW.c.aliases).where(RAW.c.row_id == main)
    for main_id, aliases in connection.execute(chosen).all():
        own = sa.select(RAW.c.article_url_canon, RAW.c.aliases).where(RAW.c.row_id == row_id)
        url, others = connection.execute(own).one()
        kept = tuple(alias for alias in aliases if alias not in (url, *others))
        changed = sa.update(RAW).where(RAW.c.row_id == main_id)
        connection.execute(changed.values(aliases=kept, changed_seq=seq))
    own_address = {"row_id_raw": row_id, "is_duplicate": False, "reason": "", "changed_seq": seq}
    changed = sa.update(ARTICLES_INDEX).where(index.url_hash == url_hash)
    connection.execute(changed.values(own_address))
    # The text that it may have is that of the other article, and does not count as its own.
    no_text = {"text_hash": "", "clean_text": "", "clean_text_len": 0}
    changed = sa.update(RAW).where(RAW.c.row_id == row_id)
    connection.execute(changed.values(**DUE, **no_text, processed_at=None, changed_seq=seq))
    note_states(connection, [row_id], "pending", now=now, reason=reason)


def forget_article(transaction: LedgerTransaction, claim: ArticleClaim) -> bool:
    """Delete a claimed article and all that refers to it; return False if the claim was lost."""
    held = sa.select(RAW.c.row_id).where(held_by(claim)).with_for_update()
    if transaction.connection.execute(held).one_or_none() is None:
        return False
    delete_articles(transaction, [claim.row_id])
    return True


def delete_articles(transaction: LedgerTransaction, row_ids: Sequence[int]) -> None:
    """Delete rows of Raw with all that other tables have about them."""
    for table, column in (
        (REVISIONS, REVISIONS.c.row_id),
        (LINKS, LINKS.c.row_id),
        (FEED_ITEMS, FEED_ITEMS.c.row_id),
        (ARTICLE_STATES, ARTICLE_STATES.c.row_id),
        (ANALYSES, ANALYSES.c.row_id),
        (ALERT_MATCHES, ALERT_MATCHES.c.row_id),
        (ARTICLES_INDEX, ARTICLES_INDEX.c.row_id_raw),
        (RAW, RAW.c.row_id),
    ):
        transaction.connection.execute(sa.delete(table).where(column.in_(row_ids)))


def _trim_states(connection: sa.Connection, row_id: int) -> None:
    """Delete the oldest states of an article above the limit."""
    newest = sa.select(ARTICLE_STATES.c.id).where(ARTICLE_STATES.c.row_id == row_id)
    first_kept = (
        newest.order_by(ARTICLE_STATES.c.id.desc()).offset(MOST_STATES - 1).limit(1)
    ).scalar_subquery()
    connection.execute(
        sa.delete(ARTICLE_STATES).where(
            ARTICLE_STATES.c.row_id == row_id, ARTICLE_STATES.c.id < first_kept
        )
    )


def read_states(connection: sa.Connection, row_id: int) -> list[sa.Row[Any]]:
    """Return the states of an article, oldest first."""
    chosen = sa.select(ARTICLE_STATES).where(ARTICLE_STATES.c.row_id == row_id)
    return list(connection.execute(chosen.order_by(ARTICLE_STATES.c.id)))
