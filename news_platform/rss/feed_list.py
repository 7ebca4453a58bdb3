"""Bring the Feeds table in line with the list in `feeds.opml`: groups, and feeds that were removed.

The origin of a listed feed is `opml URL`, with the URL as the file has it: the feed may have moved
since, or the file may name its site.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.isolation.boundary import boundary
from news_platform.rss.discovery import ACTIVE, UNLISTED, CheckedFeed
from news_platform.rss.ledger.feed_rows import POLLED, upsert_feed
from news_platform.rss.ledger.tables import CONFIG, FEEDS
from news_platform.rss.ledger.transactions import (
    LedgerTransaction,
    note_metrics,
    write_config,
    write_transaction,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values
from news_platform.web.opml import OpmlFeed, opml_entries, xml_damage
from news_platform.web.urls import canonical_url

OPML = "opml"
OPML_FILE = "feeds.opml"
CRAWL_FOLDER = "news/feed_candidates"
# Crawled pages link to tens of thousands of feeds; those on the most pages come first.
_MAX_FROM_CRAWL = 2_000
_REMARK = "removed from feeds.opml"
# The Config key that says why the list retired nothing; '' if it is followed.
LISTING_PROBLEM = "feeds.opml problem"
# A list that leaves out a larger share of its feeds was probably cut, or is another list.
_MAX_RETIRED_SHARE = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FeedListing:
    """The feeds of a file, and what is wrong with its XML, if anything."""

    feeds: tuple[OpmlFeed, ...] = ()
    damage: str = ""


@dataclass(frozen=True, slots=True)
class ListingReport:
    """The feeds that the list retired, and those that it brought back."""

    retired: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


def apply_listing(
    engine: sa.Engine,
    listed: FeedListing,
    checked: Iterable[CheckedFeed],
    *,
    now: datetime,
) -> ListingReport:
    """Set origin and group of listed feeds, retire those that the list named before and not now.

    A damaged list and one that leaves out more than a fifth of its feeds retire none: an alarm asks
    a person to mend the file, or to confirm it. `checked` tells which feed a listed site leads to.
    """
    groups = {_canonical(feed.url): feed.group for feed in listed.feeds}
    leads_to = {_canonical(one.candidate_url): _canonical(one.feed_url) for one in checked}
    with write_transaction(engine) as transaction:
        for url, group in groups.items():
            _mark_listed(transaction, url, leads_to.get(url, url), group)
        restored = _restore(transaction, list(groups), now=now)
        unlisted, others = _unlisted(transaction, set(groups))
        problem = _problem(listed.damage, len(unlisted), len(unlisted) + others)
        retired = [] if problem else unlisted
        _retire(transaction, retired, now=now)
        _note_problem(transaction, problem, now=now)
        metrics = {"feeds_retired": len(retired), "feeds_restored": len(restored)}
        note_metrics(transaction, "discovery", metrics, now=now)
    if problem:
        _log.warning("the root's %r retires no feed: %s", OPML_FILE, problem)
    return ListingReport(tuple(retired), tuple(restored))


def retire_unlisted(engine: sa.Engine, urls: Iterable[str], *, now: datetime) -> tuple[str, ...]:
    """Retire the feeds of `feeds.opml` that are not among these URLs, however many they are."""
    with write_transaction(engine) as transaction:
        retired, _ = _unlisted(transaction, set(map(_canonical, urls)))
        _retire(transaction, retired, now=now)
        _note_problem(transaction, "", now=now)
        note_metrics(transaction, "discovery", {"feeds_retired": len(retired)}, now=now)
    return tuple(retired)


def _note_problem(transaction: LedgerTransaction, problem: str, *, now: datetime) -> None:
    known = sa.select(CONFIG.c.key).where(CONFIG.c.key == LISTING_PROBLEM)
    if problem or transaction.connection.execute(known).first() is not None:
        write_config(transaction, LISTING_PROBLEM, problem, now=now)


def _problem(damage: str, unlisted: int, known: int) -> str:
    """Return why a list may not retire the feeds that it leaves out; '' if it may."""
    cure = f"mend it, or confirm it by `feeds import {OPML_FILE} --retire`"
    if damage and unlisted:
        return (
            f"it has {damage}, and {unlisted} of its {known} feeds are not in what is left; {cure}"
        )
    if unlisted > _MAX_RETIRED_SHARE * known:
        return f"it no longer names {unlisted} of its {known} feeds; {cure}"
    return ""


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


def _unlisted(transaction: LedgerTransaction, urls: set[str]) -> tuple[list[str], int]:
    """Return the feeds in use that the list named before and not now, and how many it still names.

    A feed that has moved counts by the URL that the file has for it.
    """
    chosen = sa.select(FEEDS.c.feed_url_canon, FEEDS.c.origin).where(
        FEEDS.c.origin.like(f"{OPML} %"),
        FEEDS.c.status.in_((*POLLED, "rejected", "unreachable")),
    )
    rows = transaction.connection.execute(chosen.order_by(FEEDS.c.feed_url_canon)).all()
    found = [row for row in rows if row.origin.removeprefix(f"{OPML} ") not in urls]
    return [row.feed_url_canon for row in found], len(rows) - len(found)


def _retire(transaction: LedgerTransaction, feed_urls: Iterable[str], *, now: datetime) -> None:
    for feed_url in feed_urls:
        values = {"status": "retired", "verdict": UNLISTED, "checked_at": now}
        upsert_feed(transaction, feed_url, remark=_REMARK, **values)


def candidate_feeds(store: ObjectStore, *, days: int = 7) -> tuple[str, ...]:
    """Return the feeds of the root's `feeds.opml`, then those of the newest crawled days."""
    return tuple(
        dict.fromkeys(
            (*(feed.url for feed in listed_feeds(store).feeds), *_crawled(store, days=days))
        )
    )


def listed_feeds(store: ObjectStore) -> FeedListing:
    """Return the feeds of the root's `feeds.opml`; none if there is no such file."""
    if not store.exists(OPML_FILE):
        return FeedListing()
    body = store.read(OPML_FILE)
    try:
        found = opml_entries(body)
    except InputError as error:
        raise InputError(
            f"cannot read the root's {OPML_FILE!r}: {error}", thing=OPML_FILE
        ) from error
    if damage := xml_damage(body):
        _log.warning("the root's %r has %s; %s feeds are read", OPML_FILE, damage, len(found))
    elif not found:
        _log.warning("the root's %r lists no feeds: expected <outline xmlUrl=…>", OPML_FILE)
    return FeedListing(found, str(damage or ""))


def _crawled(store: ObjectStore, *, days: int) -> list[str]:
    frames = [_read(store, path) for path in _newest_files(store, days=days)]
    if not frames:
        return []
    counted = (
        pl.concat(frames)
        .group_by("feed_url")
        .agg(pl.col("pages").sum())
        # The URL breaks ties, so that the same files give the same candidates.
        .sort(["pages", "feed_url"], descending=[True, False])
    )
    return counted["feed_url"].head(_MAX_FROM_CRAWL).to_list()


def _newest_files(store: ObjectStore, *, days: int) -> Iterator[str]:
    by_day: dict[tuple[str, ...], list[str]] = {}
    for info in store.list(CRAWL_FOLDER):
        if info.path.endswith(".parquet"):
            values = path_values(info.path)
            day = tuple(values.get(part, "") for part in ("year", "month", "day"))
            by_day.setdefault(day, []).append(info.path)
    for day in sorted(by_day, reverse=True)[:days]:
        yield from by_day[day]


def _read(store: ObjectStore, path: str) -> pl.DataFrame:
    return pl.read_parquet(store.read(path), columns=["feed_url", "pages"])
