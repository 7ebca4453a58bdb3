"""Combine the `collected` markers of a month into one table, so that old months list quickly.

`news/collected/YYYY/MM/month.jsonl.gz` has, after a line with its version, one line per WARC: its
marker, with the moment at which its raw_news files expired, if they did. Ten years of the crawl are
then 120 objects instead of 65,700, and a process reads each version of a table once. A marker of
its own, written after its month was combined, replaces the row of its WARC.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache, partial
from uuid import uuid4

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
from news_platform.errors import Conflict, StorageError
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


def _table_path(month: date) -> str:
    return f"{month_folder(month)}/{_TABLE}"


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
        info = store.find(_table_path(month))
        return table_units(store, info.path, info.etag) if info is not None else ()
    return ()


@lru_cache(1024)
def table_units(store: ObjectStore, path: str, etag: str) -> tuple[CollectedUnit, ...]:
    """Return the WARCs of a table that was listed with this ETag; it is read once per process."""
    return tuple(
        CollectedUnit(day, warc, path, marker.fingerprint, marker.is_expired)
        for (day, warc), marker in sorted(_parse(store.read(path), path=path).items())
    )


def read_table(store: ObjectStore, month: date) -> Rows:
    """Return the markers in the table of a month, none if it was never combined."""
    return _read_table(store, month)[0]


def _read_table(store: ObjectStore, month: date) -> tuple[Rows, str | None]:
    path = _table_path(month)
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
            store.compare_and_set(_table_path(month), _dump(changed), etag=etag)
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

    store.put_if_absent(_table_path(month), _dump({}))
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
