"""Both article tables, opened once per version of the data and read by many threads."""

import threading
from collections.abc import Callable, Collection, Mapping

import polars as pl

from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    DELTA_TABLES,
    FEED_ARTICLES,
    FEED_SOURCE,
    STATISTICS_COLUMNS,
)
from news_platform.errors import StorageError
from news_platform.server.versions import DataVersion
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore

# A vacuum may delete the files of a version between opening and reading it.
_ATTEMPTS = 3
_LISTED = ("url", "url_hash", "title", "domain", "language", "day", "published_at", "fetched_at")
Query = Callable[[pl.LazyFrame], pl.LazyFrame]


class ArticleTables:
    """The rows of crawl_articles and feed_articles."""

    def __init__(self, store: ObjectStore, version: DataVersion) -> None:
        self._store, self._version = store, version
        self._opening = threading.Lock()
        self._opened: tuple[str, pl.LazyFrame] | None = None

    def texts(self, places: Collection[tuple[str, str, str]]) -> Mapping[tuple[str, str], str]:
        """Return the texts of articles given by day, domain and hash, by day and hash."""
        if not places:
            return {}
        days, domains, hashes = (list(set(part)) for part in zip(*places, strict=True))
        wanted = (
            pl.col("day").is_in(days)
            & pl.col("domain").is_in(domains)
            & pl.col("url_hash").is_in(hashes)
        )
        rows = self.read(
            lambda all_: all_.filter(wanted).select("source", "day", "url_hash", "text")
        )
        by_source = rows.sort(pl.col("source") == FEED_SOURCE)
        return {(day, key): text or "" for _, day, key, text in by_source.iter_rows()}

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
            rows = self._frame()
            try:
                return query(rows).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                if attempt + 1 == _ATTEMPTS:
                    names = " and ".join(table.name for table in DELTA_TABLES)
                    raise StorageError(f"cannot read {names}: {error}") from error
                self._forget(rows)
        raise AssertionError("unreachable")

    def _frame(self) -> pl.LazyFrame:
        version, opened = self._version.current(), self._opened
        if opened is not None and opened[0] == version:
            return opened[1]
        with self._opening:
            # Another thread may have opened them meanwhile.
            if self._opened is None or self._opened[0] != version:
                tables = (CRAWL_ARTICLES, FEED_ARTICLES)
                frames = [DeltaDataset(self._store, it, STATISTICS_COLUMNS).scan() for it in tables]
                self._opened = (version, pl.concat(frames))
            return self._opened[1]

    def _forget(self, rows: pl.LazyFrame) -> None:
        with self._opening:
            if self._opened is not None and self._opened[1] is rows:
                self._opened = None
        self._version.forget()
