"""Read the `collected` markers of raw_news: which WARCs are complete and what each one holds.

A WARC counts as collected when its marker exists, by itself or combined with those of its month, so
every reader of raw_news starts here. Other files under `news/collected/`, such as those that
desktops leave behind, are ignored.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime
from itertools import islice

from news_platform.datasets.collected import (
    COLLECTED,
    Collected,
    collected_path,
    collected_prefix,
    dump_collected,
    parse_collected,
)
from news_platform.storage.commit.collected_months import (
    CollectedUnit,
    day_fingerprint,
    find_month,
    is_month_index,
    listed_unit,
    month_folder,
    read_month,
    read_month_markers,
    remove_from_month,
    replace_in_month,
    written_order,
)
from news_platform.storage.commit.expired import read_expired, with_expiry
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore

WANTED = "news/wanted"
# The inputs of a day whose markers are gone while something built from them is still stored.
REMOVED = "removed"
# Markers are small and many: reading them one by one would dominate the start of a scan.
_CONCURRENT_READS = 16


def list_collected(store: ObjectStore) -> list[CollectedUnit]:
    """Return all collected WARCs in the order of days and names."""
    return _units(store, list(store.list(COLLECTED)))


def list_collected_month(store: ObjectStore, month: date) -> list[CollectedUnit]:
    """Return the collected WARCs of a month in the order of days and names, with one LIST."""
    return _units(store, list(store.list(month_folder(month))))


def list_collected_day(store: ObjectStore, day: date) -> list[CollectedUnit]:
    """Return the collected WARCs of one day in the order of names."""
    # The markers first: one that is combined in between is then found twice, not missed.
    infos = list(store.list(collected_prefix(day)))
    combined = [unit for unit in find_month(store, day).units if unit.day == str(day)]
    return _merged(combined, infos)


def _units(store: ObjectStore, infos: Sequence[ObjectInfo]) -> list[CollectedUnit]:
    indexes = [info for info in infos if is_month_index(info.path)]
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        months = list(threads.map(lambda one: read_month(store, one.path, one.etag), indexes))
    return _merged([unit for month in months for unit in month.units], infos)


def _merged(combined: Iterable[CollectedUnit], infos: Iterable[ObjectInfo]) -> list[CollectedUnit]:
    """Return the WARCs once each; a marker of its own replaces the combined one."""
    found = {(unit.day, unit.warc): unit for unit in combined}
    for info in sorted(infos, key=written_order):
        if unit := listed_unit(info):
            found[unit.day, unit.warc] = unit
    return [found[key] for key in sorted(found)]


def read_collected(store: ObjectStore, days: Iterable[date] | None = None) -> list[Collected]:
    """Read the markers of these days, or of all days when None, in the given order of days."""
    if days is None:
        return parse_listed(store, list_collected(store))
    return parse_listed(store, [unit for day in days for unit in list_collected_day(store, day)])


def parse_listed(store: ObjectStore, units: Sequence[CollectedUnit]) -> list[Collected]:
    """Read markers that were listed before; raise StorageError for one that cannot be parsed."""
    months = sorted({unit.path for unit in units if unit.is_combined})
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        combined: dict[tuple[str, str], Collected] = {}
        for part in threads.map(lambda path: _month_markers(store, path), months):
            combined |= part
        found = list(threads.map(lambda unit: _read(store, unit, combined), units))
    records = read_expired(store, {unit.day for unit in units})
    return [with_expiry(one, records) for one in found]


def _month_markers(store: ObjectStore, path: str) -> Mapping[tuple[str, str], Collected]:
    try:
        return read_month_markers(store, path)
    except NotFound:  # the month was combined again since it was listed
        return {}


def _read(
    store: ObjectStore, unit: CollectedUnit, combined: Mapping[tuple[str, str], Collected]
) -> Collected:
    key = (unit.day, unit.warc)
    if unit.is_combined and key in combined:
        return combined[key]
    with suppress(NotFound):
        if not unit.is_combined:
            return parse_collected(store.read(unit.path), path=unit.path)
    return _read_moved(store, unit)


def _read_moved(store: ObjectStore, unit: CollectedUnit) -> Collected:
    """Read a marker that was combined with others since it was listed."""
    day = date.fromisoformat(unit.day)
    found = find_month(store, day)
    if any((one.day, one.warc) == (unit.day, unit.warc) for one in found.units):
        return read_month_markers(store, found.markers_path)[unit.day, unit.warc]
    raise NotFound(f"the marker of {unit.warc!r} was removed: try again", thing=unit.path)


def find_collected(store: ObjectStore, *, day: date, warc: str) -> Collected | None:
    """Return the marker of a WARC; None if it is not collected."""
    units = [unit for unit in list_collected_day(store, day) if unit.warc == warc]
    with suppress(NotFound):
        return next(iter(parse_listed(store, units)), None)
    return None


def write_collected(store: ObjectStore, marker: Collected) -> None:
    """Write the marker of a WARC, then delete its older ones."""
    path = collected_path(marker.day, marker.warc, marker.fingerprint)
    store.put(path, dump_collected(marker))
    delete_other_markers(store, marker)


def amend_collected(store: ObjectStore, marker: Collected) -> None:
    """Replace the marker of a WARC, loose or combined, by one of the same fingerprint."""
    own = _own_markers(store, marker.day, marker.warc)
    for path in own:
        store.put(path, dump_collected(marker))
    if not own:
        replace_in_month(store, marker)


def delete_other_markers(store: ObjectStore, marker: Collected) -> None:
    """Delete the markers of a WARC other than this one; that of its month is replaced by it."""
    kept = collected_path(marker.day, marker.warc, marker.fingerprint)
    store.delete([path for path in _own_markers(store, marker.day, marker.warc) if path != kept])


def retract_collected(store: ObjectStore, *, day: date, warc: str) -> None:
    """Delete the marker of a WARC wherever it is, so that the WARC counts as not collected."""
    remove_from_month(store, day, warc)
    store.delete(_own_markers(store, day, warc))


def _own_markers(store: ObjectStore, day: date, warc: str) -> list[str]:
    listed = (listed_unit(info) for info in store.list(collected_prefix(day)))
    return [unit.path for unit in listed if unit is not None and unit.warc == warc]


def collected_names(store: ObjectStore, *, day: date) -> frozenset[str]:
    """Return the names of the WARCs of a day that have a marker."""
    return frozenset(unit.warc for unit in list_collected_day(store, day))


def collected_names_of_month(store: ObjectStore, *, month: date) -> frozenset[str]:
    """Return the names of the WARCs of a month that have a marker, with a single LIST."""
    return frozenset(unit.warc for unit in list_collected_month(store, month))


def newest_collected_days(store: ObjectStore, *, count: int) -> list[date]:
    """Return the newest days that have markers, newest first.

    Months are listed from the newest backwards, and no more of them than needed.
    """
    return list(islice(_days_newest_first(store), count))


def _days_newest_first(store: ObjectStore) -> Iterator[date]:
    for year in reversed(store.list_folders(COLLECTED)):
        for folder in reversed(store.list_folders(year)):
            month = _folder_month(folder)
            if month is not None:
                days = {unit.day for unit in list_collected_month(store, month)}
                yield from (date.fromisoformat(day) for day in sorted(days, reverse=True))


def mark_wanted(store: ObjectStore, day: date, *, now: datetime) -> None:
    """Record that somebody wants this day, before its first WARC is collected.

    A day whose run fails is then followed like any other, even if Dagster's own records are lost.
    """
    path = _wanted_path(day)
    if not store.exists(path):
        body = {"day": day.isoformat(), "wanted_at": now.isoformat()}
        store.put(path, json.dumps(body).encode())


def unmark_wanted(store: ObjectStore, day: date) -> None:
    """Forget that a day is wanted; its collected markers say so from now on."""
    store.delete([_wanted_path(day)])


def list_wanted(store: ObjectStore) -> frozenset[str]:
    """Return the days that are wanted but not complete yet, as ISO dates."""
    names = (info.path.rpartition("/")[2].removesuffix(".json") for info in store.list(WANTED))
    return frozenset(name for name in names if _is_day(name))


def followed_days(store: ObjectStore) -> frozenset[str]:
    """Return the days to keep complete: those that are wanted or collected, as ISO dates."""
    return list_wanted(store) | {unit.day for unit in list_collected(store)}


def collected_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint of the collected WARCs of every day, by its ISO date."""
    by_day: dict[str, list[CollectedUnit]] = defaultdict(list)
    for unit in list_collected(store):
        by_day[unit.day].append(unit)
    return {day: day_fingerprint(units) for day, units in by_day.items()}


def wanted_days(
    store: ObjectStore,
    *,
    built: Mapping[str, str],
    inputs: Callable[[str], str] = str,
) -> Mapping[str, str]:
    """Return the fingerprint that each collected day should be built from, by its ISO date.

    `built` has the fingerprints that days were built from. A day in it that has no markers any more
    maps to REMOVED, so that its output is removed too. `inputs` is that of `day_inputs`.
    """
    by_day: dict[str, list[CollectedUnit]] = defaultdict(list)
    for unit in list_collected(store):
        by_day[unit.day].append(unit)
    wanted = {
        day: day_inputs(units, built=built.get(day), inputs=inputs) for day, units in by_day.items()
    }
    return wanted | {day: REMOVED for day in built if day not in by_day}


def day_inputs(
    units: Sequence[CollectedUnit],
    *,
    built: str | None,
    inputs: Callable[[str], str] = str,
) -> str:
    """Return the fingerprint of a day's WARCs, in the form of `built` where that is current.

    `inputs` adds what else the day's output depends on. What version 0.1 built has its own form of
    fingerprint, which stays current as long as no WARC of the day changes.
    """
    found = day_fingerprint(units)
    former = {unit.formerly[1] for unit in units if unit.formerly and unit.formerly[0] == found}
    return next((inputs(was) for was in former if inputs(was) == built), inputs(found))


def _wanted_path(day: date) -> str:
    return f"{WANTED}/{day.isoformat()}.json"


def _is_day(name: str) -> bool:
    with suppress(ValueError):
        return date.fromisoformat(name).isoformat() == name
    return False


def _folder_month(folder: str) -> date | None:
    """Return the month of a folder of markers; None for any other folder."""
    with suppress(ValueError):
        return date.fromisoformat("-".join([*folder.split("/")[-2:], "01"]))
    return None
