"""Write the entries of a polled feed to the ledger.

An article URL that is not in ArticlesIndex yet becomes a pending row in Raw. A known URL gets a new
`last_seen`, and its Raw row gets the facts that it lacked until now.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.tables import ARTICLES_INDEX, RAW
from news_platform.rss.ledger.transactions import LedgerTransaction
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.web.urls import canonical_url, registrable_domain, url_hash, url_host

# SQLite accepts 32,766 parameters per statement, versions before 3.32 only 999.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class AddedEntries:
    """How many entries of a feed were new or known; `left` are new ones for the next poll."""

    new: int = 0
    known: int = 0
    left: int = 0
    taken_down: int = 0


def entries_by_url_hash(entries: Iterable[FeedEntry]) -> dict[str, FeedEntry]:
    """Return the entries that link to a web page, one per URL, newest first."""
    found: dict[str, FeedEntry] = {}
    for entry in entries:
        canonical = canonical_url(entry.link) if entry.link else ""
        if canonical.startswith(("http://", "https://")):
            # Without summaries, which only discovery reads, a batch of 200 feeds stays small.
            found.setdefault(url_hash(canonical), replace(entry, summary=""))
    # The sort is stable: entries without a date keep their order, after the dated ones.
    return dict(sorted(found.items(), key=lambda item: _age(item[1])))


def without_taken_down(
    entries: Mapping[str, FeedEntry], takedowns: Takedowns
) -> Mapping[str, FeedEntry]:
    """Return the entries, by URL hash, that may be collected."""
    if not takedowns:
        return entries
    return {key: entry for key, entry in entries.items() if not takedowns.covers_url(entry.link)}


def add_entries(
    transaction: LedgerTransaction,
    feed_url: str,
    entries: Mapping[str, FeedEntry],
    *,
    max_new: int,
    now: datetime,
    takedowns: Takedowns = NO_TAKEDOWNS,
) -> AddedEntries:
    """Add at most `max_new` new articles of a feed and mark all known ones as seen.

    The entries are keyed by URL hash, as `entries_by_url_hash` returns them. Those that are taken
    down are left out.
    """
    given = len(entries)
    entries = without_taken_down(entries, takedowns)
    # ArticlesIndex also holds the aliases of an article, which Raw has in one row.
    known = _known_rows(transaction.connection, list(entries))
    new = [key for key in entries if key not in known]
    added = {key: entries[key] for key in new[:max_new]}
    if added:
        _insert(transaction, feed_url, added, now=now)
    seen_again = {key: entry for key, entry in entries.items() if key in known}
    _update_known(transaction, feed_url, seen_again, known, now=now)
    return AddedEntries(
        new=len(added),
        known=len(known),
        left=len(new) - len(added),
        taken_down=given - len(entries),
    )


def with_text(values: Sequence[str], added: str) -> tuple[str, ...]:
    """Return the list with one more text, unless it is empty or already in the list."""
    return tuple(values) if added in values or not added else (*values, added)


def _age(entry: FeedEntry) -> float:
    return -entry.published_at.timestamp() if entry.published_at else 0.0


def _known_rows(connection: sa.Connection, hashes: Sequence[str]) -> dict[str, int]:
    """Return the Raw row_id of every URL hash that is in ArticlesIndex."""
    known: dict[str, int] = {}
    for start in range(0, len(hashes), _CHUNK):
        chosen = sa.select(ARTICLES_INDEX.c.url_hash, ARTICLES_INDEX.c.row_id_raw).where(
            ARTICLES_INDEX.c.url_hash.in_(hashes[start : start + _CHUNK])
        )
        known.update((key, row_id) for key, row_id in connection.execute(chosen))
    return known


def _insert(
    transaction: LedgerTransaction,
    feed_url: str,
    added: Mapping[str, FeedEntry],
    *,
    now: datetime,
) -> None:
    rows = [_raw_row(transaction, feed_url, key, added[key], now=now) for key in added]
    inserted = transaction.connection.execute(
        sa.insert(RAW).returning(RAW.c.row_id, RAW.c.url_hash, sort_by_parameter_order=True), rows
    )
    ids = {key: row_id for row_id, key in inserted}
    transaction.connection.execute(
        sa.insert(ARTICLES_INDEX),
        [
            {
                "url_hash": row["url_hash"],
                "article_url_canon": row["article_url_canon"],
                "row_id_raw": ids[row["url_hash"]],
                "first_seen": now,
                "last_seen": now,
                "changed_seq": transaction.seq,
            }
            for row in rows
        ],
    )


def _raw_row(
    transaction: LedgerTransaction, feed_url: str, key: str, entry: FeedEntry, *, now: datetime
) -> dict[str, Any]:
    canonical = canonical_url(entry.link)
    return {
        "source": registrable_domain(url_host(canonical)),
        "feed_url": feed_url,
        "article_url": entry.link,
        "article_url_canon": canonical,
        "url_hash": key,
        "found_at": now,
        "published_at": entry.published_at,
        "title": entry.title,
        "status": "pending",
        "sources_list": (feed_url,),
        "aliases": (),
        "last_seen_rss": now,
        "changed_seq": transaction.seq,
    }


def _update_known(
    transaction: LedgerTransaction,
    feed_url: str,
    entries: Mapping[str, FeedEntry],
    known: Mapping[str, int],
    *,
    now: datetime,
) -> None:
    """Set when the entries were last seen, and what they add to their rows."""
    hashes = list(entries)
    # Several URLs may belong to one row; the first, which is the newest, wins.
    by_row = {known[key]: entries[key] for key in reversed(hashes)}
    seq = {"changed_seq": transaction.seq}
    for start in range(0, len(hashes), _CHUNK):
        part = hashes[start : start + _CHUNK]
        transaction.connection.execute(
            sa.update(ARTICLES_INDEX)
            .where(ARTICLES_INDEX.c.url_hash.in_(part))
            .values(last_seen=now, **seq)
        )
        rows = transaction.connection.execute(
            sa.update(RAW)
            .where(RAW.c.row_id.in_({known[key] for key in part}))
            .values(last_seen_rss=now, **seq)
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
            facts = _new_facts(row, by_row[row.row_id], feed_url)
            if facts:
                which = RAW.c.row_id == row.row_id
                transaction.connection.execute(sa.update(RAW).where(which).values(**facts))


def _new_facts(row: sa.Row[Any], entry: FeedEntry, feed_url: str) -> dict[str, Any]:
    """Return the columns of a known row that a further entry fills or changes."""
    facts: dict[str, Any] = {}
    if not row.title and entry.title:
        facts["title"] = entry.title
    if row.published_at is None and entry.published_at is not None:
        facts["published_at"] = entry.published_at
    if feed_url not in row.sources_list:
        facts["sources_list"] = with_text(row.sources_list, feed_url)
    if row.status == "stored" and _is_revised(entry.updated_at, row.fetched_at):
        # The feed says the article changed. The worker fetches it again and compares the texts.
        facts["status"] = "pending"
    return facts


def _is_revised(updated_at: datetime | None, fetched_at: datetime | None) -> bool:
    return updated_at is not None and fetched_at is not None and updated_at > fetched_at
