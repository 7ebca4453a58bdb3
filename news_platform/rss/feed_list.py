"""Bring the Feeds table in line with the list in `feeds.opml`: groups, and feeds that were removed.

The origin of a listed feed is `opml URL`, with the URL as the file has it: the feed may have moved
since, or the file may name its site.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.isolation.boundary import boundary
from news_platform.rss.discovery.discover import FeedVerdict
from news_platform.rss.discovery.verdicts import ACTIVE, UNLISTED
from news_platform.rss.ledger.feed_rows import POLLED, upsert_feed
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.web.opml import OpmlFeed
from news_platform.web.urls import canonical_url

OPML = "opml"
_REMARK = "removed from feeds.opml"


@dataclass(frozen=True, slots=True)
class ListingReport:
    """The feeds that the list retired, and those that it brought back."""

    retired: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


def apply_listing(
    engine: sa.Engine,
    listed: Sequence[OpmlFeed],
    verdicts: Iterable[FeedVerdict],
    *,
    now: datetime,
) -> ListingReport:
    """Set origin and group of listed feeds, retire those that the list named before and not now.

    An empty list changes nothing: the file may be missing or damaged. `verdicts` tell which feed a
    listed site leads to.
    """
    if not listed:
        return ListingReport()
    groups = {_canonical(feed.url): feed.group for feed in listed}
    leads_to = {_canonical(one.candidate_url): _canonical(one.feed_url) for one in verdicts}
    with write_transaction(engine) as transaction:
        for url, group in groups.items():
            _mark_listed(transaction, url, leads_to.get(url, url), group)
        restored = _restore(transaction, list(groups), now=now)
        retired = _retire_others(transaction, set(groups), now=now)
        metrics = {"feeds_retired": len(retired), "feeds_restored": len(restored)}
        note_metrics(transaction, "discovery", metrics, now=now)
    return ListingReport(tuple(retired), tuple(restored))


def _canonical(url: str) -> str:
    with boundary("candidate", url):
        return canonical_url(url)
    return url


def origin_of(url: str) -> str:
    """Return the origin of a feed that the file lists under this canonical URL."""
    return f"{OPML} {url}"


def _mark_listed(transaction: LedgerTransaction, url: str, feed_url: str, group: str) -> None:
    feeds = FEEDS.c
    is_same = sa.or_(feeds.feed_url_canon == feed_url, feeds.origin == origin_of(url))
    differs = sa.or_(feeds.origin != origin_of(url), feeds.feed_group != group)
    transaction.connection.execute(
        sa.update(FEEDS)
        .where(is_same, differs)
        .values(origin=origin_of(url), feed_group=group, changed_seq=transaction.seq)
    )


def _restore(transaction: LedgerTransaction, urls: list[str], *, now: datetime) -> list[str]:
    """Poll again what the list had retired and names again; not what a person retired.

    A feed that discovery had not accepted is not polled, but checked again at the next run.
    """
    wanted = {origin_of(url) for url in urls}
    found = [row for row in _retired(transaction) if row.origin in wanted]
    accepted: dict[str, Any] = {
        "status": "active",
        "verdict": ACTIVE,
        "next_poll_at": None,
        "remark": "",
    }
    unchecked: dict[str, Any] = {
        "status": "rejected",
        "verdict": "",
        "next_check_at": now,
        "remark": "listed again, not checked yet",
    }
    for row in found:
        values = accepted if row.next_check_at is None else unchecked
        upsert_feed(transaction, row.feed_url_canon, checked_at=now, **values)
    return [row.feed_url_canon for row in found]


def _retired(transaction: LedgerTransaction) -> Sequence[Any]:
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.origin, FEEDS.c.next_check_at).where(
        FEEDS.c.status == "retired", FEEDS.c.verdict == UNLISTED
    )
    return transaction.connection.execute(chosen).all()


def _retire_others(transaction: LedgerTransaction, urls: set[str], *, now: datetime) -> list[str]:
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.origin).where(
        FEEDS.c.origin.like(f"{OPML} %"),
        FEEDS.c.status.in_((*POLLED, "rejected", "unreachable")),
    )
    found = [
        row.feed_url_canon
        for row in transaction.connection.execute(chosen.order_by(FEEDS.c.feed_url_canon))
        if row.origin.removeprefix(f"{OPML} ") not in urls
    ]
    for feed_url in found:
        values = {"status": "retired", "verdict": UNLISTED, "checked_at": now}
        upsert_feed(transaction, feed_url, remark=_REMARK, **values)
    return found
