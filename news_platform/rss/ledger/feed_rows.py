"""Read and write the Feeds table: register feeds, claim due ones, record what a poll found."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.feed_settings import FeedSettings, parse_settings
from news_platform.rss.ledger.tables import FEED_ALARMS, FEED_ITEMS, FEED_POLLS, FEEDS, RAW
from news_platform.rss.ledger.transactions import LedgerTransaction
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, LeaseTerm, claim_rows, is_expired
from news_platform.web.urls import canonical_url, registrable_domain

FeedStatus = Literal["active", "dead", "gone", "rejected", "unreachable", "paused", "retired"]
# Statuses that are polled; the others were not accepted, or were paused or retired by a person.
POLLED = ("active", "dead")
# Discovery did not accept these; it looks at them again after a while.
NOT_ACCEPTED = ("rejected", "unreachable")
# Statuses that only a person sets and ends.
BY_PERSON = ("paused", "retired")
# What a person sets who wants a feed to be polled again, at once.
RESUMED: Mapping[str, Any] = {
    "status": "active",
    "verdict": "active",
    "next_poll_at": None,
    "errors_in_row": 0,
}
# The URL is a key, and PostgreSQL's indexes hold keys of up to 2,700 bytes.
MAX_FEED_URL = 2_000
# The notes of a feed are what a person wrote, then our remark in brackets: `ask Ann [stale]`.
_REMARK = re.compile(r"\s*\[([^\[\]]*)\]\s*\Z")
# A remark must not contain the brackets that mark its end.
_NO_BRACKETS = str.maketrans("[]", "()")
_MOVED_TO = "moved to "
_MOST_DUE = 1_000
_LEASES = LeaseTable(key=FEEDS.c.feed_url_canon, time=FEEDS.c.claimed_until)


@dataclass(frozen=True, slots=True)
class FeedRow:
    """The columns of a feed that a poll needs."""

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
    own_settings: str = ""
    failing_since: datetime | None = None
    may_miss_items: bool = False
    turned_over_at: datetime | None = None
    skipped_items: int = 0


_ROW_COLUMNS = tuple(FEEDS.c[name] for name in FeedRow.__slots__)


def claim_feeds(
    engine: sa.Engine, *, limit: int, lease_seconds: int, now: datetime, only_due: bool
) -> list[FeedRow]:
    """Lease up to `limit` feeds that are due, the longest waiting first.

    With `only_due` False, also lease healthy feeds that no other poller holds and that were not
    polled at `now` yet.
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
    """Return the condition for healthy feeds that may be polled early.

    Failing feeds are excluded, because they may have asked us to wait.
    """
    return sa.and_(
        FEEDS.c.status == "active",
        FEEDS.c.errors_in_row == 0,
        sa.or_(FEEDS.c.last_crawled.is_(None), FEEDS.c.last_crawled < now),
        is_expired(_LEASES, now=now),
    )


def read_feed(engine: sa.Engine, feed_url_canon: str) -> sa.Row[Any] | None:
    """Return all columns of a feed, or None."""
    with read_transaction(engine) as connection:
        chosen = sa.select(FEEDS).where(FEEDS.c.feed_url_canon == feed_url_canon)
        return connection.execute(chosen).one_or_none()


def in_group(group: str) -> sa.ColumnElement[bool]:
    """Return the condition for feeds in a group or in one below it."""
    below = FEEDS.c.feed_group.startswith(f"{group}/", autoescape=True)
    return sa.or_(FEEDS.c.feed_group == group, below)


def all_groups(named: Iterable[str]) -> set[str]:
    """Return the groups that feeds name, with those above them: `Europe` for `Europe/Spain`."""
    parts = (group.split("/") for group in named if group)
    return {"/".join(it[: depth + 1]) for it in parts for depth in range(len(it))}


def read_own_settings(engine: sa.Engine) -> dict[str, FeedSettings]:
    """Return the feeds that have settings of their own; unreadable settings are left out."""
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.own_settings)
    with read_transaction(engine) as connection:
        rows = connection.execute(chosen.where(FEEDS.c.own_settings != "")).all()
    found = {}
    for feed_url, text in rows:
        # The poll of the feed tells what is wrong with its settings.
        with suppress(InputError):
            found[feed_url] = parse_settings(text)
    return found


def upsert_feed(
    transaction: LedgerTransaction, feed_url_canon: str, *, remark: str | None = None, **values: Any
) -> bool:
    """Insert the feed or update the given columns; return True if it is new.

    A `remark` is added to the notes and keeps what a person wrote there.
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
    """Update many feeds, with one statement for all feeds that change the same columns.

    A `remark` among the values is added to the notes and keeps what a person wrote there. A feed
    that a person paused in the meantime stays paused.
    """
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for key, values in _with_notes(transaction, rows):
        # SQLAlchemy does not allow a bind parameter with the name of an updated column.
        row = {f"new_{name}": value for name, value in values.items()}
        row |= {"key": key, "new_changed_seq": transaction.seq}
        by_columns.setdefault(tuple(values), []).append(row)
    for columns, same in by_columns.items():
        transaction.connection.execute(_update_of(columns), same)


# There are about ten sets of columns, and building a statement takes longer than executing it.
@lru_cache(maxsize=64)
def _update_of(columns: tuple[str, ...]) -> sa.Update:
    """Return the statement that sets these columns, and the number of the change, by key."""
    statement = sa.update(FEEDS).where(FEEDS.c.feed_url_canon == sa.bindparam("key"))
    return statement.values({name: _new_value(name) for name in (*columns, "changed_seq")})


def _with_notes(
    transaction: LedgerTransaction, rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[tuple[str, dict[str, Any]]]:
    # Read in the same transaction: a person may have edited the notes since the claim.
    notes = _read_notes(transaction, [key for key, values in rows if "remark" in values])
    updates = []
    for key, values in rows:
        columns = dict(values)
        if "remark" in columns:
            columns["notes"] = with_remark(notes.get(key, ""), columns.pop("remark"))
        updates.append((key, columns))
    return updates


def _read_notes(transaction: LedgerTransaction, keys: Sequence[str]) -> dict[str, str]:
    if not keys:
        return {}
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.notes)
    found = transaction.connection.execute(chosen.where(FEEDS.c.feed_url_canon.in_(keys)))
    return {key: notes for key, notes in found}


def _new_value(name: str) -> sa.ColumnElement[Any]:
    value = sa.bindparam(f"new_{name}", type_=FEEDS.c[name].type)
    if name != "status":
        return value
    # A person may have paused or retired the feed while it was being polled. Not one IN: a list of
    # values cannot be sent for many rows at once.
    kept = ((FEEDS.c.status == status, status) for status in BY_PERSON)
    return sa.case(*kept, else_=value)


def known_feeds(engine: sa.Engine, *, now: datetime) -> set[str]:
    """Return the feeds that discovery skips: all but those that are to be checked again."""
    with read_transaction(engine) as connection:
        chosen = sa.select(FEEDS.c.feed_url_canon).where(
            sa.or_(FEEDS.c.status.not_in(NOT_ACCEPTED), FEEDS.c.next_check_at > now)
        )
        return set(connection.execute(chosen).scalars())


def feeds_to_check(engine: sa.Engine, *, now: datetime, limit: int = 2_000) -> list[str]:
    """Return the URLs of feeds that were not accepted and are to be checked again by now."""
    chosen = (
        sa.select(FEEDS.c.feed_url)
        .where(FEEDS.c.status.in_(NOT_ACCEPTED), FEEDS.c.next_check_at <= now)
        .order_by(FEEDS.c.next_check_at, FEEDS.c.feed_url_canon)
    )
    with read_transaction(engine) as connection:
        return list(connection.execute(chosen.limit(limit)).scalars())


def unknown_feeds(engine: sa.Engine, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that are not in the Feeds table."""
    with read_transaction(engine) as connection:
        known = set(connection.execute(sa.select(FEEDS.c.feed_url_canon)).scalars())
    return [url for url in candidates if canonical_url(url) not in known]


def has_due_feeds(engine: sa.Engine, *, now: datetime) -> bool:
    """Return whether a poll is due: a feed has waited for others for a sixth of its interval.

    Hundreds of feeds of few hours become due one by one, all day long: they are polled together.
    """
    due = sa.or_(FEEDS.c.next_poll_at.is_(None), FEEDS.c.next_poll_at <= now)
    chosen = (
        sa.select(FEEDS.c.next_poll_at, FEEDS.c.interval_seconds)
        .where(FEEDS.c.status.in_(POLLED), due)
        .order_by(FEEDS.c.next_poll_at)
        .limit(_MOST_DUE)
    )
    with read_transaction(engine) as connection:
        found = connection.execute(chosen).all()
    # Far more than wait for each other: a backlog.
    if len(found) == _MOST_DUE:
        return True
    return any(at is None or now >= at + timedelta(seconds=(wait or 0) / 6) for at, wait in found)


def all_addresses(connection: sa.Connection, urls: Iterable[str]) -> frozenset[str]:
    """Return the canonical URLs of feeds, with those that they moved from and to."""
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.notes).where(FEEDS.c.status == "gone")
    moves = [
        {old, remark_of(notes).removeprefix(_MOVED_TO).partition(", ")[0]}
        for old, notes in connection.execute(chosen)
        if remark_of(notes).startswith(_MOVED_TO)
    ]
    found = {address for url in urls for address in (url, canonical_url(url))}
    while more := set().union(*(move for move in moves if move & found)) - found:
        found |= more
    return frozenset(found)


def move_feed(
    transaction: LedgerTransaction,
    old: FeedRow,
    *,
    feed_url: str,
    feed_url_canon: str,
    now: datetime,
) -> None:
    """Move a feed with its history to its new URL, and keep the old URL as `gone`.

    If the new URL is polled already, the two feeds are one, and that row is kept. So is one that a
    person paused or retired. Any other row there was given up on and is replaced: the feed answers
    at this URL now.
    """
    connection = transaction.connection
    where = FEEDS.c.feed_url_canon == old.feed_url_canon
    there = FEEDS.c.feed_url_canon == feed_url_canon
    status = connection.execute(sa.select(FEEDS.c.status).where(there)).scalar_one_or_none()
    if status not in (*POLLED, *BY_PERSON):
        connection.execute(sa.delete(FEEDS).where(there))
        values = {"feed_url": feed_url, "feed_url_canon": feed_url_canon}
        moved = sa.update(FEEDS).where(where).values(changed_seq=transaction.seq, **values)
        connection.execute(moved)
        _move_history(connection, old.feed_url_canon, feed_url_canon)
    note = f", which is {status}" if status in BY_PERSON else ""
    upsert_feed(
        transaction,
        old.feed_url_canon,
        feed_url=old.feed_url,
        status="gone",
        health_score=0,
        remark=f"{_MOVED_TO}{feed_url_canon}{note}",
        checked_at=now,
    )


def _move_history(connection: sa.Connection, old: str, new: str) -> None:
    """Give articles, items, polls and open alarms of a feed to its new URL: it is the same feed."""
    items = FEED_ITEMS.c
    taken = sa.select(items.row_id).where(items.feed_url == new)
    mine = (items.feed_url == old, items.row_id.not_in(taken))
    connection.execute(sa.update(FEED_ITEMS).where(*mine).values(feed_url=new))
    # Their content is the same, so that copies of the ledger need not read them again.
    connection.execute(sa.update(RAW).where(RAW.c.feed_url == old).values(feed_url=new))
    polls = sa.update(FEED_POLLS).where(FEED_POLLS.c.feed_url == old)
    connection.execute(polls.values(feed_url=new))
    alarms = FEED_ALARMS.c
    is_open = alarms.healed_at.is_(None)
    known = sa.select(alarms.kind).where(alarms.thing == new, is_open).scalar_subquery()
    open_ones = (alarms.thing == old, is_open, alarms.kind.not_in(known))
    connection.execute(sa.update(FEED_ALARMS).where(*open_ones).values(thing=new))


def feed_urls(engine: sa.Engine, *, statuses: Iterable[str] = POLLED) -> list[tuple[str, str]]:
    """Return the URL and title of the feeds with these statuses, sorted by URL."""
    with read_transaction(engine) as connection:
        chosen = (
            sa.select(FEEDS.c.feed_url, FEEDS.c.title)
            .where(FEEDS.c.status.in_(tuple(statuses)))
            .order_by(FEEDS.c.feed_url)
        )
        return [(url, title) for url, title in connection.execute(chosen)]


def domains_with_feeds(engine: sa.Engine) -> frozenset[str]:
    """Return the domains whose feeds are polled: their articles need no sitemap."""
    return frozenset(registrable_domain(url) for url, _ in feed_urls(engine))


def with_remark(notes: str, remark: str) -> str:
    """Return the notes with our last remark replaced by this one, or removed if this one is ''."""
    by_person = _REMARK.sub("", notes)
    if not remark:
        return by_person.strip()
    return f"{by_person} [{remark.translate(_NO_BRACKETS)}]".strip()


def remark_of(notes: str) -> str:
    """Return our remark of the notes, or ''."""
    found = _REMARK.search(notes)
    return found[1] if found else ""
