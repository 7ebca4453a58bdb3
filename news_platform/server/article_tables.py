"""Both article tables: queries over all rows, and the rows of one article by its key in memory.

A file of a table is never changed, so what was read of it stays true as long as the table's newest
version names it: the keys of its rows, and blocks of rows that were requested. Reading one row of a
file takes as long as reading a few hundred of its neighbours.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
from cachetools import LRUCache

from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    DELTA_TABLES,
    FEED_ARTICLES,
    FEED_SOURCE,
    STATISTICS_COLUMNS,
)
from news_platform.datasets.dataset import Dataset
from news_platform.errors import StorageError
from news_platform.search.pipeline import Query
from news_platform.server.versions import ARTICLE_LOGS, DataVersion
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table

# A vacuum may delete the files of a version between opening or listing and reading them.
_ATTEMPTS = 3
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

    def newest(self, *, limit: int, days: Collection[str], domain: str = "") -> pl.DataFrame:
        """Return the newest articles of these days, of one domain or of all."""
        wanted = pl.col("day").is_in(list(days))
        if domain:
            wanted &= pl.col("domain") == domain
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
        """Run a query over both tables; open them again if files of their version are gone."""
        for attempt in range(_ATTEMPTS):
            try:
                return query(self._frame()).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                self._version.forget()
                if attempt + 1 == _ATTEMPTS:
                    raise _unreadable(error) from error
        raise AssertionError("unreachable")

    def _frame(self) -> pl.LazyFrame:
        return self._version.kept("article tables", self._open, *ARTICLE_LOGS)

    def _open(self) -> pl.LazyFrame:
        return pl.concat(
            DeltaDataset(self._store, table, STATISTICS_COLUMNS).scan()
            for table in (CRAWL_ARTICLES, FEED_ARTICLES)
        )


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
        """Return the rows of an article, newest first, of one day or of all.

        Raise StorageError if the files cannot be read.
        """
        for attempt in range(_ATTEMPTS):
            try:
                files = self._version.kept("article files", self._list, *ARTICLE_LOGS)
                chosen = files.get(day, ()) if day else [one for of in files.values() for one in of]
                rows = [row for file in chosen for row in self._rows(file, url_hash)]
                return sorted(rows, key=_precedence, reverse=True)
            except (pl.exceptions.PolarsError, OSError) as error:
                self._version.forget()
                if attempt + 1 == _ATTEMPTS:
                    raise _unreadable(error) from error
        raise AssertionError("unreachable")

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


def _unreadable(error: Exception) -> StorageError:
    names = " and ".join(table.name for table in DELTA_TABLES)
    return StorageError(f"cannot read {names}: {error}")
