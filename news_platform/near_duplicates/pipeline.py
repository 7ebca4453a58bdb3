"""Which days of near_duplicates are out of date, and building them with their marker.

A day is built from its own articles and from the results of the days before it in its window. The
marker's scope is the fingerprint of the result, so a day whose result stays the same makes nothing
that follows it stale.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date

from news_platform.datasets.corpus import DELTA_TABLES
from news_platform.datasets.near_duplicates import (
    CLUSTER_BANDS,
    CLUSTER_SKETCHES,
    NEAR_DUPLICATES,
)
from news_platform.near_duplicates.candidates import SKETCH_VERSION, THRESHOLD
from news_platform.near_duplicates.window import WindowReport, cluster_window, window_days
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    Marker,
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values
from news_platform.takedowns.build_filters import build_obeying


def wanted_days(store: ObjectStore, *, days: int) -> Mapping[str, str]:
    """Return the fingerprint of each day: its articles and the days of its window.

    A built day without articles maps to REMOVED.
    """
    articles: dict[str, list[str]] = {}
    for table in DELTA_TABLES:
        for day, marker in read_markers(store, table.name).items():
            articles.setdefault(day, []).append(f"{table.name} {marker.inputs} {marker.scope}")
    clustered = _clustered(store)
    by = f"{SKETCH_VERSION} {THRESHOLD} {days}"
    wanted = {
        day: fingerprint(
            [
                by,
                *own,
                *(
                    f"{one} {clustered[one].scope}"
                    for one in window_days(day, days)
                    if one in clustered
                ),
            ]
        )
        for day, own in articles.items()
    }
    return wanted | {day: REMOVED for day in clustered if day not in wanted}


def clustered_days(store: ObjectStore) -> list[str]:
    """Return the days whose articles have clusters, oldest first."""
    return sorted(_clustered(store))


def _clustered(store: ObjectStore) -> Mapping[str, Marker]:
    return read_markers(store, NEAR_DUPLICATES.name)


def days_before(store: ObjectStore, day: str, *, days: int) -> list[str]:
    """Return the clustered days that a day is compared with, oldest first."""
    clustered = _clustered(store)
    return [one for one in window_days(day, days) if one in clustered]


def build_day(
    store: ObjectStore, day: str, *, days: int, scratch: str | None = None
) -> WindowReport | None:
    """Cluster the articles of a day; return None if it has none (see `remove_gone`)."""
    inputs = wanted_days(store, days=days).get(day, REMOVED)
    if inputs == REMOVED:
        return None
    earlier = days_before(store, day, days=days)
    report = build_obeying(
        store,
        lambda takedowns: cluster_window(
            store, day, earlier=earlier, takedowns=takedowns, scratch=scratch
        ),
    )
    write_marker(
        store,
        NEAR_DUPLICATES.name,
        day,
        inputs=inputs,
        report=asdict(report),
        scope=report.content,
    )
    return report


def expire_sketches(store: ObjectStore, *, days: int, today: date = date.max) -> int:
    """Delete the sketches that no new day is compared with; return how many files.

    They take 2 KB per article. A late day makes those that it needs again.
    """
    known = clustered_days(store)
    newest = max((day for day in known if day <= str(today)), default="")
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
