"""Which days of stories are out of date, and building them with their marker.

A day is built from its own articles, from the near-duplicates of its window, and from the results
of the days before it. The marker's scope is the fingerprint of the result: a late day makes the
days of its window stale, and later ones only if links or ids of theirs have changed.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING

from news_platform.datasets.corpus import DELTA_TABLES
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.datasets.stories import STORIES, STORY_DAYS
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import Marker, fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import build_obeying
from news_platform.takedowns.match import Takedowns

# numpy is imported by the function that computes: processes that only plan save 0.1 s.
if TYPE_CHECKING:
    from news_platform.stories.window import StoryReport


def window_days(day: str) -> list[str]:
    """Return the days before `day` in which its articles find earlier ones, oldest first."""
    last = date.fromisoformat(day)
    return [(last - timedelta(days=back)).isoformat() for back in range(STORY_DAYS - 1, 0, -1)]


def wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint of each day: its articles, and the days of its window.

    A built day without articles maps to REMOVED.
    """
    articles: dict[str, list[str]] = {}
    for table in DELTA_TABLES:
        for day, marker in read_markers(store, table.name).items():
            articles.setdefault(day, []).append(f"{table.name} {marker.inputs} {marker.scope}")
    linked, clustered = _linked(store), read_markers(store, NEAR_DUPLICATES.name)
    wanted = {}
    for day, own in articles.items():
        window = window_days(day)
        parts = [f"version {STORIES.version}", *own]
        parts += (
            f"text {one} {clustered[one].scope}" for one in (*window, day) if one in clustered
        )
        parts += (f"{one} {linked[one].scope}" for one in window if one in linked)
        wanted[day] = fingerprint(parts)
    return wanted | {day: REMOVED for day in linked if day not in wanted}


def linked_days(store: ObjectStore) -> list[str]:
    """Return the days whose articles have stories, oldest first."""
    return sorted(_linked(store))


def _linked(store: ObjectStore) -> Mapping[str, Marker]:
    return read_markers(store, STORIES.name)


def days_before(store: ObjectStore, day: str) -> list[str]:
    """Return the linked days of the window before a day, oldest first."""
    linked = _linked(store)
    return [one for one in window_days(day) if one in linked]


def build_day(store: ObjectStore, day: str) -> "StoryReport | None":
    """Link the articles of a day; return None if it has none (see `remove_gone`)."""
    from news_platform.stories.window import link_window

    inputs = wanted_days(store).get(day, REMOVED)
    if inputs == REMOVED:
        return None
    earlier = days_before(store, day)
    report = build_obeying(
        store, lambda takedowns: link_window(store, day, earlier=earlier, takedowns=takedowns)
    )
    write_marker(
        store, STORIES.name, day, inputs=inputs, report=asdict(report), scope=report.content
    )
    return report


def relink_days(store: ObjectStore, day: str, *, takedowns: Takedowns) -> None:
    """Link a day again after a removal, and then those that follow it within the window."""
    from news_platform.stories.window import link_window

    last = (date.fromisoformat(day) + timedelta(days=STORY_DAYS - 1)).isoformat()
    for one in linked_days(store):
        if day <= one <= last:
            link_window(store, one, earlier=days_before(store, one), takedowns=takedowns)
