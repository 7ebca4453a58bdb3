"""Feed entries into the ledger: a new URL becomes a pending row, a known one is seen again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.tables import ARTICLES_INDEX, RAW
from news_platform.rss.ledger.transactions import LedgerTransaction
from news_platform.web.urls import canonical_url, registrable_domain, url_hash

# SQLite takes 32,766 parameters a statement, older ones 999.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Sighting:
    """An article as a feed shows it."""

    url: str
    url_canon: str
    url_hash: str
    title: str
    published_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a feed's entries; `left` are new ones that wait for the next poll."""

    new: int = 0
    known: int = 0
    left: int = 0


def sightings(entries: Sequence[FeedEntry]) -> list[Sighting]:
    """Return the entries that link somewhere, each URL once, newest first where dates tell."""
    found: dict[str, Sighting] = {}
    for entry in entries:
        canonical = canonical_url(entry.link) if entry.link else ""
        if canonical.startswith(("http://", "https://")):
            key = url_hash(canonical)
            found.setdefault(
                key,
                Sighting(
                    url=entry.link,
                    url_canon=canonical,
                    url_hash=key,
                    title=entry.title,
                    published_at=entry.published_at,
                    updated_at=entry.updated_at,
                ),
            )
    # A stable sort: entries without a date keep their place behind the dated ones.
    return sorted(found.values(), key=_age)


def add_sightings(
    transaction: LedgerTransaction,
    feed_url: str,
    seen: Sequence[Sighting],
    *,
    max_new: int,
    now: datetime,
) -> Added:
    """Add at most `max_new` new articles of a feed, and mark all known ones as seen."""
    known = _known_rows(transaction.connection, [sighting.url_hash for sighting in seen])
    new = [sighting for sighting in seen if sighting.url_hash not in known]
    taken = new[:max_new]
    if taken:
        _insert(transaction, feed_url, taken, now=now)
    _see_again(transaction, feed_url, [s for s in seen if s.url_hash in known], known, now=now)
    return Added(new=len(taken), known=len(known), left=len(new) - len(taken))


def with_text(values: Sequence[str], added: str) -> tuple[str, ...]:
    """Return the list with one more text, if it is not there already."""
    return tuple(values) if added in values or not added else (*values, added)


def _age(sighting: Sighting) -> float:
    return -sighting.published_at.timestamp() if sighting.published_at else 0.0


def _known_rows(connection: sa.Connection, hashes: Sequence[str]) -> dict[str, int]:
    """Return the Raw row of every hash that the index knows."""
    known: dict[str, int] = {}
    for start in range(0, len(hashes), _CHUNK):
        chosen = sa.select(ARTICLES_INDEX.c.url_hash, ARTICLES_INDEX.c.row_id_raw).where(
            ARTICLES_INDEX.c.url_hash.in_(hashes[start : start + _CHUNK])
        )
        known.update((key, row_id) for key, row_id in connection.execute(chosen))
    return known


def _insert(
    transaction: LedgerTransaction, feed_url: str, taken: Sequence[Sighting], *, now: datetime
) -> None:
    rows = [_raw_row(transaction, feed_url, sighting, now=now) for sighting in taken]
    inserted = transaction.connection.execute(
        sa.insert(RAW).returning(RAW.c.row_id, RAW.c.url_hash, sort_by_parameter_order=True), rows
    )
    ids = {key: row_id for row_id, key in inserted}
    transaction.connection.execute(
        sa.insert(ARTICLES_INDEX),
        [
            {
                "url_hash": sighting.url_hash,
                "article_url_canon": sighting.url_canon,
                "row_id_raw": ids[sighting.url_hash],
                "first_seen": now,
                "last_seen": now,
                "changed_seq": transaction.seq,
            }
            for sighting in taken
        ],
    )


def _raw_row(
    transaction: LedgerTransaction, feed_url: str, seen: Sighting, *, now: datetime
) -> dict[str, Any]:
    return {
        "source": registrable_domain(urlsplit(seen.url_canon).hostname or ""),
        "feed_url": feed_url,
        "article_url": seen.url,
        "article_url_canon": seen.url_canon,
        "url_hash": seen.url_hash,
        "found_at": now,
        "published_at": seen.published_at,
        "title": seen.title,
        "status": "pending",
        "sources_list": (feed_url,),
        "aliases": (),
        "last_seen_rss": now,
        "changed_seq": transaction.seq,
    }


def _see_again(
    transaction: LedgerTransaction,
    feed_url: str,
    seen: Sequence[Sighting],
    known: dict[str, int],
    *,
    now: datetime,
) -> None:
    by_row = {known[sighting.url_hash]: sighting for sighting in reversed(seen)}
    hashes = [sighting.url_hash for sighting in seen]
    stamp = {"changed_seq": transaction.seq}
    for start in range(0, len(hashes), _CHUNK):
        part = hashes[start : start + _CHUNK]
        row_ids = {known[key] for key in part}
        index_part = ARTICLES_INDEX.c.url_hash.in_(part)
        transaction.connection.execute(
            sa.update(ARTICLES_INDEX).where(index_part).values(last_seen=now, **stamp)
        )
        rows = transaction.connection.execute(
            sa.update(RAW)
            .where(RAW.c.row_id.in_(row_ids))
            .values(last_seen_rss=now, **stamp)
            .returning(
                RAW.c.row_id,
                RAW.c.title,
                RAW.c.published_at,
                RAW.c.sources_list,
                RAW.c.status,
                RAW.c.fetched_at,
            )
        ).all()
        for row in rows:
            news = _news_of(row, by_row[row.row_id], feed_url)
            if news:
                which = RAW.c.row_id == row.row_id
                transaction.connection.execute(sa.update(RAW).where(which).values(**news))


def _news_of(row: sa.Row[Any], seen: Sighting, feed_url: str) -> dict[str, Any]:
    """Return what a further sighting tells us about a row that we did not know."""
    news: dict[str, Any] = {}
    if not row.title and seen.title:
        news["title"] = seen.title
    if row.published_at is None and seen.published_at is not None:
        news["published_at"] = seen.published_at
    if feed_url not in row.sources_list:
        news["sources_list"] = with_text(row.sources_list, feed_url)
    if row.status == "stored" and _is_revised(seen.updated_at, row.fetched_at):
        # The publisher says it changed: read it again, the worker tells whether the text did.
        news["status"] = "pending"
    return news


def _is_revised(updated_at: datetime | None, fetched_at: datetime | None) -> bool:
    return updated_at is not None and fetched_at is not None and updated_at > fetched_at
