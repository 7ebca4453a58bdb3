"""Keep collected WARCs true to their sources: notes about them, nightly checks, corrected markers.

`news/broken/WARC.json` counts equal failures of one version of a file (its size and ETag). After
enough of them, or once an operator accepts the file, what can be read of it is published.
`news/republished/DAY/WARC.json` says that the source is not what was collected any more: the WARC
counts as missing until it is collected again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime, timedelta
from itertools import groupby
from urllib.parse import quote, unquote

import polars as pl

from news_platform.ccnews.listing import first_answering, listed_warcs
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.collected import COLLECTED, Collected
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.raw_news import (
    DROPPED,
    DROPPED_RESPONSES,
    FEED_CANDIDATES,
    PAGE_METADATA,
    RAW_NEWS,
    Warc,
    month_of,
)
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.storage.commit.collected import (
    amend_collected,
    combine_month,
    named_unit,
    newest_collected_days,
    read_collected,
)
from news_platform.storage.commit.markers import content_tag
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, scan_table

BROKEN = "news/broken"
REPUBLISHED = "news/republished"
# The crawl's web server answers 503 when it is asked too much at once.
_CONCURRENT_HEADS = 4


@dataclass(frozen=True, slots=True)
class BrokenNote:
    """How often one version of a WARC failed for the same reason, and whether it is accepted."""

    warc: str
    source_bytes: int
    source_etag: str
    reason: str = ""
    failures: int = 0
    accepted: bool = False

    def is_of(self, info: ObjectInfo) -> bool:
        """Return whether the note is about this version of the file."""
        return (self.source_bytes, self.source_etag) == (info.size_bytes, info.etag)

    def accepts(self, info: ObjectInfo, *, after: int) -> bool:
        """Return whether what can be read of this version counts, after so many failures."""
        return self.is_of(info) and (self.accepted or 0 < after <= self.failures)


def read_broken(root: ObjectStore) -> Mapping[str, BrokenNote]:
    """Return the notes about broken WARCs by name; one that cannot be parsed does not count."""
    found = (_parse_broken(root.read(info.path)) for info in root.list(BROKEN))
    return {note.warc: note for note in found if note}


def _parse_broken(body: bytes) -> BrokenNote | None:
    names = {field.name for field in fields(BrokenNote)}
    try:
        document = json.loads(body)
        return BrokenNote(**{key: value for key, value in document.items() if key in names})
    except (ValueError, TypeError, AttributeError):
        return None


def note_failure(
    root: ObjectStore, warc: str, *, info: ObjectInfo, reason: str, known: BrokenNote | None
) -> BrokenNote:
    """Count a failure of this version of a file; another version or reason starts at one."""
    fresh = BrokenNote(warc, info.size_bytes, info.etag, reason)
    is_same = known is not None and known.is_of(info) and known.reason in ("", reason)
    note = replace(known, reason=reason) if is_same and known else fresh
    return _write_broken(root, replace(note, failures=note.failures + 1))


def accept_broken(root: ObjectStore, warc: str, *, info: ObjectInfo) -> BrokenNote:
    """Accept this version of a WARC: its next run publishes what can be read of it."""
    known = read_broken(root).get(warc)
    is_same = known is not None and known.is_of(info)
    note = known if is_same and known else BrokenNote(warc, info.size_bytes, info.etag)
    return _write_broken(root, replace(note, accepted=True))


def _write_broken(root: ObjectStore, note: BrokenNote) -> BrokenNote:
    root.put(_broken_path(note.warc), json.dumps(asdict(note), indent=1).encode())
    return note


def forget_broken(root: ObjectStore, warc: str) -> None:
    """Delete the note about a WARC that was read to its end."""
    root.delete([_broken_path(warc)])


def _broken_path(warc: str) -> str:
    return f"{BROKEN}/{quote(warc, safe='')}.json"


@dataclass(frozen=True, slots=True)
class ChangedSource:
    """A collected WARC whose source has another size or ETag than when it was collected."""

    day: str
    warc: str
    collected_bytes: int
    source_bytes: int
    collected_etag: str
    source_etag: str


def find_changed_sources(
    crawl: ObjectStore, *, listed: Iterable[Warc], markers: Mapping[str, Collected]
) -> list[ChangedSource]:
    """Compare the collected WARCs among those listed with their sources, one HEAD each."""
    pairs = [(warc, markers[warc.name]) for warc in listed if warc.name in markers]
    with ThreadPoolExecutor(_CONCURRENT_HEADS) as threads:
        infos = list(threads.map(lambda pair: crawl.find(pair[0].path), pairs))
    return [
        ChangedSource(
            str(marker.day),
            marker.warc,
            marker.source_bytes,
            info.size_bytes,
            marker.source_etag,
            info.etag,
        )
        for (warc, marker), info in zip(pairs, infos, strict=True)
        if info is not None and has_changed(crawl, warc.path, info, marker)
    ]


def has_changed(crawl: ObjectStore, path: str, info: ObjectInfo, marker: Collected) -> bool:
    """Return whether a WARC is not the one that a marker was made from.

    The bytes of a local file are compared; of a remote one, what its server states about it.
    """
    if info.size_bytes != marker.source_bytes:
        return True
    if crawl.local_folder is not None:
        return content_tag(crawl, path, info.etag) != marker.source_digest
    # Two stores may give different ETags to the same bytes.
    is_comparable = marker.source == crawl.uri(path) and marker.source_etag and info.etag
    return bool(is_comparable and marker.source_etag != info.etag)


def note_republished(root: ObjectStore, changed: Iterable[ChangedSource]) -> None:
    """Record that these WARCs are to be collected again."""
    for one in changed:
        body = json.dumps(asdict(one), indent=1).encode()
        root.put(_republished_path(one.day, one.warc), body)


def list_republished(root: ObjectStore) -> Mapping[str, frozenset[str]]:
    """Return the names of the WARCs that were published again, by day."""
    days: dict[str, set[str]] = {}
    for info in root.list(REPUBLISHED):
        day, _, name = info.path.removeprefix(f"{REPUBLISHED}/").partition("/")
        if name.endswith(".json"):
            days.setdefault(day, set()).add(unquote(name.removesuffix(".json")))
    return {day: frozenset(names) for day, names in days.items()}


def forget_republished(root: ObjectStore, *, day: date, warc: str) -> None:
    """Delete the note about a WARC that was collected again."""
    root.delete([_republished_path(str(day), warc)])


def _republished_path(day: str, warc: str) -> str:
    return f"{REPUBLISHED}/{day}/{quote(warc, safe='')}.json"


# Of younger months WARCs still arrive and may be redone, one marker each.
_LOOSE_DAYS = 62


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What one night found and did."""

    checked_days: int
    changed: tuple[ChangedSource, ...]
    markers_combined: int
    dropped_files_deleted: int


def maintain_crawl(
    root: ObjectStore,
    *,
    crawl: tuple[ObjectStore, ...],
    now: datetime,
    recheck_days: int,
    dropped_days: int,
) -> MaintenanceReport:
    """Check the newest days' sources, combine old markers, delete expired dropped_responses."""
    days = newest_collected_days(root, count=recheck_days)
    changed = check_sources(root, crawl=crawl, days=days)
    return MaintenanceReport(
        checked_days=len(days),
        changed=tuple(changed),
        markers_combined=combine_old_months(root, today=now.date()),
        dropped_files_deleted=delete_expired_drops(root, now=now, days=dropped_days),
    )


def check_sources(
    root: ObjectStore, *, crawl: tuple[ObjectStore, ...], days: Sequence[date]
) -> list[ChangedSource]:
    """Find the collected WARCs of these days that were published again, and note them."""
    found: list[ChangedSource] = []
    for month, ours in groupby(sorted(days), key=month_of):
        source = first_answering(crawl, month=month)
        for day in ours:
            markers = {marker.warc: marker for marker in read_collected(root, [day])}
            listed = listed_warcs(source, root, day=day)
            found += find_changed_sources(source, listed=listed, markers=markers)
    note_republished(root, found)
    return found


def combine_old_months(root: ObjectStore, *, today: date) -> int:
    """Combine the markers of months that ended long ago; return how many were moved."""
    newest = month_of(today - timedelta(days=_LOOSE_DAYS))
    units = (named_unit(info.path) for info in root.list(COLLECTED))
    months = {month_of(date.fromisoformat(unit.day)) for unit in units if unit}
    return sum(combine_month(root, month) for month in sorted(months) if month < newest)


def delete_expired_drops(root: ObjectStore, *, now: datetime, days: int) -> int:
    """Delete the files of dropped_responses that are older than so many days."""
    before = now - timedelta(days=days)
    expired = [info.path for info in root.list(DROPPED) if info.modified_at < before]
    root.delete(expired)
    return len(expired)


_KEPT = (CAPTURES, PAGE_METADATA, FEED_CANDIDATES)
_TABLES = (RAW_NEWS, *_KEPT, DROPPED_RESPONSES)


def recount_day(store: ObjectStore, day: str) -> None:
    """Correct the markers of a day; their names stay, so nothing that follows becomes stale."""
    files = {table: ParquetEngine(store, table).files([day]).get(day, []) for table in _TABLES}
    for marker in read_collected(store, [date.fromisoformat(day)]):
        own = {
            table: [info for info in infos if path_values(info.path)["filename"] == marker.warc]
            for table, infos in files.items()
        }
        if not marker.is_expired:
            _recount(store, marker, own)


def _recount(
    store: ObjectStore, marker: Collected, files: Mapping[Dataset, list[ObjectInfo]]
) -> None:
    def rows(table: Dataset) -> pl.LazyFrame:
        return scan_table(store, [info.path for info in files[table]], table)

    def height(table: Dataset, before: int) -> int:
        # The files of dropped_responses expire.
        return int(rows(table).select(pl.len()).collect().item()) if files[table] else before

    counted = rows(RAW_NEWS).group_by("main_lang").len().collect()
    languages = dict(sorted(counted.iter_rows()))
    pages = sum(languages.values())
    # A language without pages has no file.
    empty = [one for one in files[RAW_NEWS] if path_values(one.path)["main_lang"] not in languages]
    store.delete([info.path for info in empty])
    kept = [info for info in files[RAW_NEWS] if info not in empty]
    dropped = dict(marker.dropped)
    if files[DROPPED_RESPONSES]:
        counted = rows(DROPPED_RESPONSES).group_by("reason").len().collect()
        refused = {key: count for key, count in dropped.items() if key == TAKEN_DOWN}
        dropped = dict(counted.iter_rows()) | refused
    lost = marker.rows - pages + sum(marker.dropped.values()) - sum(dropped.values())
    if lost:
        dropped[TAKEN_DOWN] = dropped.get(TAKEN_DOWN, 0) + lost
    amended = replace(
        marker,
        rows=pages,
        bytes=sum(one.size_bytes for one in (*kept, *(it for one in _KEPT for it in files[one]))),
        languages=languages,
        dropped=dict(sorted(dropped.items())),
        captures=height(CAPTURES, marker.captures or 0),
        feed_candidates=height(FEED_CANDIDATES, marker.feed_candidates),
        dropped_responses=height(DROPPED_RESPONSES, marker.dropped_responses),
    )
    if amended != marker:
        amend_collected(store, amended)
