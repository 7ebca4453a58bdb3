"""Remove taken-down articles and feeds: daily files, full texts, ledger rows, the workbook.

The daily files are written first, while the ledger still knows their days; its rows go last. On
SQLite deleted content is overwritten, the file is packed, and the write-ahead log is emptied.
"""

import gzip
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.articles import ARTICLES, articles_path
from news_platform.errors import StoreUnavailable
from news_platform.rss.export import LEDGER, WHOLE, write_day
from news_platform.rss.full_text import full_text_path
from news_platform.rss.ledger.article_queue import delete_articles
from news_platform.rss.ledger.article_states import note_states
from news_platform.rss.ledger.newsroom_tables import FEED_ALARMS, FEED_ITEMS, FEED_POLLS
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEEDS, RAW, ROBOTS
from news_platform.rss.ledger.transactions import LedgerTransaction, write_transaction
from news_platform.rss.page_store import PAGES_FOLDER, page_path
from news_platform.rss.sheets.monthly_books import FOLDER, is_monthly_book
from news_platform.rss.sheets.outbox import mark_gone
from news_platform.rss.sheets.workbook import WORKBOOK_PATH, write_workbook_now
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.parquet import path_values, read_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.removed_texts import keep_texts
from news_platform.takedowns.rows import covered_urls

WORKBOOK = "article_sheets"
_CHUNK = 500


def takedown_parts(
    store: ObjectStore, *, engine: sa.Engine, full_texts: ObjectStore
) -> tuple[TakedownPart, TakedownPart, TakedownPart]:
    """Return the parts of the daily files, the ledger and the workbook, to be served in order."""
    return (
        SimplePart(
            ARTICLES.name,
            partial(find_days, store, engine),
            partial(clean_export, store, engine),
        ),
        SimplePart(
            LEDGER,
            partial(find_ledger, engine),
            lambda _, it: clean_ledger(store, engine, it, full_texts=full_texts),
        ),
        SimplePart(
            WORKBOOK,
            lambda it: find_ledger(engine, it) if store.exists(WORKBOOK_PATH) else {},
            lambda _, it: clean_workbook(store, engine),
        ),
    )


@dataclass(frozen=True, slots=True)
class CoveredRows:
    """What the ledger holds of covered pages: rows of Raw and all their hashes, and feeds."""

    row_ids: frozenset[int]
    hashes: frozenset[str]
    days: frozenset[date]
    feeds: frozenset[str]
    origins: frozenset[str]

    def __len__(self) -> int:
        return len(self.row_ids) + len(self.feeds) + len(self.origins)


def covered_rows(engine: sa.Engine, takedowns: Takedowns) -> CoveredRows:
    """Find the rows of covered pages by all addresses that the ledger has of them."""
    raw, index = RAW.c, ARTICLES_INDEX.c
    ids, hashes, days = set(), set(), set()
    with read_transaction(engine) as connection:
        chosen = sa.select(
            raw.row_id, raw.article_url, raw.article_url_canon, raw.url_hash, raw.stored_at
        )
        for row in connection.execute(chosen.execution_options(yield_per=1_000)):
            if takedowns.covers(row.article_url_canon) or takedowns.covers_url(row.article_url):
                ids.add(row.row_id)
                hashes.add(row.url_hash)
                if row.stored_at is not None:
                    days.add(row.stored_at.astimezone(UTC).date())
        known = sa.select(index.url_hash, index.article_url_canon, index.row_id_raw, index.reason)
        for entry in connection.execute(known.execution_options(yield_per=1_000)):
            # An address that merely has the same text belongs to a page of its own.
            is_same = entry.row_id_raw in ids and entry.reason != "text"
            if is_same or takedowns.covers(entry.article_url_canon):
                hashes.add(entry.url_hash)
        feeds = set(filter(takedowns.covers_url, _values(connection, FEEDS.c.feed_url_canon)))
        origins = {
            origin
            for origin in _values(connection, ROBOTS.c.origin)
            if takedowns.covers_robots(origin)
        }
    return CoveredRows(*map(frozenset, (ids, hashes, days, feeds, origins)))


def _values(connection: sa.Connection, column: sa.Column[str]) -> Iterable[str]:
    return connection.execute(sa.select(column)).scalars()


def covered_hashes(engine: sa.Engine, takedowns: Takedowns) -> Collection[str]:
    """Return the URL hashes of the covered articles."""
    return covered_rows(engine, takedowns).hashes if takedowns else frozenset()


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


def find_days(store: ObjectStore, engine: sa.Engine, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered articles in the daily files by day."""
    found: dict[str, int] = {}
    for info in store.list("articles", name_prefix="date="):
        rows = read_table(store, info.path, ARTICLES)
        urls = [*rows["article_url_canon"], *rows["article_url"]]
        gone = list(covered_urls(urls, takedowns))
        is_gone = rows["article_url_canon"].is_in(gone) | rows["article_url"].is_in(gone)
        if count := int(is_gone.sum()):
            found[path_values(info.path)["date"]] = count
    return found


def clean_export(
    store: ObjectStore, engine: sa.Engine, day: str, takedowns: Takedowns
) -> RemovedData:
    """Write the file of a day again without covered articles."""
    path = articles_path(day)
    before = store.find(path)
    lost = find_days(store, engine, takedowns).get(day, 0)
    if before is None or not lost:
        return RemovedData()
    write_day(engine, store, date.fromisoformat(day), takedowns=takedowns)
    after = store.find(path)
    size = after.size_bytes if after else 0
    return RemovedData(lost, max(0, before.size_bytes - size), size)


def find_ledger(engine: sa.Engine, takedowns: Takedowns) -> Mapping[str, int]:
    """Return how many rows of the ledger must go."""
    found = len(covered_rows(engine, takedowns))
    return {WHOLE: found} if found else {}


def clean_ledger(
    store: ObjectStore, engine: sa.Engine, takedowns: Takedowns, *, full_texts: ObjectStore
) -> RemovedData:
    """Delete full texts and kept pages, then rows; then overwrite what the database file holds."""
    found = covered_rows(engine, takedowns)
    keep_texts(store, _covered_texts(engine, found, full_texts))
    texts = [info for info in map(full_texts.find, map(full_text_path, found.hashes)) if info]
    full_texts.delete(info.path for info in texts)
    store.child(PAGES_FOLDER).delete(sorted(_own_pages(engine, found.row_ids)))
    with write_transaction(engine) as transaction:
        if transaction.connection.dialect.name == "sqlite":
            transaction.connection.exec_driver_sql("PRAGMA secure_delete = ON")
        # A row that was added since: a collector that began before the request.
        found = covered_rows(engine, takedowns)
        _free_duplicates(transaction, found, takedowns)
        _forget_aliases(transaction, takedowns)
        shown = mark_gone(
            transaction.connection, rows=found.row_ids, index=found.hashes, feeds=found.feeds
        )
        for chunk in _chunks(found.row_ids):
            delete_articles(transaction, chunk)
        for chunk in _chunks(found.hashes):
            gone = sa.delete(ARTICLES_INDEX).where(ARTICLES_INDEX.c.url_hash.in_(chunk))
            transaction.connection.execute(gone)
        for column, values in _other_rows(found):
            for chunk in _chunks(values):
                transaction.connection.execute(sa.delete(column.table).where(column.in_(chunk)))
    pack(engine)
    size = sum(info.size_bytes for info in texts)
    return RemovedData(len(found), size, notes=_notes(engine, shown))


def _notes(engine: sa.Engine, shown: int) -> tuple[str, ...]:
    notes = []
    if shown:
        notes.append(f"the next `rss sync` blanks {shown} rows of the Google Sheet")
    if engine.dialect.name == "postgresql":
        notes.append("PostgreSQL keeps deleted rows until VACUUM FULL, and in its backups")
    return tuple(notes)


def _covered_texts(engine: sa.Engine, found: CoveredRows, full_texts: ObjectStore) -> Iterator[str]:
    """Yield the texts of articles: the whole one where there is a file, else what the row has."""
    chosen = sa.select(RAW.c.url_hash, RAW.c.clean_text)
    with read_transaction(engine) as connection:
        for chunk in _chunks(found.row_ids):
            for url_hash, shown in connection.execute(chosen.where(RAW.c.row_id.in_(chunk))).all():
                try:
                    packed = full_texts.read(full_text_path(url_hash))
                    yield gzip.decompress(packed).decode("utf-8", "replace")
                except NotFound:
                    yield shown or ""


def _own_pages(engine: sa.Engine, row_ids: Collection[int]) -> set[str]:
    """Return the files of kept pages that no other article has."""
    refs = sa.select(RAW.c.page_ref).where(RAW.c.page_ref != "")
    own: set[str] = set()
    with read_transaction(engine) as connection:
        for chunk in _chunks(row_ids):
            own.update(connection.execute(refs.where(RAW.c.row_id.in_(chunk))).scalars())
        for chunk in _chunks(own):
            shared = sa.select(RAW.c.row_id, RAW.c.page_ref).where(RAW.c.page_ref.in_(chunk))
            others = connection.execute(shared).all()
            own -= {ref for row_id, ref in others if row_id not in row_ids}
    return {page_path(ref) for ref in own}


def _other_rows(found: CoveredRows) -> tuple[tuple[sa.Column[str], Collection[str]], ...]:
    return (
        (FEED_ITEMS.c.feed_url, found.feeds),
        (FEED_POLLS.c.feed_url, found.feeds),
        (FEED_ALARMS.c.thing, found.feeds),
        (FEEDS.c.feed_url_canon, found.feeds),
        (ROBOTS.c.origin, found.origins),
    )


def _free_duplicates(
    transaction: LedgerTransaction, found: CoveredRows, takedowns: Takedowns
) -> None:
    """Queue articles again that were only known as duplicates of one that goes.

    Their own text was never stored, because it equals that of the other.
    """
    index, raw = ARTICLES_INDEX.c, RAW.c
    for chunk in _chunks(found.row_ids):
        left = sa.select(index.url_hash, index.article_url_canon).where(
            index.row_id_raw.in_(chunk), index.reason == "text"
        )
        for url_hash, url in transaction.connection.execute(left).all():
            if takedowns.covers(url):
                continue
            own = sa.select(sa.func.min(raw.row_id)).where(raw.url_hash == url_hash)
            row_id = transaction.connection.execute(own).scalar_one_or_none()
            if row_id is not None:
                _queue_again(transaction, url_hash, row_id)


def _queue_again(transaction: LedgerTransaction, url_hash: str, row_id: int) -> None:
    seq = {"changed_seq": transaction.seq}
    transaction.connection.execute(
        sa.update(ARTICLES_INDEX)
        .where(ARTICLES_INDEX.c.url_hash == url_hash)
        .values(row_id_raw=row_id, is_duplicate=False, reason="", **seq)
    )
    transaction.connection.execute(
        sa.update(RAW)
        .where(RAW.c.row_id == row_id)
        .values(status="pending", next_try_at=None, processed_at=None, **seq)
    )
    reason = "the article with the same text was taken down"
    note_states(transaction.connection, [row_id], "pending", now=datetime.now(UTC), reason=reason)


def _forget_aliases(transaction: LedgerTransaction, takedowns: Takedowns) -> None:
    """Remove covered addresses from the aliases of articles that stay."""
    chosen = sa.select(RAW.c.row_id, RAW.c.aliases).where(RAW.c.aliases.is_not(None))
    rows: Iterable[Any] = transaction.connection.execute(chosen).all()
    for row in rows:
        kept = tuple(url for url in row.aliases if not takedowns.covers_url(url))
        if len(kept) < len(row.aliases):
            transaction.connection.execute(
                sa.update(RAW)
                .where(RAW.c.row_id == row.row_id)
                .values(aliases=kept, changed_seq=transaction.seq)
            )


def pack(engine: sa.Engine) -> None:
    """Write a SQLite file again without free pages, and empty its log.

    Raise StoreUnavailable while a reader keeps the log from being emptied. PostgreSQL needs its own
    VACUUM, see docs/takedown.md.
    """
    if engine.dialect.name != "sqlite":
        return
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("VACUUM")
        busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        cursor.close()
    finally:
        raw.close()
    if busy:
        raise StoreUnavailable(
            "the ledger's log could not be emptied while others read it: "
            "run `news-platform takedown apply` again"
        )


def clean_workbook(store: ObjectStore, engine: sa.Engine) -> RemovedData:
    """Write the workbook and all monthly books again from the ledger as it is now."""
    before = list(store.list(FOLDER))
    if not before:
        return RemovedData()
    # A deleted row leaves no number of a change, so a book that had it would count as complete.
    store.delete([info.path for info in before if is_monthly_book(info.path)])
    while write_workbook_now(engine, store).books_left:
        pass
    sizes = sum(info.size_bytes for info in before)
    after = sum(info.size_bytes for info in store.list(FOLDER))
    return RemovedData(1, max(0, sizes - after), after)


def _chunks(values: Collection[Any]) -> list[Sequence[Any]]:
    given = sorted(values)
    return [given[start : start + _CHUNK] for start in range(0, len(given), _CHUNK)]
