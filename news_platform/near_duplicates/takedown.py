"""Cluster days again that have taken-down articles, and the days that were compared with them.

The tables of the corpus must be free of the articles before. Markers keep their fingerprints, so
that nothing which follows becomes stale.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES, near_duplicates_path
from news_platform.near_duplicates.pipeline import clustered_days, days_before
from news_platform.near_duplicates.window import cluster_window
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values, read_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import is_covered


def takedown_parts(
    store: ObjectStore, *, days: int, scratch: str | None = None
) -> list[TakedownPart]:
    """Return the part of the clusters over a window of `days`."""
    clusters = SimplePart(
        NEAR_DUPLICATES.name,
        partial(find_days, store),
        lambda day, it: clean_day(store, day, it, days=days, scratch=scratch),
    )
    return [clusters]


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
    for one in ((first + timedelta(days=number)).isoformat() for number in range(days)):
        if one in clustered:
            earlier = days_before(store, one, days=days)
            cluster_window(store, one, earlier=earlier, takedowns=takedowns, scratch=scratch)
    after = _size(store, path)
    return RemovedData(lost, max(0, before - after), after)


def _covered(store: ObjectStore, path: str, takedowns: Takedowns) -> int:
    if not store.exists(path):
        return 0
    return int(is_covered(read_table(store, path, NEAR_DUPLICATES)["uri"], takedowns).sum())


def _size(store: ObjectStore, path: str) -> int:
    found = store.find(path)
    return found.size_bytes if found is not None else 0
