"""The version of the data that answers are made from, and what was read from that version.

A file of an article table is never changed, so what was read of it stays true as long as the
table's newest version names it: the keys of its rows, and blocks of rows that were requested.
Reading one row of a file takes as long as reading a few hundred of its neighbours.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import polars as pl
import sqlalchemy as sa
from cachetools import LRUCache

from news_platform.datasets.corpus import DELTA_TABLES, FEED_SOURCE, STATISTICS_COLUMNS
from news_platform.datasets.dataset import Dataset
from news_platform.errors import InputError, NewsPlatformError, StorageError
from news_platform.isolation.boundary import panics_as
from news_platform.search.pipeline import Query
from news_platform.storage.commit.markers import etag_part, fingerprint
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.build_filters import read_hidden, without_hidden

# The datasets whose markers change with what a page shows.
_MARKED = (
    *(table.name for table in DELTA_TABLES),
    "search_index",
    "near_duplicates",
    "stories",
    "domain_surveys",
    "usage_signals",
    "ai_policy_changes",
    "domain_store",
    "domain_catalog",
    "feeds",
)
ARTICLE_LOGS = tuple(f"{table.name}/_delta_log" for table in DELTA_TABLES)
CLUSTER_MARKERS = "markers/near_duplicates"
TAKEDOWNS = "takedowns"
INDEX_MARKERS = tuple(
    f"markers/{name}" for name in ("search_index", *(t.name for t in DELTA_TABLES))
)
_FOLDERS = (*ARTICLE_LOGS, *(f"markers/{name}" for name in _MARKED), TAKEDOWNS)
# Looking takes at most this share of the time, however long the listings are.
_SHARE_OF_TIME = 0.05
_SHORTEST_SECONDS = 1.0
_KEPT_VALUES = 64
# A day that is replaced while it is read, or a vacuum between listing and reading: read again.
_ATTEMPTS = 3
# Polars and the file system name a file that is gone in errors of their own.
UNREADABLE = (NewsPlatformError, pl.exceptions.PolarsError, OSError, sa.exc.SQLAlchemyError)
_LISTED = ("url", "url_hash", "title", "domain", "language", "day", "published_at", "fetched_at")
BLOCK_ROWS = 512
_KEYS = -1
_MOST_BYTES = 256 << 20
# So many of the 64 hex digits of a key fit into 60 bits; rows with equal ones are compared.
_DIGITS = 15
# Threads that need the same block at the same moment read it once.
_STRIPES = 16
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
Row = Mapping[str, Any]
_Value = TypeVar("_Value")


class Refreshed(Generic[_Value]):
    """A value that is read again when it is too old; while one caller reads, others get the last.

    `rest_seconds` says for how long it is good, by the seconds that reading took.
    """

    def __init__(
        self, read: Callable[[], _Value], *, rest_seconds: Callable[[float], float]
    ) -> None:
        self._read, self._rest_seconds = read, rest_seconds
        self._reading = threading.Lock()
        self._value: _Value | None = None
        self._good_until = 0.0

    @property
    def is_fresh(self) -> bool:
        """Return whether `current` answers without reading."""
        return time.monotonic() < self._good_until

    def current(self) -> _Value:
        """Return the value; the first callers wait for it."""
        if not self.is_fresh and self._reading.acquire(blocking=self._value is None):
            try:
                if not self.is_fresh:
                    started = time.monotonic()
                    self._value = self._read()
                    ended = time.monotonic()
                    self._good_until = ended + self._rest_seconds(ended - started)
            finally:
                self._reading.release()
        assert self._value is not None
        return self._value

    @property
    def last(self) -> _Value | None:
        """Return the value that was read last, however old; None before the first."""
        return self._value

    def forget(self) -> None:
        """Read again at the next request."""
        self._good_until = 0.0


def _unreadable(cause: str) -> StorageError:
    return StorageError(f"stored data is damaged: {cause}; `news-platform doctor` looks for it")


class DataVersion:
    """The version of a root's data when it was last listed, and values read from that version."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._listed = Refreshed(
            self._list, rest_seconds=lambda took: max(_SHORTEST_SECONDS, took / _SHARE_OF_TIME)
        )
        self._kept: LRUCache[str, tuple[str, Any]] = LRUCache(_KEPT_VALUES)
        self._keeping = threading.Lock()

    @property
    def is_fresh(self) -> bool:
        """Return whether `of` answers without listing."""
        return self._listed.is_fresh

    def of(self, *folders: str) -> str:
        """Return the version of all data, or of some folders, which others do not change."""
        parts = self._listed.current()
        return "\n".join(parts[folder] for folder in folders or parts)

    def forget(self) -> None:
        """List and read again at the next request: the data changed under a reader."""
        self._listed.forget()
        with self._keeping:
            self._kept.clear()

    def retried(self, read: Callable[[], _Value]) -> _Value:
        """Return what a function reads; it reads again if the data changed meanwhile.

        A panic of a library that reads is a StorageError.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                with panics_as(_unreadable):
                    return read()
            except InputError:
                raise
            except UNREADABLE:
                self.forget()
        with panics_as(_unreadable):
            return read()

    def kept(self, name: str, read: Callable[[], _Value], *folders: str) -> _Value:
        """Return a value that was read from this version of some folders, or read it now."""
        version = self.of(*folders)
        with self._keeping:
            known, value = self._kept.get(name, ("", None))
        if known == version:
            found: _Value = value
            return found
        # Outside of the lock: two threads may read the same value, none waits for another's.
        found = read()
        with self._keeping:
            self._kept[name] = (version, found)
        return found

    def _list(self) -> Mapping[str, str]:
        return {
            folder: fingerprint(map(etag_part, self._store.list(folder))) for folder in _FOLDERS
        }


class ArticleTables:
    """The rows of crawl_articles and feed_articles."""

    def __init__(self, store: ObjectStore, version: DataVersion) -> None:
        self._store, self._version = store, version

    def days_of(self, domain: str) -> Mapping[str, int]:
        """Return how many articles a domain has on each day."""
        rows = self.read(
            lambda all_: (
                all_.filter(pl.col("domain") == domain)
                .group_by("day")
                .agg(pl.col("url_hash").n_unique())
            )
        )
        return dict(sorted(rows.iter_rows()))

    def newest(
        self, *, limit: int, days: Collection[str], **chosen: Collection[str]
    ) -> pl.DataFrame:
        """Return the newest articles of these days, with some values of columns or with any."""
        wanted = pl.col("day").is_in(list(days))
        for name, values in chosen.items():
            wanted &= pl.col(name).is_in(list(values)) if values else pl.lit(True)
        at = pl.coalesce("published_at", "fetched_at").alias("at")
        return self.read(
            lambda all_: (
                all_.filter(wanted)
                .select(*_LISTED)
                .with_columns(at)
                .unique("url_hash", keep="first")
                .sort("at", "url_hash", descending=[True, False])
                .head(limit)
            )
        )

    def newest_days(self, count: int) -> list[str]:
        """Return the newest days that have articles."""
        days = self.read(lambda all_: all_.select(pl.col("day").unique()))
        return sorted(days["day"], reverse=True)[:count]

    def read(self, query: Query) -> pl.DataFrame:
        """Run a query over both tables."""
        return query(self._frame()).collect()

    def _frame(self) -> pl.LazyFrame:
        return self._version.kept("article tables", self._open, *ARTICLE_LOGS, TAKEDOWNS)

    def _open(self) -> pl.LazyFrame:
        hidden = read_hidden(self._store)
        frames = [
            (table, DeltaDataset(self._store, table, STATISTICS_COLUMNS).scan())
            for table in DELTA_TABLES
        ]
        return pl.concat(without_hidden(rows, table, hidden) for table, rows in frames)


@dataclass(frozen=True, slots=True)
class _TableFile:
    """A file of one of the tables."""

    table: Dataset
    path: str


class ArticleRows:
    """The rows of both article tables by key. It is used by many threads."""

    def __init__(self, store: ObjectStore, version: DataVersion) -> None:
        self._store, self._version = store, version
        self._current: frozenset[str] = frozenset()
        self._kept: LRUCache[tuple[str, int], pl.DataFrame] = LRUCache(
            _MOST_BYTES, getsizeof=lambda block: int(block.estimated_size())
        )
        self._keeping = threading.Lock()
        self._reading = tuple(threading.Lock() for _ in range(_STRIPES))

    def find(self, url_hash: str, *, day: str = "") -> list[Row]:
        """Return the rows of an article, newest first, of one day or of all."""
        files = self._version.kept("article files", self._list, *ARTICLE_LOGS)
        chosen = files.get(day, ()) if day else [one for of in files.values() for one in of]
        rows = [row for file in chosen for row in self._rows(file, url_hash)]
        return sorted(rows, key=_precedence, reverse=True)

    def _list(self) -> Mapping[str, Sequence[_TableFile]]:
        """Return the files of the newest versions, by day."""
        found: dict[str, list[_TableFile]] = {}
        for table in DELTA_TABLES:
            for one in DeltaDataset(self._store, table, STATISTICS_COLUMNS).files():
                found.setdefault(one.partition, []).append(_TableFile(table, one.path))
        # What was replaced, or removed by a takedown, does not stay in memory either.
        with self._keeping:
            self._current = frozenset(file.path for files in found.values() for file in files)
            for key in [key for key in self._kept if key[0] not in self._current]:
                del self._kept[key]
        return found

    def _rows(self, file: _TableFile, url_hash: str) -> Iterator[Row]:
        keys = self._block(file, _KEYS, self._read_keys)
        wanted = int(url_hash[:_DIGITS], 16)
        first, last = (keys["key"].search_sorted(wanted, side) for side in ("left", "right"))
        for number in keys["row"][first:last]:
            block = self._block(file, number // BLOCK_ROWS, self._read_rows)
            row = block.row(number % BLOCK_ROWS, named=True)
            if row["url_hash"] == url_hash:
                yield row

    def _block(
        self, file: _TableFile, number: int, read: Callable[[_TableFile, int], pl.DataFrame]
    ) -> pl.DataFrame:
        key = (file.path, number)
        found = self._known(key)
        if found is None:
            with self._reading[hash(key) % _STRIPES]:
                found = self._known(key)
                if found is None:
                    found = read(file, number)
                    self._keep(key, found)
        return found

    def _known(self, key: tuple[str, int]) -> pl.DataFrame | None:
        with self._keeping:
            return self._kept.get(key)

    def _keep(self, key: tuple[str, int], block: pl.DataFrame) -> None:
        # A file that was replaced while it was read is not kept, nor a block beyond all bounds.
        with self._keeping, suppress(ValueError):
            if key[0] in self._current:
                self._kept[key] = block

    def _read_keys(self, file: _TableFile, _number: int) -> pl.DataFrame:
        """Return the first digits of all keys of a file, sorted, and their rows."""
        key = pl.col("url_hash").str.slice(0, _DIGITS)
        return (
            scan_table(self._store, [file.path], file.table)
            .select(key=key.str.to_integer(base=16, strict=False))
            .with_row_index("row")
            .filter(pl.col("key").is_not_null())
            .sort("key")
            .collect()
            .rechunk()
        )

    def _read_rows(self, file: _TableFile, number: int) -> pl.DataFrame:
        rows = scan_table(self._store, [file.path], file.table)
        # One chunk per column: a row is then found without a search.
        return rows.slice(number * BLOCK_ROWS, BLOCK_ROWS).collect().rechunk()


def _precedence(row: Row) -> tuple[str, bool, datetime]:
    """Order the rows of an article; as in the index, a feed's row precedes one of the crawl."""
    return row["day"], row["source"] == FEED_SOURCE, row["fetched_at"] or _LONG_AGO
