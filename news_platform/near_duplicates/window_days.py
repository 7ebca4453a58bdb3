"""Which days of text_clusters are out of date, and building them with their marker."""

from collections.abc import Mapping
from dataclasses import asdict

from news_platform.datasets.corpus import DELTA_TABLES
from news_platform.datasets.text_clusters import (
    CLUSTER_BANDS,
    CLUSTER_SKETCHES,
    TEXT_CLUSTERS,
    bands_path,
    clusters_path,
    merges_path,
    sketches_path,
)
from news_platform.near_duplicates.sketch import SketchOptions
from news_platform.near_duplicates.window import WindowReport, cluster_window, window_days
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    delete_marker,
    fingerprint,
    read_inputs,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values


def wanted_window_days(store: ObjectStore, *, days: int) -> Mapping[str, str]:
    """Return the fingerprint of each day: its articles, those of its window, and the options.

    A built day without articles maps to REMOVED.
    """
    articles: dict[str, list[str]] = {}
    for table in DELTA_TABLES:
        for day, marker in read_markers(store, table.name).items():
            articles.setdefault(day, []).append(f"{table.name} {marker.inputs} {marker.scope}")
    options = SketchOptions()
    by = f"{options.fingerprint} {options.threshold} {days}"
    wanted = {
        day: fingerprint(
            [
                by,
                *own,
                *(f"{one} {it}" for one in window_days(day, days) for it in articles.get(one, ())),
            ]
        )
        for day, own in articles.items()
    }
    return wanted | {day: REMOVED for day in built_window_days(store) if day not in wanted}


def built_window_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that each day was built from."""
    return read_inputs(store, TEXT_CLUSTERS.name)


def build_window_day(
    store: ObjectStore, day: str, *, days: int, scratch: str | None = None
) -> WindowReport | None:
    """Cluster the articles of a day; return None if it has none any more."""
    inputs = wanted_window_days(store, days=days).get(day, REMOVED)
    if inputs == REMOVED:
        paths = (path(day) for path in (clusters_path, merges_path, sketches_path, bands_path))
        store.delete(list(paths))
        delete_marker(store, TEXT_CLUSTERS.name, day)
        return None
    report = cluster_window(store, day, days=days, scratch=scratch)
    write_marker(store, TEXT_CLUSTERS.name, day, inputs=inputs, report=asdict(report))
    return report


def expire_sketches(store: ObjectStore, *, days: int) -> int:
    """Delete the sketches that no new day is compared with; return how many files.

    They take 2 KB per article. A late day makes those that it needs again.
    """
    newest = max(built_window_days(store), default="")
    if not newest:
        return 0
    kept = frozenset((newest, *window_days(newest, 2 * days)))
    old = [
        info.path
        for table in (CLUSTER_BANDS, CLUSTER_SKETCHES)
        for info in store.list(table.name)
        if path_values(info.path).get("date", newest) not in kept
    ]
    store.delete(old)
    return len(old)
