"""Read and write the `collected` markers of raw_news: which WARCs are complete, and their counts.

A WARC counts as collected when its marker exists, so every reader of raw_news starts here. Markers
of old months are combined: `news/collected/YYYY/MM/month.jsonl.gz` has, after a line with its
version, one line per WARC: its marker, with the moment at which its raw_news files expired, if they
did. Ten years of the crawl are then 120 objects instead of 65,700, and a process reads each version
of a table once. A marker of its own, written after its month was combined, replaces the row of its
WARC. Other files under `news/collected/`, such as those that desktops leave behind, are ignored.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache, partial
from itertools import islice
from uuid import uuid4

from news_platform.datasets.collected import (
    COLLECTED,
    Collected,
    collected_day,
    collected_fingerprint,
    collected_path,
    collected_prefix,
    collected_warc,
    dump_collected,
    parse_collected,
    recipe_of,
)
from news_platform.errors import Conflict, StorageError
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore

_TABLE = "month.jsonl.gz"
# Another process may combine the same month, or collect a WARC of it again.
_ATTEMPTS = 20
# Only the newest months list every marker: a year of them, 18 WARCs per day, and some more.
_REMEMBERED_NAMES = 1 << 14

Key = tuple[str, str]
"""The day of a WARC as ISO date, and its name."""
Rows = Mapping[Key, Collected]
"""The markers of a month by key."""


@dataclass(frozen=True, slots=True)
class CollectedUnit:
    """A collected WARC as a listing shows it; `path` is its marker, or the table of its month."""

    day: str
    warc: str
    path: str
    fingerprint: str
    is_expired: bool = False

    @property
    def key(self) -> Key:
        """Return the day and the name."""
        return self.day, self.warc

    @property
    def recipe(self) -> str:
        """Return the part of the fingerprint that stands for the extractor and its options."""
        return recipe_of(self.fingerprint)

    @property
    def is_combined(self) -> bool:
        """Return whether `path` is the table of a month."""
        return is_table(self.path)


def month_folder(month: date) -> str:
    """Return the folder of the markers of a month, relative to the root."""
    return f"{COLLECTED}/{month:%Y}/{month:%m}"


def is_table(path: str) -> bool:
    """Return whether this is the path of the table of a month."""
    return path.endswith(f"/{_TABLE}")


@lru_cache(_REMEMBERED_NAMES)
def named_unit(path: str) -> CollectedUnit | None:
    """Return the WARC that the path of a marker names, None for any other path.

    Every tick lists the same paths, so they are parsed once.
    """
    day = collected_day(path)
    if day is None:
        return None
    return CollectedUnit(day, collected_warc(path), path, collected_fingerprint(path))


def written_order(info: ObjectInfo) -> tuple[datetime, str]:
    """Return a sort key by which the marker that counts is the last one of its WARC.

    A crash between writing a marker and deleting the one before leaves both.
    """
    return info.modified_at, info.path


def find_table_units(store: ObjectStore, month: date) -> tuple[CollectedUnit, ...]:
    """Return the WARCs in the table of a month; none if it was never combined."""
    with suppress(NotFound):
        info = store.find(f"{month_folder(month)}/{_TABLE}")
        return table_units(store, info.path, info.etag) if info is not None else ()
    return ()


@lru_cache(1024)
def table_units(store: ObjectStore, path: str, etag: str) -> tuple[CollectedUnit, ...]:
    """Return the WARCs of a table that was listed with this ETag; it is read once per process."""
    return tuple(
        CollectedUnit(day, warc, path, marker.fingerprint, marker.is_expired)
        for (day, warc), marker in sorted(_parse(store.read(path), path=path).items())
    )


def _read_table(store: ObjectStore, month: date) -> tuple[Rows, str | None]:
    """Return the markers in the table of a month and its ETag; none if it was never combined."""
    path = f"{month_folder(month)}/{_TABLE}"
    try:
        body, info = store.read_with_info(path)
    except NotFound:
        return {}, None
    return _parse(body, path=path), info.etag


def _parse(body: bytes, *, path: str) -> Rows:
    try:
        lines = gzip.decompress(body).splitlines()
    except (OSError, EOFError) as error:
        raise StorageError(
            f"cannot parse {path!r} as the markers of a month: restore it from a backup",
            thing=path,
        ) from error
    markers = (parse_collected(line, path=path) for line in lines[1:])
    return {marker_key(marker): marker for marker in markers}


def marker_key(marker: Collected) -> Key:
    """Return the day and the name of a WARC."""
    return str(marker.day), marker.warc


def _dump(rows: Rows) -> bytes:
    # Buckets derive ETags from content: the number makes every version of a table unique.
    lines = [json.dumps({"version": uuid4().hex})]
    lines += (json.dumps(json.loads(dump_collected(rows[key]))) for key in sorted(rows))
    return gzip.compress("\n".join(lines).encode(), mtime=0)


def change_table(
    store: ObjectStore,
    month: date,
    change: Callable[[Rows], Rows],
    *,
    is_renewed: bool = False,
) -> None:
    """Replace the table of a month by what `change` makes of its rows, however many others do so.

    `change` is called again if another process was faster. Equal rows are not written; but with
    `is_renewed` a table that exists is, and changes that began before then fail and are repeated.
    """
    for _ in range(_ATTEMPTS):
        rows, etag = _read_table(store, month)
        changed = change(rows)
        if changed == rows and not (is_renewed and etag):
            return
        with suppress(Conflict):
            store.compare_and_set(f"{month_folder(month)}/{_TABLE}", _dump(changed), etag=etag)
            return
    raise Conflict(f"cannot change the markers of {month:%Y-%m}: others keep changing them")


def combine_month(store: ObjectStore, month: date, *, change: Callable[[Rows], Rows] = dict) -> int:
    """Move the markers of a month into its table; return how many were moved.

    It may be killed at any point and repeated: the table is replaced before a marker is deleted.
    `change` is applied to all rows in the same step.
    """
    loose: list[tuple[ObjectInfo, Collected]] = []

    def absorb(rows: Rows) -> Rows:
        # After the table: retracting a marker from now on renews the table, so that replacing it
        # fails and the marker does not come back.
        loose[:] = _read_loose(store, month)
        return change({**rows, **{marker_key(marker): marker for _, marker in loose}})

    store.put_if_absent(f"{month_folder(month)}/{_TABLE}", _dump({}))
    change_table(store, month, absorb)
    present = {info.path: info.etag for info in store.list(month_folder(month))}
    store.delete(info.path for info, _ in loose if present.get(info.path) == info.etag)
    return len(loose)


def _read_loose(store: ObjectStore, month: date) -> list[tuple[ObjectInfo, Collected]]:
    """Read the markers that are not combined, older ones first; a broken one stays where it is."""
    found = []
    for info in sorted(store.list(month_folder(month)), key=written_order):
        if named_unit(info.path):
            with suppress(StorageError, NotFound):
                found.append((info, parse_collected(store.read(info.path), path=info.path)))
    return found


def expire_collected(store: ObjectStore, markers: Iterable[Collected], *, expired_at: str) -> None:
    """Record that the raw_news files of these WARCs are gone; the domain store holds their rows.

    The WARCs still count as collected, and nothing that follows their days becomes stale. One that
    was collected again meanwhile has another `attempt` and stays as it is.
    """
    months: dict[date, set[tuple[str, str, str]]] = {}
    for marker in markers:
        gone = months.setdefault(marker.day.replace(day=1), set())
        gone.add((*marker_key(marker), marker.attempt))

    for month, gone in months.items():
        combine_month(store, month, change=partial(_expired, gone=gone, at=expired_at))


def _expired(rows: Rows, *, gone: Set[tuple[str, str, str]], at: str) -> Rows:
    return {
        key: replace(row, expired_at=at) if (*key, row.attempt) in gone else row
        for key, row in rows.items()
    }


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
    return _merged([one for one in find_table_units(store, day) if one.day == str(day)], infos)


def _units(store: ObjectStore, infos: Sequence[ObjectInfo]) -> list[CollectedUnit]:
    tables = [info for info in infos if is_table(info.path)]
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        found = threads.map(lambda info: table_units(store, info.path, info.etag), tables)
        return _merged([unit for units in found for unit in units], infos)


def _merged(combined: Iterable[CollectedUnit], infos: Iterable[ObjectInfo]) -> list[CollectedUnit]:
    """Return the WARCs once each; a marker of its own replaces the row of the month's table."""
    found = {unit.key: unit for unit in combined}
    for info in sorted(infos, key=written_order):
        if unit := named_unit(info.path):
            found[unit.key] = unit
    return [found[key] for key in sorted(found)]


def day_fingerprint(units: Iterable[CollectedUnit]) -> str:
    """Return the fingerprint of the WARCs of a day."""
    return fingerprint(f"{unit.warc}@{unit.fingerprint}" for unit in units)


def read_collected(store: ObjectStore, days: Iterable[date] | None = None) -> list[Collected]:
    """Read the markers of these days, or of all days when None, in the given order of days."""
    if days is None:
        months = sorted(collected_months(store))
        return [marker for month in months for marker in read_collected_month(store, month)]
    return parse_listed(store, [unit for day in days for unit in list_collected_day(store, day)])


def collected_months(store: ObjectStore) -> Iterator[date]:
    """Yield the first days of all months with markers, newest first; only folders are listed."""
    years = reversed(store.list_folders(COLLECTED))
    folders = (month for year in years for month in reversed(store.list_folders(year)))
    return filter(None, map(_folder_month, folders))


def read_collected_month(store: ObjectStore, month: date) -> list[Collected]:
    """Read the markers of a month in the order of days and names; its table is parsed once."""
    # The markers first: one that is combined in between is then found twice, not missed.
    loose = sorted(store.list(month_folder(month)), key=written_order)
    found = dict(_read_table(store, month)[0])
    listed = [unit for unit in (named_unit(info.path) for info in loose) if unit is not None]
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        for marker in threads.map(lambda unit: _read(store, unit, found), listed):
            found[marker_key(marker)] = marker
    return [found[key] for key in sorted(found)]


def parse_listed(store: ObjectStore, units: Sequence[CollectedUnit]) -> list[Collected]:
    """Read markers that were listed before; raise StorageError for one that cannot be parsed."""
    months = {date.fromisoformat(unit.day).replace(day=1) for unit in units if unit.is_combined}
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        tables = threads.map(lambda month: _read_table(store, month)[0], months)
        combined = {key: row for rows in tables for key, row in rows.items()}
        return list(threads.map(lambda unit: _read(store, unit, combined), units))


def _read(store: ObjectStore, unit: CollectedUnit, combined: Rows) -> Collected:
    with suppress(NotFound):
        if not unit.is_combined:
            return parse_collected(store.read(unit.path), path=unit.path)
    # A marker that is gone was combined with others since it was listed.
    rows = combined if unit.is_combined else _read_table(store, date.fromisoformat(unit.day))[0]
    if unit.key not in rows:
        raise NotFound(f"the marker of {unit.warc!r} was removed: try again", thing=unit.path)
    return rows[unit.key]


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
    own, key = _own_markers(store, marker.day, marker.warc), marker_key(marker)
    for path in own:
        store.put(path, dump_collected(marker))
    if not own:
        change_table(store, marker.day, lambda rows: {**rows, key: marker} if key in rows else rows)


def delete_other_markers(store: ObjectStore, marker: Collected) -> None:
    """Delete the markers of a WARC other than this one; that of its month is replaced by it."""
    kept = collected_path(marker.day, marker.warc, marker.fingerprint)
    store.delete([path for path in _own_markers(store, marker.day, marker.warc) if path != kept])


def retract_collected(store: ObjectStore, *, day: date, warc: str) -> None:
    """Delete the marker of a WARC wherever it is, so that the WARC counts as not collected."""
    own, gone = _own_markers(store, day, warc), (str(day), warc)
    store.delete(own)
    # A process that combines the month may have read the marker before it was deleted.
    change_table(
        store,
        day,
        lambda rows: {key: rows[key] for key in rows if key != gone},
        is_renewed=bool(own),
    )


def _own_markers(store: ObjectStore, day: date, warc: str) -> list[str]:
    listed = (named_unit(info.path) for info in store.list(collected_prefix(day)))
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
    for month in collected_months(store):
        days = {unit.day for unit in list_collected_month(store, month)}
        yield from (date.fromisoformat(day) for day in sorted(days, reverse=True))


def mark_wanted(store: ObjectStore, day: date, *, now: datetime) -> None:
    """Record that somebody wants this day, before its first WARC is collected.

    A day whose run fails is then followed like any other, even if Dagster's own records are lost.
    """
    path = f"{WANTED}/{day}.json"
    if not store.exists(path):
        body = {"day": day.isoformat(), "wanted_at": now.isoformat()}
        store.put(path, json.dumps(body).encode())


def unmark_wanted(store: ObjectStore, day: date) -> None:
    """Forget that a day is wanted; its collected markers say so from now on."""
    store.delete([f"{WANTED}/{day}.json"])


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


def _is_day(name: str) -> bool:
    with suppress(ValueError):
        return date.fromisoformat(name).isoformat() == name
    return False


def _folder_month(folder: str) -> date | None:
    """Return the month of a folder of markers; None for any other folder."""
    with suppress(ValueError):
        return date.fromisoformat("-".join([*folder.split("/")[-2:], "01"]))
    return None
