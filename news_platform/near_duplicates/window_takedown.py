"""Cluster days again that have taken-down articles, and the days that were compared with them.

The tables of the corpus must be free of the articles before. Markers keep their fingerprints, so
that nothing which follows becomes stale.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial

from news_platform.datasets.text_clusters import TEXT_CLUSTERS, clusters_path
from news_platform.near_duplicates.window import cluster_window
from news_platform.near_duplicates.window_days import built_window_days
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import is_covered


def takedown_parts(
    store: ObjectStore, *, days: int, scratch: str | None = None
) -> list[TakedownPart]:
    """Return the part of the clusters over a window of `days`, by day."""
    return [
        SimplePart(
            TEXT_CLUSTERS.name,
            partial(find_days, store),
            lambda day, it: clean_day(store, day, it, days=days, scratch=scratch),
        )
    ]


def find_days(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered articles by day."""
    return +Counter({day: _covered(store, day, takedowns) for day in built_window_days(store)})


def clean_day(
    store: ObjectStore, day: str, takedowns: Takedowns, *, days: int, scratch: str | None = None
) -> RemovedData:
    """Cluster a day again, and then those that follow it within the window."""
    lost, before = _covered(store, day, takedowns), _size(store, day)
    first, built = date.fromisoformat(day), built_window_days(store)
    for one in ((first + timedelta(days=number)).isoformat() for number in range(days)):
        if one in built:
            cluster_window(store, one, days=days, scratch=scratch)
    after = _size(store, day)
    return RemovedData(lost, max(0, before - after), after)


def _covered(store: ObjectStore, day: str, takedowns: Takedowns) -> int:
    path = clusters_path(day)
    if not store.exists(path):
        return 0
    return int(is_covered(read_table(store, path, TEXT_CLUSTERS)["url"], takedowns).sum())


def _size(store: ObjectStore, day: str) -> int:
    found = store.find(clusters_path(day))
    return found.size_bytes if found is not None else 0
