"""The Feeds table: who is registered, who is due, what the last poll told."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, LeaseTerm, claim_rows, is_expired
from news_platform.web.urls import canonical_url

FeedStatus = Literal["active", "dead", "gone", "rejected", "paused"]
# Asked by the poller: the others were refused, retired, or put aside by a person.
POLLED = ("active", "dead")
_OURS = re.compile(r"\s*\[([^\[\]]*)\]\s*\Z")
_NO_BRACKETS = str.maketrans("[]", "()")
_LEASES = LeaseTable(key=FEEDS.c.feed_url_canon, time=FEEDS.c.claimed_until)


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A feed to poll, as the ledger knows it."""

    feed_url: str
    feed_url_canon: str
    status: str
    last_entry_date: datetime | None
    etag: str
    last_modified: str
    title: str
    interval_seconds: int
    errors_in_row: int
    body_hash: str


_ROW_COLUMNS = tuple(FEEDS.c[name] for name in FeedRow.__slots__)


def claim_feeds(
    engine: sa.Engine, *, limit: int, lease_seconds: int, now: datetime, only_due: bool
) -> list[FeedRow]:
    """Take feeds to poll, the longest waiting first; a poller that dies gives them back in time.

    With `only_due` False every healthy feed not yet polled at `now` is taken, unless held.
    """
    is_due = sa.or_(FEEDS.c.next_poll_at.is_(None), FEEDS.c.next_poll_at <= now)
    if not only_due:
        is_due = sa.or_(is_due, _is_idle(now))
    due = sa.select(FEEDS.c.feed_url_canon).where(FEEDS.c.status.in_(POLLED), is_due)
    picked = due.order_by(FEEDS.c.next_poll_at).limit(limit)
    term = LeaseTerm(now, lease_seconds)
    # The lease is also the next poll: a claimed feed is not due before it expires.
    values = {"next_poll_at": term.end}
    with engine.begin() as connection:
        rows = claim_rows(
            connection, _LEASES, picked, term=term, returning=_ROW_COLUMNS, values=values
        )
    return [FeedRow(*row) for row in rows]


def _is_idle(now: datetime) -> sa.ColumnElement[bool]:
    """A failing feed is never hurried: it may have asked us to stay away."""
    return sa.and_(
        FEEDS.c.status == "active",
        FEEDS.c.errors_in_row == 0,
        sa.or_(FEEDS.c.last_crawled.is_(None), FEEDS.c.last_crawled < now),
        is_expired(_LEASES, now=now),
    )


def read_feed(engine: sa.Engine, feed_url_canon: str) -> sa.Row[Any] | None:
    """Return the whole row of a feed, or None."""
    with read_transaction(engine) as connection:
        chosen = sa.select(FEEDS).where(FEEDS.c.feed_url_canon == feed_url_canon)
        return connection.execute(chosen).one_or_none()


def upsert_feed(
    transaction: LedgerTransaction, feed_url_canon: str, *, remark: str | None = None, **values: Any
) -> bool:
    """Add the feed or change the named columns; True when it is new.

    A `remark` goes into the notes beside what a person wrote there.
    """
    if remark is not None:
        notes = _read_notes(transaction, [feed_url_canon]).get(feed_url_canon, "")
        values["notes"] = with_remark(notes, remark)
    where = FEEDS.c.feed_url_canon == feed_url_canon
    changed = transaction.connection.execute(
        sa.update(FEEDS)
        .where(where)
        .values(changed_seq=transaction.seq, **values)
        .returning(FEEDS.c.feed_url_canon)
    )
    if changed.one_or_none() is not None:
        return False
    transaction.connection.execute(
        sa.insert(FEEDS).values(
            feed_url_canon=feed_url_canon, changed_seq=transaction.seq, **values
        )
    )
    return True


def update_feeds(
    transaction: LedgerTransaction, rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    """Change many feeds at once; those with the same columns share one statement.

    A `remark` among the values goes into the notes beside what a person wrote there, and a feed
    that a person paused meanwhile stays paused.
    """
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for key, values in _with_notes(transaction, rows):
        row = {f"new_{name}": value for name, value in values.items()}
        by_columns.setdefault(tuple(values), []).append({"key": key, **row})
    for columns, same in by_columns.items():
        values = {name: _new_value(name) for name in columns}
        statement = sa.update(FEEDS).where(FEEDS.c.feed_url_canon == sa.bindparam("key"))
        transaction.connection.execute(
            statement.values(changed_seq=transaction.seq, **values), same
        )


def _with_notes(
    transaction: LedgerTransaction, rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[tuple[str, dict[str, Any]]]:
    notes = _read_notes(transaction, [key for key, values in rows if "remark" in values])
    told = []
    for key, values in rows:
        columns = dict(values)
        if "remark" in columns:
            columns["notes"] = with_remark(notes.get(key, ""), columns.pop("remark"))
        told.append((key, columns))
    return told


def _read_notes(transaction: LedgerTransaction, keys: Sequence[str]) -> dict[str, str]:
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.notes)
    found = transaction.connection.execute(chosen.where(FEEDS.c.feed_url_canon.in_(keys)))
    return {key: notes for key, notes in found}


def _new_value(name: str) -> sa.ColumnElement[Any]:
    value = sa.bindparam(f"new_{name}", type_=FEEDS.c[name].type)
    if name != "status":
        return value
    return sa.case((FEEDS.c.status == "paused", "paused"), else_=value)


def known_feeds(engine: sa.Engine, *, checked_after: datetime) -> set[str]:
    """Return the feeds that need no new look: polled ones, and refused ones looked at lately."""
    with read_transaction(engine) as connection:
        chosen = sa.select(FEEDS.c.feed_url_canon).where(
            sa.or_(FEEDS.c.status != "rejected", FEEDS.c.checked_at > checked_after)
        )
        return set(connection.execute(chosen).scalars())


def unknown_feeds(engine: sa.Engine, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that the ledger has never seen."""
    with read_transaction(engine) as connection:
        known = set(connection.execute(sa.select(FEEDS.c.feed_url_canon)).scalars())
    return [url for url in candidates if canonical_url(url) not in known]


def has_due_feeds(engine: sa.Engine, *, now: datetime) -> bool:
    """Tell whether a poll would ask any feed."""
    due = sa.or_(FEEDS.c.next_poll_at.is_(None), FEEDS.c.next_poll_at <= now)
    chosen = sa.select(FEEDS.c.feed_url_canon).where(FEEDS.c.status.in_(POLLED), due).limit(1)
    with read_transaction(engine) as connection:
        return connection.execute(chosen).one_or_none() is not None


def move_feed(
    transaction: LedgerTransaction,
    old: FeedRow,
    *,
    feed_url: str,
    feed_url_canon: str,
    now: datetime,
) -> None:
    """Give a feed its new address, unless another row has it; the old one is retired, not lost."""
    where = FEEDS.c.feed_url_canon == old.feed_url_canon
    taken = sa.select(FEEDS.c.feed_url_canon).where(FEEDS.c.feed_url_canon == feed_url_canon)
    if transaction.connection.execute(taken).one_or_none() is None:
        transaction.connection.execute(
            sa.update(FEEDS)
            .where(where)
            .values(feed_url=feed_url, feed_url_canon=feed_url_canon, changed_seq=transaction.seq)
        )
    upsert_feed(
        transaction,
        old.feed_url_canon,
        feed_url=old.feed_url,
        status="gone",
        health_score=0,
        remark=f"moved to {feed_url_canon}",
        checked_at=now,
    )


def feed_urls(engine: sa.Engine, *, statuses: Iterable[str] = POLLED) -> list[tuple[str, str]]:
    """Return URL and title of the feeds with these statuses, sorted by URL."""
    with read_transaction(engine) as connection:
        chosen = (
            sa.select(FEEDS.c.feed_url, FEEDS.c.title)
            .where(FEEDS.c.status.in_(tuple(statuses)))
            .order_by(FEEDS.c.feed_url)
        )
        return [(url, title) for url, title in connection.execute(chosen)]


def with_remark(notes: str, remark: str) -> str:
    """Return the notes with this remark in place of our last one; '' takes it away."""
    theirs = _OURS.sub("", notes)
    return f"{theirs} [{remark.translate(_NO_BRACKETS)}]".strip() if remark else theirs.strip()


def remark_of(notes: str) -> str:
    """Return our own remark, or ''."""
    found = _OURS.search(notes)
    return found[1] if found else ""
