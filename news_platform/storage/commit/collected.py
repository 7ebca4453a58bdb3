"""Read the `collected` markers of raw_news: which WARCs are complete and what each one holds.

A WARC counts as collected when its marker exists, so every reader of raw_news starts here. Other
files under `news/collected/`, such as those that desktops leave behind, are ignored.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from itertools import islice

from news_platform.datasets.collected import (
    COLLECTED,
    Collected,
    collected_day,
    collected_digest,
    collected_prefix,
    collected_warc,
    parse_collected,
)
from news_platform.storage.commit.markers import content_part, current_inputs, fingerprint_of
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

# The inputs of a day whose markers are gone while something built from them is still stored.
REMOVED = "removed"
# Markers are small and many: reading them one by one would dominate the start of a scan.
_CONCURRENT_READS = 16


def list_collected(store: ObjectStore, folder: str = COLLECTED) -> list[ObjectInfo]:
    """Return the markers under a folder, by default all, in the order of days and WARC names."""
    return [info for info in store.list(folder) if collected_day(info.path)]


def list_collected_day(store: ObjectStore, day: date) -> list[ObjectInfo]:
    """Return the markers of one day in the order of WARC names."""
    return list_collected(store, collected_prefix(day))


def read_collected(store: ObjectStore, days: Iterable[date] | None = None) -> list[Collected]:
    """Read the markers of these days, or of all days when None, in the given order of days."""
    if days is None:
        return parse_listed(store, list_collected(store))
    return parse_listed(store, [info for day in days for info in list_collected_day(store, day)])


def parse_listed(store: ObjectStore, markers: Sequence[ObjectInfo]) -> list[Collected]:
    """Read markers that were listed before; raise StorageError for one that cannot be parsed."""
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        return list(threads.map(partial(_read, store), markers))


def collected_names(store: ObjectStore, *, day: date) -> frozenset[str]:
    """Return the names of the WARCs of a day that have a marker."""
    return frozenset(collected_warc(info.path) for info in list_collected_day(store, day))


def collected_names_of_month(store: ObjectStore, *, month: date) -> frozenset[str]:
    """Return the names of the WARCs of a month that have a marker, with a single LIST."""
    folder = collected_prefix(month).rpartition("/")[0]
    return frozenset(collected_warc(info.path) for info in list_collected(store, folder))


def newest_collected_days(store: ObjectStore, *, count: int) -> list[date]:
    """Return the newest days that have a folder of markers, newest first.

    Folders are listed from the newest year backwards, and no more of them than needed.
    """
    folders = (
        day
        for year in reversed(store.list_folders(COLLECTED))
        for month in reversed(store.list_folders(year))
        for day in reversed(store.list_folders(month))
    )
    days = (_folder_day(folder) for folder in folders)
    return list(islice((day for day in days if day is not None), count))


def wanted_days(
    store: ObjectStore,
    *,
    built: Mapping[str, str],
    inputs: Callable[[str], str] = str,
) -> Mapping[str, str]:
    """Return the fingerprint that each day should be built from, by the day's ISO date.

    `built` has the fingerprints that days were built from. A day in it that has no markers any more
    maps to REMOVED, so that its output is removed too. `inputs` is that of `day_inputs`.
    """
    by_day: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in list_collected(store):
        by_day[str(collected_day(info.path))].append(info)
    wanted = {
        day: day_inputs(store, markers, built=built.get(day), inputs=inputs)
        for day, markers in by_day.items()
    }
    return wanted | {day: REMOVED for day in built if day not in by_day}


def day_inputs(
    store: ObjectStore,
    markers: Sequence[ObjectInfo],
    *,
    built: str | None,
    inputs: Callable[[str], str] = str,
) -> str:
    """Return the fingerprint of a day's markers, in the form of `built` where that is current.

    `inputs` adds what else the day's output depends on.
    """
    return current_inputs(
        built,
        lambda part: inputs(fingerprint_of(markers, part)),
        part=content_part(store, collected_digest),
    )


def _read(store: ObjectStore, info: ObjectInfo) -> Collected:
    return parse_collected(store.read(info.path), path=info.path)


def _folder_day(folder: str) -> date | None:
    """Return the day of a folder of markers; None for any other folder."""
    try:
        return date.fromisoformat("-".join(folder.split("/")[-3:]))
    except ValueError:
        return None
