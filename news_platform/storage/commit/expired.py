"""Record which WARCs of raw_news are expired: their files, or all page sources in them, are gone.

The domain store holds their rows.

`news/expired/YYYY-MM.json` lists them, and their collected markers stay as they are: nothing that
follows a day becomes stale, and the WARCs count as collected.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace

from news_platform.datasets.collected import Collected
from news_platform.errors import Conflict, StorageError, require_format
from news_platform.storage.commit.collected_months import CollectedUnit
from news_platform.storage.objects.store import NotFound, ObjectStore

EXPIRED = "news/expired"
# The column of page sources, which may expire alone.
TREE = "tree"
_FORMAT = 1
# Two processes may expire days of the same month.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class ExpiredWarc:
    """An expired WARC; one that was collected again has another `attempt` and is not expired."""

    day: str
    warc: str
    attempt: str
    fingerprint: str
    expired_at: str
    # The column that is empty; "": all files are gone. Rewriting them takes time, so it may not be
    # done yet.
    column: str = ""
    is_done: bool = True


Records = dict[tuple[str, str], ExpiredWarc]


def expired_warc(
    marker: Collected, *, expired_at: str, column: str = "", is_done: bool = True
) -> ExpiredWarc:
    """Return the record of a WARC that expires now, as a whole or with one column."""
    day, warc = str(marker.day), marker.warc
    return ExpiredWarc(
        day, warc, marker.attempt, marker.fingerprint, expired_at, column=column, is_done=is_done
    )


def read_expired(store: ObjectStore, days: Iterable[str]) -> Mapping[tuple[str, str], ExpiredWarc]:
    """Return the records of the months of these days, by day and WARC."""
    months = {day[:7] for day in days}
    found: Records = {}
    # Listed first: most roots have no such file, and a LIST costs less than a miss per month.
    for info in store.list(EXPIRED) if months else ():
        if info.path.rpartition("/")[2].removesuffix(".json") in months:
            found |= _read(store, info.path)[0]
    return found


def with_expiry(marker: Collected, records: Mapping[tuple[str, str], ExpiredWarc]) -> Collected:
    """Return the marker with what a record says that is about this very collection of the WARC."""
    record = records.get((str(marker.day), marker.warc))
    if record is None or record.attempt != marker.attempt:
        return marker
    return replace(marker, is_expired=not record.column, is_tree_expired=record.column == TREE)


def without_expired(store: ObjectStore, units: Iterable[CollectedUnit]) -> list[CollectedUnit]:
    """Return the listed WARCs that are still whole, without reading their markers."""
    given = list(units)
    records = read_expired(store, {unit.day for unit in given})
    gone = {(record.day, record.warc, record.fingerprint) for record in records.values()}
    return [unit for unit in given if (unit.day, unit.warc, unit.fingerprint) not in gone]


def record_expired(store: ObjectStore, expired: Iterable[ExpiredWarc]) -> None:
    """Add records, month by month; each month is replaced at once."""
    months: dict[str, Records] = {}
    for one in expired:
        months.setdefault(one.day[:7], {})[one.day, one.warc] = one
    for month, records in months.items():
        _add(store, f"{EXPIRED}/{month}.json", records)


def _add(store: ObjectStore, path: str, records: Records) -> None:
    for _ in range(_ATTEMPTS):
        held, etag = _read(store, path)
        rows = [asdict(one) for _, one in sorted((held | records).items())]
        body = json.dumps({"format": _FORMAT, "warcs": rows}, ensure_ascii=False, indent=1)
        try:
            store.compare_and_set(path, body.encode(), etag=etag)
        except Conflict:
            continue
        return
    raise Conflict(f"cannot replace {path!r}: others keep changing it; try again", thing=path)


def _read(store: ObjectStore, path: str) -> tuple[Records, str | None]:
    try:
        body, info = store.read_with_info(path)
    except NotFound:
        return {}, None
    try:
        document = json.loads(body)
        require_format(document.get("format"), _FORMAT, path=path)
        rows = [
            ExpiredWarc(**{name: row[name] for name in _FIELDS if name in row})
            for row in document["warcs"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"cannot parse {path!r}: restore it, or its WARCs count as damaged"
        raise StorageError(message, thing=path) from error
    return {(row.day, row.warc): row for row in rows}, info.etag


_FIELDS = tuple(one.name for one in fields(ExpiredWarc))
