"""Cluster days again that have taken-down articles, and the days that were compared with them.

The tables of the corpus must be free of the articles before. Markers keep their fingerprints, so
that nothing which follows becomes stale. What release 0.1 wrote is filtered instead, because the
pages that it was made from may be gone.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from functools import partial

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    OLD_ARTICLE_CLUSTERS,
    near_duplicates_path,
)
from news_platform.near_duplicates.pipeline import clustered_days, days_before
from news_platform.near_duplicates.window import cluster_window
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values, read_table, write_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import is_covered

CoveredHashes = Callable[[Takedowns], Collection[str]]
"""From requests to the URL hashes of the covered articles in the ledger."""


def takedown_parts(
    store: ObjectStore, *, days: int, hashes: CoveredHashes, scratch: str | None = None
) -> list[TakedownPart]:
    """Return the part of the clusters over a window of `days`, and that of release 0.1."""
    clusters = SimplePart(
        NEAR_DUPLICATES.name,
        partial(find_days, store),
        lambda day, it: clean_day(store, day, it, days=days, scratch=scratch),
    )
    old = SimplePart(
        ARTICLE_CLUSTERS.name,
        lambda it: find_old_articles(store, hashes(it)),
        lambda _, it: clean_old_articles(store, hashes(it)),
    )
    return [clusters, old]


def find_days(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered articles by day."""
    files = {path_values(one.path)["date"]: one.path for one in store.list(NEAR_DUPLICATES.name)}
    return +Counter({day: _covered(store, path, takedowns) for day, path in files.items()})


def clean_day(
    store: ObjectStore, day: str, takedowns: Takedowns, *, days: int, scratch: str | None = None
) -> RemovedData:
    """Cluster a day again, and then those that follow it within the window."""
    path = near_duplicates_path(day)
    lost, before = _covered(store, path, takedowns), _size(store, path)
    first, clustered = date.fromisoformat(day), set(clustered_days(store))
    if day not in clustered:
        _filter_pages(store, path, takedowns)
    for one in ((first + timedelta(days=number)).isoformat() for number in range(days)):
        if one in clustered:
            earlier = days_before(store, one, days=days)
            cluster_window(store, one, earlier=earlier, takedowns=takedowns, scratch=scratch)
    after = _size(store, path)
    return RemovedData(lost, max(0, before - after), after)


def _filter_pages(store: ObjectStore, path: str, takedowns: Takedowns) -> None:
    """Remove covered pages from a day of release 0.1, and clusters that are left with one page."""
    rows = read_table(store, path, NEAR_DUPLICATES)
    kept = rows.filter(~is_covered(rows["uri"], takedowns))
    _write_clusters(store, path, kept.filter(pl.len().over("cluster_id") > 1), NEAR_DUPLICATES)


def find_old_articles(store: ObjectStore, hashes: Collection[str]) -> Mapping[str, int]:
    """Return how many covered articles the file of release 0.1 has."""
    if not store.exists(OLD_ARTICLE_CLUSTERS):
        return {}
    rows = read_table(store, OLD_ARTICLE_CLUSTERS, ARTICLE_CLUSTERS)
    count = rows.filter(pl.col("url_hash").is_in(list(hashes))).height
    return {"all": count} if count else {}


def clean_old_articles(store: ObjectStore, hashes: Collection[str]) -> RemovedData:
    """Remove covered articles from the file of release 0.1; repeating it changes nothing."""
    if not store.exists(OLD_ARTICLE_CLUSTERS):
        return RemovedData()
    before = _size(store, OLD_ARTICLE_CLUSTERS)
    rows = read_table(store, OLD_ARTICLE_CLUSTERS, ARTICLE_CLUSTERS)
    kept = rows.filter(~pl.col("url_hash").is_in(list(hashes)))
    _write_clusters(store, OLD_ARTICLE_CLUSTERS, kept, ARTICLE_CLUSTERS)
    after = _size(store, OLD_ARTICLE_CLUSTERS)
    return RemovedData(rows.height - kept.height, max(0, before - after), after)


def _write_clusters(store: ObjectStore, path: str, rows: pl.DataFrame, table: Dataset) -> None:
    sizes = pl.len().over("cluster_id").cast(pl.Int64)
    write_table(store, path, rows.with_columns(cluster_size=sizes), table)


def _covered(store: ObjectStore, path: str, takedowns: Takedowns) -> int:
    if not store.exists(path):
        return 0
    return int(is_covered(read_table(store, path, NEAR_DUPLICATES)["uri"], takedowns).sum())


def _size(store: ObjectStore, path: str) -> int:
    found = store.find(path)
    return found.size_bytes if found is not None else 0
