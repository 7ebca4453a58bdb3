"""Remove taken-down articles and feeds from the ledger, with the files that belong to them.

The rows go by the roles of their columns. Articles that were only known as duplicates of a removed
one are queued again, because their own text was never stored.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.rss.article_files import PAGES_FOLDER, OwnedFiles, full_text_path, page_path
from news_platform.rss.export import LEDGER, WHOLE
from news_platform.rss.ledger.article_queue import delete_articles, queue_duplicate
from news_platform.rss.ledger.tables import (
    ARTICLES_INDEX,
    FEED_ALARMS,
    FEED_ITEMS,
    FEED_POLLS,
    FEEDS,
    RAW,
    ROBOTS,
)
from news_platform.rss.ledger.transactions import LedgerTransaction, write_transaction
from news_platform.rss.sheets.outbox import GONE, SHEET_ROWS, mark_gone
from news_platform.storage.chunks import chunked
from news_platform.storage.engines import RemovedRows
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.row_roles import (
    CoveredValues,
    count_rows,
    delete_rows,
    find_values,
    overwrite_deleted,
    pack,
)
from news_platform.takedowns.rows import TakedownTarget, name_pages
from news_platform.takedowns.unpack import UNREADABLE, iter_unpacked

# The tables with addresses of pages and feeds; the rows of the others go with those of Raw.
_TABLES = (RAW, ARTICLES_INDEX, FEED_ITEMS, FEED_POLLS, FEED_ALARMS, FEEDS, ROBOTS)


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """The rows of the ledger, and the files under the root that follow from them.

    `ledger` opens it, or returns None for a root that has none.
    """

    store: ObjectStore
    full_texts: ObjectStore
    ledger: Callable[[], sa.Engine | None]
    now: datetime
    dataset: str = LEDGER

    def find(self, target: TakedownTarget, _found: object = None) -> Mapping[str, int]:
        """Return how many rows and files without a row must go."""
        engine = self.ledger()
        found = len(self._orphans(engine, target))
        if engine is not None:
            with read_transaction(engine) as connection:
                found += count_rows(connection, find_values(connection, _TABLES, target))
        return {WHOLE: found} if found else {}

    def remove(self, _unit: str, target: TakedownTarget) -> RemovedRows:
        """Delete rows with their files, and files that no row refers to."""
        done = self.hide(target)
        if (engine := self.ledger()) is not None:
            pack(engine)
        return done

    def hide(self, target: TakedownTarget) -> RemovedRows:
        """Do so, but leave the file of the database as large as it is: that takes longest."""
        engine = self.ledger()
        others = self._orphans(engine, target)
        for store, info in others:
            store.delete([info.path])
        done = RemovedRows(len(others), sum(info.size_bytes for _, info in others))
        if engine is None:
            return done
        cleaned = clean_ledger(self.store, engine, target, full_texts=self.full_texts, now=self.now)
        return cleaned + done

    def _orphans(
        self, engine: sa.Engine | None, target: TakedownTarget
    ) -> list[tuple[ObjectStore, ObjectInfo]]:
        """Return the files that no row refers to and that name a covered page."""
        owned, pages = OwnedFiles.read(engine), self.store.child(PAGES_FOLDER)
        stores = ((self.full_texts, owned.full_texts), (pages, owned.pages))
        likely = [(at, it) for at, kept in stores for it in at.list() if it.path not in kept]
        return [(store, it) for store, it in likely if _names(store.read(it.path), target)]


def _names(body: bytes, target: TakedownTarget) -> bool:
    try:
        parts = [part.decode("utf-8", "replace") for _, part in iter_unpacked(body)]
    except UNREADABLE:
        return True  # it may hold anything, and nothing needs it
    return any(name_pages(parts, target.takedowns))


def ledger_aliases(engine: sa.Engine) -> list[tuple[str, str]]:
    """Return the pairs of addresses that the ledger knows to lead to one page.

    Addresses that merely have the same text are not among them.
    """
    index, raw = ARTICLES_INDEX.c, RAW.c
    pairs = (
        sa.select(index.article_url_canon, raw.article_url_canon)
        .join_from(ARTICLES_INDEX, RAW, index.row_id_raw == raw.row_id)
        .where(index.article_url_canon != raw.article_url_canon, index.reason != "text")
    )
    with read_transaction(engine) as connection:
        return [(one, other) for one, other in connection.execute(pairs)]


@dataclass(frozen=True, slots=True)
class _Covered:
    """The covered values, and the articles with their hashes and the pages only they refer to."""

    values: CoveredValues
    row_ids: frozenset[int]
    hashes: frozenset[str]
    pages: frozenset[str]

    @classmethod
    def read(cls, connection: sa.Connection, target: TakedownTarget) -> "_Covered":
        values = find_values(connection, _TABLES, target)
        raw, index = RAW.c, ARTICLES_INDEX.c
        ids, hashes = set(), set[str](values.get(index.url_hash, ()))
        for column in (raw.article_url, raw.article_url_canon, raw.url_hash):
            for part in chunked(values.get(column, ())):
                chosen = sa.select(raw.row_id, raw.url_hash).where(column.in_(part))
                for row_id, url_hash in connection.execute(chosen):
                    ids.add(row_id)
                    hashes.add(url_hash)
        for part in chunked(values.get(index.article_url_canon, ())):
            known = sa.select(index.url_hash).where(index.article_url_canon.in_(part))
            hashes.update(connection.execute(known).scalars())
        return cls(values, frozenset(ids), frozenset(hashes), _own_pages(connection, ids))


def _own_pages(connection: sa.Connection, row_ids: Collection[int]) -> frozenset[str]:
    """Return the references of kept pages that no other article has."""
    chosen = sa.select(RAW.c.page_ref).where(RAW.c.page_ref != "")
    own: set[str] = set()
    for part in chunked(row_ids):
        own.update(connection.execute(chosen.where(RAW.c.row_id.in_(part))).scalars())
    for refs in chunked(sorted(own)):
        shared = sa.select(RAW.c.row_id, RAW.c.page_ref).where(RAW.c.page_ref.in_(refs))
        others = connection.execute(shared).all()
        own -= {ref for row_id, ref in others if row_id not in row_ids}
    return frozenset(own)


def clean_ledger(
    store: ObjectStore,
    engine: sa.Engine,
    target: TakedownTarget,
    *,
    full_texts: ObjectStore,
    now: datetime,
) -> RemovedRows:
    """Delete full texts and kept pages, then rows, which SQLite overwrites."""
    with read_transaction(engine) as connection:
        found = _Covered.read(connection, target)
    texts = [info for info in map(full_texts.find, map(full_text_path, found.hashes)) if info]
    full_texts.delete(info.path for info in texts)
    store.child(PAGES_FOLDER).delete(sorted(map(page_path, found.pages)))
    with write_transaction(engine) as transaction:
        overwrite_deleted(transaction.connection)
        # A row that was added since: a collector that began before the request.
        found = _Covered.read(transaction.connection, target)
        rows = count_rows(transaction.connection, found.values)
        _free_duplicates(transaction, found.row_ids, target, now=now)
        _forget_aliases(transaction, target)
        feeds = found.values.get(FEEDS.c.feed_url_canon, ())
        mark_gone(transaction.connection, rows=found.row_ids, index=found.hashes, feeds=feeds)
        for part in chunked(found.row_ids):
            delete_articles(transaction, part)
        delete_rows(transaction.connection, found.values)
    return RemovedRows(rows, sum(info.size_bytes for info in texts))


def count_shown(engine: sa.Engine) -> int:
    """Return how many removed rows spreadsheets show until the next sync."""
    chosen = sa.select(sa.func.count()).where(SHEET_ROWS.c.seq == GONE)
    with read_transaction(engine) as connection:
        return int(connection.execute(chosen).scalar_one())


def _free_duplicates(
    transaction: LedgerTransaction,
    row_ids: Collection[int],
    target: TakedownTarget,
    *,
    now: datetime,
) -> None:
    """Queue the articles again that were only known as duplicates of those that go."""
    index, raw = ARTICLES_INDEX.c, RAW.c
    for part in chunked(row_ids):
        left = sa.select(index.url_hash, index.article_url_canon).where(
            index.row_id_raw.in_(part), index.reason == "text"
        )
        for url_hash, url in transaction.connection.execute(left).all():
            own = sa.select(sa.func.min(raw.row_id)).where(raw.url_hash == url_hash)
            row_id = transaction.connection.execute(own).scalar_one_or_none()
            if row_id is not None and not target.takedowns.covers(url):
                reason = "the article with the same text was taken down"
                queue_duplicate(transaction, row_id, url_hash, now=now, reason=reason)


def _forget_aliases(transaction: LedgerTransaction, target: TakedownTarget) -> None:
    """Remove covered addresses from the aliases of articles that stay."""
    chosen = sa.select(RAW.c.row_id, RAW.c.aliases).where(RAW.c.aliases.is_not(None))
    for row in transaction.connection.execute(chosen).all():
        kept = tuple(url for url in row.aliases if not target.takedowns.covers_url(url))
        if len(kept) < len(row.aliases):
            transaction.connection.execute(
                sa.update(RAW)
                .where(RAW.c.row_id == row.row_id)
                .values(aliases=kept, changed_seq=transaction.seq)
            )
