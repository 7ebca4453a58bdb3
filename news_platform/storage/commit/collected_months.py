"""Combine the `collected` markers of a month into two objects, so that old months list quickly.

`news/collected/YYYY/MM/month.json` is the index: the fingerprint of every WARC by day, which is all
that a sensor needs. It names the object that holds the markers themselves, one JSON line each. Ten
years of the crawl are then 240 objects instead of 65,700.

A marker of its own, written after its month was combined, replaces the entry of its WARC.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from news_platform.datasets.collected import (
    COLLECTED,
    Collected,
    collected_day,
    collected_fingerprint,
    collected_warc,
    dump_collected,
    parse_collected,
    recipe_of,
)
from news_platform.errors import Conflict, StorageError, require_format
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore

# Of the index and its object of markers.
MONTH_FORMAT = 2
_INDEX = re.compile(rf"{COLLECTED}/\d{{4}}/\d{{2}}/month\.json")
_MARKERS_SUFFIX = ".jsonl.gz"
# Another process may combine the same month, or collect a WARC of it again.
_ATTEMPTS = 20
# Only the newest months list every marker: a year of them, 18 WARCs per day, and room.
_REMEMBERED_NAMES = 1 << 14


@dataclass(frozen=True, slots=True)
class CollectedUnit:
    """A collected WARC as a listing shows it.

    `path` is its marker, or the object that holds the markers of its month.
    """

    day: str
    warc: str
    path: str
    fingerprint: str

    @property
    def recipe(self) -> str:
        """Return the part of the fingerprint that stands for the extractor and its options."""
        return recipe_of(self.fingerprint)

    @property
    def is_combined(self) -> bool:
        """Return whether `path` holds the markers of a month."""
        return self.path.endswith(_MARKERS_SUFFIX)


@dataclass(frozen=True, slots=True)
class MonthIndex:
    """The combined markers of a month; `etag` is None as long as there is no index."""

    units: tuple[CollectedUnit, ...] = ()
    markers_path: str = ""
    etag: str | None = None


def month_folder(month: date) -> str:
    """Return the folder of the markers of a month, relative to the root."""
    return f"{COLLECTED}/{month:%Y}/{month:%m}"


def is_month_index(path: str) -> bool:
    """Return whether this is the path of the index of a month."""
    return _INDEX.fullmatch(path) is not None


def listed_unit(info: ObjectInfo) -> CollectedUnit | None:
    """Return the WARC of a listed marker; None for any other file."""
    return _named_unit(info.path)


@lru_cache(_REMEMBERED_NAMES)
def _named_unit(path: str) -> CollectedUnit | None:
    """Return what the name of a marker says; every tick lists the same names."""
    day = collected_day(path)
    if day is None:
        return None
    return CollectedUnit(day, collected_warc(path), path, collected_fingerprint(path))


def day_fingerprint(units: Iterable[CollectedUnit]) -> str:
    """Return the fingerprint of the WARCs of a day."""
    return fingerprint(f"{unit.warc}@{unit.fingerprint}" for unit in units)


def find_month(store: ObjectStore, month: date) -> MonthIndex:
    """Return the index of a month, empty if it was never combined."""
    path = f"{month_folder(month)}/month.json"
    with suppress(NotFound):
        body, info = store.read_with_info(path)
        return _parse_index(body, path=path, etag=info.etag)
    return MonthIndex()


@lru_cache(1024)
def read_month(store: ObjectStore, path: str, etag: str) -> MonthIndex:
    """Return an index that was listed with this ETag; each version is read once per process."""
    return _parse_index(store.read(path), path=path, etag=etag)


def _parse_index(body: bytes, *, path: str, etag: str) -> MonthIndex:
    try:
        document = json.loads(body)
        found = document.get("format")
        days = {
            day: _units_of_day(day, entry, document["markers"])
            for day, entry in document["days"].items()
        }
        index = MonthIndex(
            tuple(unit for day in sorted(days) for unit in days[day]), document["markers"], etag
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StorageError(
            f"cannot parse {path!r} as the markers of a month: restore it from a backup",
            thing=path,
        ) from error
    require_format(found, MONTH_FORMAT, path=path)
    return index


def _units_of_day(
    day: str, entry: Mapping[str, Mapping[str, str]], path: str
) -> list[CollectedUnit]:
    return [CollectedUnit(day, warc, path, found) for warc, found in sorted(entry["warcs"].items())]


def read_month_markers(store: ObjectStore, path: str) -> Mapping[tuple[str, str], Collected]:
    """Return the combined markers of a month by day and WARC."""
    return {
        (marker.day.isoformat(), marker.warc): marker
        for marker in _parse_lines(store.read(path), path=path)
    }


def _parse_lines(body: bytes, *, path: str) -> list[Collected]:
    try:
        lines = gzip.decompress(body).splitlines()
    except (OSError, EOFError) as error:
        raise StorageError(
            f"cannot parse {path!r} as the markers of a month: restore it from a backup",
            thing=path,
        ) from error
    return [parse_collected(line, path=path) for line in lines]


def combine_month(store: ObjectStore, month: date) -> int:
    """Move the markers of a month into its two objects; return how many were moved.

    It may be killed at any point and repeated: the index is replaced before a marker is deleted.
    """
    for _ in range(_ATTEMPTS):
        with suppress(Conflict, NotFound):  # another process was faster: look again
            return _combine(store, month)
    raise Conflict(f"cannot combine the markers of {month:%Y-%m}: they keep changing")


def _combine(store: ObjectStore, month: date) -> int:
    listed = list(store.list(month_folder(month)))
    index = find_month(store, month)
    loose = _read_loose(store, listed)
    if not loose:
        _delete_unnamed(store, listed, index)
        return 0
    markers = dict(read_month_markers(store, index.markers_path)) if index.markers_path else {}
    markers |= {(str(one.marker.day), one.marker.warc): one.marker for one in loose}
    replaced = _write_month(store, month, markers, base=index)
    _forget_vanished(store, month, loose)
    store.delete(one.info.path for one in loose)
    _delete_unnamed(store, listed, replaced)
    return len(loose)


@dataclass(frozen=True, slots=True)
class _LooseMarker:
    """A marker that is not combined yet."""

    info: ObjectInfo
    marker: Collected


def _read_loose(store: ObjectStore, listed: Iterable[ObjectInfo]) -> list[_LooseMarker]:
    """Read the markers, older ones first; a broken one stays where it is."""
    found = []
    for info in sorted(listed, key=written_order):
        if listed_unit(info):
            with suppress(StorageError):
                marker = parse_collected(store.read(info.path), path=info.path)
                found.append(_LooseMarker(info, marker))
    return found


def written_order(info: ObjectInfo) -> tuple[datetime, str]:
    """Return a sort key by which the marker that counts is the last one of its WARC.

    A crash between writing a marker and deleting the one before leaves both.
    """
    return info.modified_at, info.path


def _write_month(
    store: ObjectStore,
    month: date,
    markers: Mapping[tuple[str, str], Collected],
    *,
    base: MonthIndex,
) -> MonthIndex:
    """Write the markers, then replace the index; raise Conflict if it is not `base` any more."""
    lines = [json.dumps(json.loads(dump_collected(markers[key]))) for key in sorted(markers)]
    body = gzip.compress("\n".join(lines).encode(), mtime=0)
    folder = month_folder(month)
    path = f"{folder}/month-{hashlib.sha256(body).hexdigest()[:12]}{_MARKERS_SUFFIX}"
    store.put(path, body)
    days: dict[str, dict[str, object]] = {}
    for (day, warc), marker in sorted(markers.items()):
        warcs = days.setdefault(day, {"warcs": {}})["warcs"]
        assert isinstance(warcs, dict)
        warcs[warc] = marker.fingerprint
    document = {"format": MONTH_FORMAT, "markers": path, "days": days}
    index_body = json.dumps(document, indent=1, sort_keys=True).encode()
    etag = store.compare_and_set(f"{folder}/month.json", index_body, etag=base.etag)
    return MonthIndex((), path, etag)


def _forget_vanished(store: ObjectStore, month: date, loose: Iterable[_LooseMarker]) -> None:
    """Remove what was retracted while it was combined: its files are being replaced."""
    present = {info.path for info in store.list(month_folder(month))}
    for one in loose:
        if one.info.path not in present:
            remove_from_month(store, one.marker.day, one.marker.warc)


def _delete_unnamed(store: ObjectStore, listed: Iterable[ObjectInfo], index: MonthIndex) -> None:
    """Delete the objects of markers that the index has replaced."""
    names = (info.path for info in listed if info.path.endswith(_MARKERS_SUFFIX))
    store.delete([path for path in names if path != index.markers_path])


def replace_in_month(store: ObjectStore, marker: Collected) -> bool:
    """Replace the entry of a WARC in its month; return False if it has none there.

    The day stays what it was for those who follow it: the fingerprint is that of the WARC.
    """
    key = (str(marker.day), marker.warc)
    for _ in range(_ATTEMPTS):
        index = find_month(store, marker.day)
        if not any((unit.day, unit.warc) == key for unit in index.units):
            return False
        with suppress(Conflict, NotFound):
            markers = dict(read_month_markers(store, index.markers_path)) | {key: marker}
            replaced = _write_month(store, marker.day, markers, base=index)
            _delete_unnamed(store, store.list(month_folder(marker.day)), replaced)
            return True
    raise Conflict(f"cannot change the markers of {marker.day:%Y-%m}: they keep changing")


def remove_from_month(store: ObjectStore, day: date, warc: str) -> None:
    """Remove the entry of a WARC from its month, if it has one, so that it is not collected."""
    for _ in range(_ATTEMPTS):
        index = find_month(store, day)
        if not any((unit.day, unit.warc) == (str(day), warc) for unit in index.units):
            return
        with suppress(Conflict, NotFound):
            kept = dict(read_month_markers(store, index.markers_path))
            kept.pop((str(day), warc), None)
            replaced = _write_month(store, day, kept, base=index)
            _delete_unnamed(store, store.list(month_folder(day)), replaced)
            return
    raise Conflict(f"cannot change the markers of {day:%Y-%m}: they keep changing")
