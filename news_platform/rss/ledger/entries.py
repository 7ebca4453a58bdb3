"""Write the entries of a polled feed to the ledger.

An article URL that is not in ArticlesIndex yet becomes a pending row in Raw; beyond the limit of a
poll it becomes a skipped one, so that nothing is lost without a trace. A known URL gets a new
`last_seen`, and its Raw row gets the facts that it lacked until now. What the feed says about each
article is kept in `feed_items`: a difference means that the publisher changed the article.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.articles.article import believed_date, titles_agree
from news_platform.rss.article_columns import (
    SaidBefore,
    has_items,
    insert_items,
    read_items,
    replace_items,
)
from news_platform.rss.feeds import FeedEntry, with_link_key
from news_platform.rss.ledger.article_queue import DUE, note_states, queue_duplicate
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEED_ITEMS, RAW
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.storage.chunks import chunked
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.web.urls import registrable_domain, url_host

# Why a row was skipped that the limit of a poll left out; a later poll takes it if it still can.
LIMIT = "limit"
_AGAIN = "a feed lists it again"
_MOVED = "its feed links to a new address"
_SEEN_COLUMNS = (
    RAW.c.row_id,
    RAW.c.url_hash,
    RAW.c.title,
    RAW.c.published_at,
    RAW.c.sources_list,
    RAW.c.status,
    RAW.c.error_msg,
    RAW.c.fetched_at,
    RAW.c.stored_at,
)


@dataclass(frozen=True, slots=True)
class AddedEntries:
    """How many entries of a feed were new, known, updated by the publisher, or skipped.

    `turned_over` means that the feed listed articles before, and none of them is left.
    """

    new: int = 0
    known: int = 0
    updated: int = 0
    skipped: int = 0
    turned_over: bool = False
    taken_down: int = 0


def entries_by_url_hash(entries: Iterable[FeedEntry]) -> dict[str, FeedEntry]:
    """Return the entries that link to a web page, one per URL, newest first."""
    found: dict[str, FeedEntry] = {}
    for entry in map(with_link_key, entries):
        if entry.link_hash:
            found.setdefault(entry.link_hash, entry)
    # The sort is stable: entries without a date keep their order, after the dated ones.
    return dict(sorted(found.items(), key=lambda item: _age(item[1])))


def lists_known(connection: sa.Connection, feed_url: str, hashes: Sequence[str]) -> bool:
    """Return whether one of these URL hashes is of an article that the feed has listed before."""
    rows = sorted(set(_known_rows(connection, hashes).values()))
    return bool(read_items(connection, feed_url, rows))


def add_entries(
    transaction: LedgerTransaction,
    feed_url: str,
    entries: Mapping[str, FeedEntry],
    *,
    max_new: int,
    now: datetime,
    takedowns: Takedowns = NO_TAKEDOWNS,
    had_skipped: bool = False,
) -> AddedEntries:
    """Add the new articles of a feed, at most `max_new` as pending, and mark known ones as seen.

    The entries are keyed by URL hash, as `entries_by_url_hash` returns them. Those that are taken
    down are left out. If the feed `had_skipped` articles, they are taken as far as there is room.
    """
    given = len(entries)
    if takedowns:
        entries = {k: one for k, one in entries.items() if not takedowns.covers_url(one.link)}
    # ArticlesIndex also holds the aliases of an article, which Raw has in one row.
    known = _known_rows(transaction.connection, list(entries))
    known |= _moved_rows(transaction, feed_url, entries, known, now=now)
    # Several URLs may belong to one row; the first, which is the newest, wins.
    seen = {known[key]: entries[key] for key in reversed(list(entries)) if key in known}
    said = read_items(transaction.connection, feed_url, list(seen))
    had_items = said or has_items(transaction.connection, feed_url)
    new = [key for key in entries if key not in known]
    pending, skipped = new[:max_new], new[max_new:]
    _insert(transaction, feed_url, {key: entries[key] for key in pending}, now=now)
    _insert(transaction, feed_url, {key: entries[key] for key in skipped}, now=now, status=LIMIT)
    sighting = _Sighting(transaction, feed_url, now, room=max_new - len(pending))
    sighting.see(known, seen, said)
    if had_skipped:
        sighting.take_unlisted(set(known.values()))
    return AddedEntries(
        new=len(pending) + sighting.taken,
        known=len(known),
        updated=sighting.updated,
        skipped=len(skipped) + sighting.still_skipped,
        turned_over=bool(new and had_items and not said),
        taken_down=given - len(entries),
    )


def _age(entry: FeedEntry) -> float:
    return -entry.published_at.timestamp() if entry.published_at else 0.0


def _known_rows(connection: sa.Connection, hashes: Sequence[str]) -> dict[str, int]:
    """Return the Raw row_id of every URL hash that is in ArticlesIndex.

    A duplicate by its text has a row of its own: its page may come to differ.
    """
    known: dict[str, int] = {}
    index = ARTICLES_INDEX.c
    for part in chunked(hashes):
        chosen = sa.select(index.url_hash, index.row_id_raw).where(index.url_hash.in_(part))
        known.update((key, row_id) for key, row_id in connection.execute(chosen))
        own = sa.and_(RAW.c.url_hash == index.url_hash, RAW.c.status == "duplicate")
        copies = sa.select(index.url_hash, RAW.c.row_id).join(RAW, own)
        is_copy = (index.url_hash.in_(part), index.reason == "text")
        known.update((key, row_id) for key, row_id in connection.execute(copies.where(*is_copy)))
    return known


def _moved_rows(
    transaction: LedgerTransaction,
    feed_url: str,
    entries: Mapping[str, FeedEntry],
    known: Mapping[str, int],
    *,
    now: datetime,
) -> dict[str, int]:
    """Return the rows of articles that the feed links to under a new address, and move them there.

    The feed gives such an item the same id and a similar title. An id that has named two links at
    once names no article.
    """
    counted = Counter(entry.id for entry in entries.values())
    new = {entry.id: key for key, entry in entries.items() if key not in known and entry.id}
    alone = {item_id: key for item_id, key in new.items() if counted[item_id] == 1}
    rows: dict[str, list[sa.Row[Any]]] = {}
    for part in chunked(alone):
        chosen = (
            sa.select(FEED_ITEMS.c.item_id, FEED_ITEMS.c.title.label("said"), RAW)
            .join(RAW, RAW.c.row_id == FEED_ITEMS.c.row_id)
            .where(FEED_ITEMS.c.feed_url == feed_url, FEED_ITEMS.c.item_id.in_(part))
        )
        for row in transaction.connection.execute(chosen):
            rows.setdefault(row.item_id, []).append(row)
    moved: dict[str, int] = {}
    for item_id, found in rows.items():
        entry, row = entries[alone[item_id]], found[0]
        if len(found) == 1 and row.status != "duplicate" and titles_agree(row.said, entry.title):
            _move_row(transaction, row, entry, now=now)
            moved[alone[item_id]] = row.row_id
    return moved


def _move_row(
    transaction: LedgerTransaction, row: sa.Row[Any], entry: FeedEntry, *, now: datetime
) -> None:
    """Let a row be fetched from a new address; the worker makes it the row's own."""
    due = {"fetch_again": True} if row.status == "processing" else DUE
    changed = sa.update(RAW).where(RAW.c.row_id == row.row_id)
    transaction.connection.execute(
        changed.values(**due, article_url=entry.link, changed_seq=transaction.seq)
    )
    if row.status != "processing":
        note_states(transaction.connection, [row.row_id], "pending", now=now, reason=_MOVED)
    transaction.connection.execute(
        sa.insert(ARTICLES_INDEX).values(
            url_hash=entry.link_hash,
            article_url_canon=entry.link_canon,
            row_id_raw=row.row_id,
            first_seen=now,
            last_seen=now,
            is_duplicate=True,
            reason="moved",
            changed_seq=transaction.seq,
            seen_seq=transaction.seq,
        )
    )


def _insert(
    transaction: LedgerTransaction,
    feed_url: str,
    added: Mapping[str, FeedEntry],
    *,
    now: datetime,
    status: str = "",
) -> None:
    if not added:
        return
    state = {"status": "skipped", "error_msg": status} if status else {"status": "pending"}
    rows = [{**_raw_row(transaction, feed_url, added[key], now=now), **state} for key in added]
    # Not with RETURNING, which SQLite would do in one statement per row.
    transaction.connection.execute(sa.insert(RAW), rows)
    ids = _inserted_rows(transaction, list(added))
    note_states(transaction.connection, ids.values(), state["status"], now=now, reason=status)
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
                "seen_seq": transaction.seq,
            }
            for row in rows
        ],
    )
    items = {ids[key]: entry for key, entry in added.items()}
    insert_items(transaction.connection, feed_url, items, now=now)


def _inserted_rows(transaction: LedgerTransaction, hashes: Sequence[str]) -> dict[str, int]:
    """Return the row_ids of the rows that this transaction has added for these URL hashes."""
    ids: dict[str, int] = {}
    for part in chunked(hashes):
        chosen = sa.select(RAW.c.url_hash, RAW.c.row_id).where(
            RAW.c.url_hash.in_(part), RAW.c.changed_seq == transaction.seq
        )
        # An old duplicate may have one of these hashes as well: the newest row is ours.
        ids.update(
            (key, id_) for key, id_ in transaction.connection.execute(chosen.order_by(RAW.c.row_id))
        )
    return ids


def _raw_row(
    transaction: LedgerTransaction, feed_url: str, entry: FeedEntry, *, now: datetime
) -> dict[str, Any]:
    published_at, stated = believed_date(entry.published_at, now=now)
    return {
        "source": registrable_domain(url_host(entry.link_canon)),
        "feed_url": feed_url,
        "article_url": entry.link,
        "article_url_canon": entry.link_canon,
        "url_hash": entry.link_hash,
        "found_at": now,
        "published_at": published_at,
        "stated_published_at": stated,
        "title": entry.title,
        "summary": entry.summary,
        "image_url": entry.content.image_url,
        "sources_list": (feed_url,),
        "aliases": (),
        "last_seen_rss": now,
        "changed_seq": transaction.seq,
        "seen_seq": transaction.seq,
    }


class _Sighting:
    """The known entries of one poll: what they add to their rows, and which are updates."""

    def __init__(
        self, transaction: LedgerTransaction, feed_url: str, now: datetime, *, room: int
    ) -> None:
        self.transaction = transaction
        self.feed_url = feed_url
        self.now = now
        # How many more articles the limit of the poll allows.
        self.room = room
        self.taken = self.still_skipped = self.updated = 0

    def see(
        self,
        known: Mapping[str, int],
        seen: Mapping[int, FeedEntry],
        said: Mapping[int, SaidBefore],
    ) -> None:
        """Set when the entries were last seen, and write what is new about them."""
        changed = {}
        for part in chunked(known):
            for row in self._mark_seen(part, known):
                entry = seen[row.row_id]
                before = said.get(row.row_id)
                facts = self._new_facts(row, entry, before)
                if facts:
                    self._update(row.row_id, facts)
                if before is None or self._is_accepted(row, entry, before):
                    changed[row.row_id] = entry
        replace_items(self.transaction.connection, self.feed_url, changed, now=self.now)

    def _mark_seen(self, part: Sequence[str], known: Mapping[str, int]) -> list[sa.Row[Any]]:
        """Note the sighting; it has a number of its own because it changes no content."""
        connection, seq = self.transaction.connection, self.transaction.seq
        connection.execute(
            sa.update(ARTICLES_INDEX)
            .where(ARTICLES_INDEX.c.url_hash.in_(part))
            .values(last_seen=self.now, seen_seq=seq)
        )
        rows = connection.execute(
            sa.update(RAW)
            .where(RAW.c.row_id.in_({known[key] for key in part}))
            .values(last_seen_rss=self.now, seen_seq=seq)
            .returning(*_SEEN_COLUMNS)
        )
        return list(rows)

    def _update(self, row_id: int, facts: Mapping[str, Any]) -> None:
        self.transaction.connection.execute(
            sa.update(RAW)
            .where(RAW.c.row_id == row_id)
            .values(changed_seq=self.transaction.seq, **facts)
        )
        if "status" in facts:
            note_states(
                self.transaction.connection, [row_id], facts["status"], now=self.now, reason=_AGAIN
            )

    def _new_facts(
        self, row: sa.Row[Any], entry: FeedEntry, before: SaidBefore | None
    ) -> dict[str, Any]:
        """Return the columns of a known row that a further entry fills or changes."""
        facts: dict[str, Any] = {}
        if entry.title and not row.title:
            facts["title"] = entry.title
        published_at, _ = believed_date(entry.published_at, now=self.now)
        if row.published_at is None and published_at is not None:
            facts["published_at"] = published_at
        if self.feed_url not in row.sources_list:
            facts["sources_list"] = (*row.sources_list, self.feed_url)
        if row.status == "skipped" and row.error_msg == LIMIT:
            facts |= self._take_if_room()
        elif self._is_update(row, entry, before):
            self.updated += 1
            facts |= self._fetch_again(row)
        return facts

    def _fetch_again(self, row: sa.Row[Any]) -> dict[str, Any]:
        """Queue a row whose publisher changed it; the worker compares the texts."""
        if row.status == "processing":
            # The worker may have fetched the page before the change.
            return {"fetch_again": True}
        if row.status == "duplicate":
            queue_duplicate(self.transaction, row.row_id, row.url_hash, now=self.now, reason=_AGAIN)
            return {}
        return DUE

    def _take_if_room(self) -> dict[str, Any]:
        if self.taken >= self.room:
            self.still_skipped += 1
            return {}
        self.taken += 1
        return {"status": "pending", "error_msg": ""}

    def take_unlisted(self, listed: Collection[int]) -> None:
        """Take what earlier polls skipped and the feed does not list any more."""
        skipped = (RAW.c.status == "skipped", RAW.c.error_msg == LIMIT)
        waiting = sa.select(RAW.c.row_id).where(
            RAW.c.feed_url == self.feed_url, *skipped, RAW.c.changed_seq < self.transaction.seq
        )
        found = self.transaction.connection.execute(waiting.order_by(RAW.c.row_id)).scalars()
        for row_id in (row_id for row_id in found.all() if row_id not in listed):
            if facts := self._take_if_room():
                self._update(row_id, facts)

    def _is_update(self, row: sa.Row[Any], entry: FeedEntry, before: SaidBefore | None) -> bool:
        """Return whether the publisher changed an article that was worked on."""
        if row.status not in ("stored", "error", "processing", "duplicate"):
            return False
        if before is None:
            return _is_later(entry.updated_at, row.fetched_at) and row.status == "stored"
        return self._is_accepted(row, entry, before)

    def _is_accepted(self, row: sa.Row[Any], entry: FeedEntry, before: SaidBefore) -> bool:
        """Return whether the entry differs from what the feed said, and this is to be followed.

        A new date alone is followed ever more rarely: some feeds date all entries anew at every
        poll. Until then what the feed said before is kept, so that no change is forgotten.
        """
        if before.item_hash != entry.item_hash:
            return True
        if not _is_later(entry.newest_date, before.newest_date):
            return False
        if row.fetched_at is None or row.stored_at is None:
            return True
        return bool(self.now - row.fetched_at >= row.fetched_at - row.stored_at)


def _is_later(moment: datetime | None, than: datetime | None) -> bool:
    return moment is not None and than is not None and moment > than


def add_sitemap_entries(
    engine: sa.Engine,
    listed: Iterable[tuple[str, FeedEntry]],
    *,
    now: datetime,
    takedowns: Takedowns = NO_TAKEDOWNS,
) -> AddedEntries:
    """Add pages of news sitemaps as if a feed had listed them; return what was new and known.

    Each page comes with the URL of its sitemap, and has `sitemap:` and that URL in place of a feed
    URL. Each sitemap is one transaction. Pages that are taken down are left out.
    """
    sitemaps: dict[str, list[FeedEntry]] = {}
    for sitemap_url, entry in listed:
        sitemaps.setdefault(f"sitemap:{sitemap_url}", []).append(entry)
    new = known = 0
    for feed_url, entries in sitemaps.items():
        keyed = entries_by_url_hash(entries)
        with write_transaction(engine) as transaction:
            added = add_entries(
                transaction, feed_url, keyed, max_new=len(keyed), now=now, takedowns=takedowns
            )
        new, known = new + added.new, known + added.known
    with write_transaction(engine) as transaction:
        metrics = {"new_articles": new, "known_articles": known}
        note_metrics(transaction, "sitemaps", metrics, now=now)
    return AddedEntries(new, known)
