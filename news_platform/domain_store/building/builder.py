"""Plan and write the next generation of one bucket: merge, index, manifest, commit.

Segments are kept like the digits of a counter: with a fan of 8 there are at most 7 that hold about
one batch, 7 of about 8, 7 of about 64. The batch that would make an eighth carries: all are merged
into one segment of the next size, over as many sizes as the carry goes, in one copy.

Inputs that disappear are removed from the store, which is right for one day and a disaster for all
of them: an unmounted folder or a mistyped root looks like ten years of removed days. A brake counts
the records that would go, and refuses too many.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain

import polars as pl

from news_platform.datasets.domain_store import DOMAIN_BUCKETS, RANGES
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.datasets.domain_store import STAGED_ROOT as STAGED
from news_platform.domain_store.building.merge import (
    build_index,
    index_totals,
    iter_segment_sources,
    iter_staged_sources,
    read_kept_ranges,
    records_by_batch,
    write_segment,
)
from news_platform.domain_store.data_files import Uploads
from news_platform.domain_store.layout import BuildOptions, index_path, ranges_path
from news_platform.domain_store.manifest import (
    BatchEntry,
    Batches,
    Current,
    Index,
    Manifest,
    Segment,
    commit,
    read_current,
    retired_files,
    without_expired,
)
from news_platform.domain_store.staging.stage import Staged
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.markers import Marker, read_markers, read_report
from news_platform.storage.engines import require_small_share
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import require_same_takedowns
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns

# Of one segment. Years of days that are staged again must not make the manifest longer and longer.
MAX_DROPPED = 64


@dataclass(frozen=True, slots=True)
class Merge:
    """The segments that become part of the new one, and those that are kept."""

    absorbed: tuple[Segment, ...]
    kept: tuple[Segment, ...]


def tier(batches: int, fan: int) -> int:
    """Return the size class of a segment with this number of batches."""
    size = 0
    while batches >= fan:
        batches, size = batches // fan, size + 1
    return size


def plan_merge(segments: Sequence[Segment], new_batches: int, *, fan: int) -> Merge:
    """Choose the segments to merge with `new_batches`; there may be none.

    A segment of which at least half the batches, or many, were dropped is always rewritten.
    """
    absorbed = [segment for segment in segments if _is_worn(segment)]
    kept = [segment for segment in segments if segment not in absorbed]
    total = new_batches + sum(len(segment.live) for segment in absorbed)
    size = tier(total, fan) if total else 0
    while kept:
        same = [segment for segment in kept if tier(len(segment.live), fan) == size]
        if len(same) + (total > 0) < fan:
            break
        absorbed += same
        kept = [segment for segment in kept if segment not in same]
        total += sum(len(segment.live) for segment in same)
        # The merged segment may itself complete a set of `fan` segments of the next size.
        size = max(size + 1, tier(total, fan))
    return Merge(tuple(absorbed), tuple(kept))


def _is_worn(segment: Segment) -> bool:
    # Mostly dropped batches: rewriting gives their space back. Many: the manifest names them.
    return len(segment.dropped) >= min(len(segment.live), MAX_DROPPED)


@dataclass(frozen=True, slots=True)
class BatchChange:
    """Batches to add, each with the fingerprint of its inputs, and batches to drop."""

    added: Mapping[str, str]
    dropped: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


def plan_batch_change(
    manifest: Manifest | None, wanted: Mapping[str, str], *, limit: int
) -> BatchChange:
    """Return the next step towards the wanted batches: at most `limit` additions.

    A batch whose inputs changed is both dropped and added.
    """
    held = manifest.batch_inputs if manifest else {}
    # Sorted, so that the oldest batches come first when there are more than `limit`.
    changed = sorted(batch for batch in wanted if held.get(batch) != wanted[batch])
    added = {batch: wanted[batch] for batch in changed[:limit]}
    gone = held.keys() - wanted.keys()
    return BatchChange(added, frozenset(gone | (added.keys() & held.keys())))


def without_batches(manifest: Manifest | None, dropped: frozenset[str]) -> tuple[Segment, ...]:
    """Drop batches from all segments; return the segments that still hold a batch."""
    segments = manifest.segments if manifest else ()
    reduced = (
        replace(part, dropped=tuple(sorted({*part.dropped, *(dropped & part.live.keys())})))
        for part in segments
    )
    return tuple(segment for segment in reduced if segment.live)


@dataclass(frozen=True, slots=True)
class Builder:
    """Writes generations of buckets, with the resources that every step needs."""

    store: ObjectStore
    uploads: Uploads
    buckets: int
    options: BuildOptions
    now: datetime
    takedowns: Takedowns = NO_TAKEDOWNS

    def write_generation(
        self,
        bucket: int,
        base: Current,
        merge: Merge,
        *,
        staged: Staged,
        added: Collection[str] = (),
    ) -> tuple[Manifest, int]:
        """Build and commit a generation with some staged batches added.

        Return its manifest and the bytes of data written.
        """
        segments, ranges = list(merge.kept), []
        if base.manifest is not None and segments:
            ranges = read_kept_ranges(self.store, base.manifest, segments)
        batches = {name: batch for part in merge.absorbed for name, batch in part.live.items()}
        batches |= {name: BatchEntry(staged.inputs[name], self._seconds) for name in added}
        written = 0
        if batches:
            segment, own = self._write_segment(bucket, base, merge, batches, staged, added)
            segments.append(segment)
            ranges.append(own)
            written = segment.size_bytes
        # Readers return the records of a domain in this order: oldest batch first.
        segments.sort(key=lambda segment: max(segment.live))
        index = self.write_index(bucket, base, segments, ranges)
        # Every file must exist before the manifest that names it.
        self.uploads.finish()
        return self._commit(bucket, base, segments=tuple(segments), index=index), written

    def _write_segment(
        self,
        bucket: int,
        base: Current,
        merge: Merge,
        batches: Batches,
        staged: Staged,
        added: Collection[str],
    ) -> tuple[Segment, pl.DataFrame]:
        # The same step after a crash gets the same names, so it replaces files instead of adding.
        name = base.file_name(*(f"{key} {batch.inputs}" for key, batch in batches.items()))
        old = (iter_segment_sources(self.store, segment) for segment in merge.absorbed)
        new = (iter_staged_sources(staged, batch, bucket) for batch in added)
        return write_segment(
            self.store,
            list(chain(*old, *new)),
            self.uploads,
            base=base,
            bucket=bucket,
            name=name,
            batches=batches,
            options=self.options,
        )

    def write_index(
        self, bucket: int, base: Current, segments: list[Segment], ranges: list[pl.DataFrame]
    ) -> Index:
        """Upload the index of some segments, given by the byte ranges of each."""
        file = build_index(segments, ranges, bucket=bucket, uri=self.store.uri)
        table_body = parquet_bytes(file.ranges, RANGES)
        # The table has all but the `filepath` of the index, so copies of a root agree on the name.
        name = base.file_name("index", hashlib.sha256(table_body).hexdigest())
        path, table = index_path(bucket, name), ranges_path(bucket, name)
        self.uploads.put(path, file.body)
        self.uploads.put(table, table_body)
        return Index(path, len(file.body), table, sparse=file.sparse, **index_totals(file.ranges))

    def _commit(
        self,
        bucket: int,
        base: Current,
        *,
        segments: tuple[Segment, ...],
        index: Index,
    ) -> Manifest:
        draft = Manifest(bucket, self.buckets, 0, index, segments=segments)
        retired = retired_files(base.manifest, draft.paths, at=self._seconds)
        oldest = int((self.now - self.options.grace).timestamp())
        draft, expired = without_expired(replace(draft, retired=retired), before=oldest)
        require_same_takedowns(self.store, self.takedowns, now=self.now)
        manifest = commit(self.store, base, lambda number: replace(draft, generation=number))
        # After the commit, see `manifest.py`.
        self.store.delete(expired)
        return manifest

    @property
    def _seconds(self) -> int:
        return int(self.now.timestamp())


@dataclass(frozen=True, slots=True)
class Removal:
    """The records that would go, by batch, out of the `held` records of the store."""

    batches: Mapping[str, int]
    held: int

    @property
    def records(self) -> int:
        """Return the number of records that would go."""
        return sum(self.batches.values())


def require_allowed(removal: Removal, options: BuildOptions) -> None:
    """Raise StorageError when more records would go than the options allow."""
    if not options.allow_removal:
        require_small_share(
            STORE,
            removal.batches,
            removal.held,
            share=options.removal_share,
        )


def staging_removal(store: ObjectStore, days: Collection[str] | None = None) -> Removal:
    """Count what staging all stale days would remove; nothing when it keeps the records of `days`.

    `days` are those that the caller stages now, None for all. All stale days count: each run of
    Dagster stages a few of them, and every one by itself looks harmless.
    """
    markers, wanted = read_markers(store, STAGED), wanted_inputs(store, DOMAIN_BUCKETS)
    stale = [day for day in wanted if day in markers and wanted[day] != markers[day].inputs]
    if not (stale if days is None else set(days) & set(stale)):
        return Removal({}, 0)
    # Many small files, read one after the other, would take minutes on an object store.
    with ThreadPoolExecutor(16) as pool:
        counts = pool.map(lambda marker: _staged_records(store, marker), markers.values())
        held = dict(zip(markers, counts, strict=True))
        now = dict(zip(stale, pool.map(lambda day: _collected_rows(store, day), stale)))  # noqa: B905
    lost = {day: held[day] - now[day] for day in stale if held[day] > now[day]}
    is_ours = days is None or not lost.keys().isdisjoint(days)
    return Removal(lost if is_ours else {}, sum(held.values()))


def batch_removal(store: ObjectStore, batch: str, rows: int) -> Removal:
    """Count what staging so many rows as a batch would remove."""
    markers = read_markers(store, STAGED)
    held = {name: _staged_records(store, marker) for name, marker in markers.items()}
    lost = held.get(batch, 0) - rows
    return Removal({batch: lost} if lost > 0 else {}, sum(held.values()))


def _staged_records(store: ObjectStore, marker: Marker) -> int:
    return int(str(read_report(store, marker).get("records", 0)))


def _collected_rows(store: ObjectStore, day: str) -> int:
    return sum(marker.rows for marker in read_collected(store, [date.fromisoformat(day)]))


def building_removal(
    store: ObjectStore, manifests: Iterable[Manifest | None], staged: Staged
) -> Removal:
    """Count what building would remove from the whole store.

    `manifests` are those of the buckets that are built now. Only when these lose records are all
    other buckets read, too.
    """
    if not any(records > 0 for records in _lost(store, manifests, staged).values()):
        return Removal({}, 0)
    with ThreadPoolExecutor(16) as pool:
        numbers = range(staged.buckets)
        currents = pool.map(lambda one: read_current(store, one, with_batches=True), numbers)
        everywhere = [current.manifest for current in currents]
    lost = _lost(store, everywhere, staged)
    held = sum(manifest.index.records for manifest in everywhere if manifest)
    return Removal({batch: count for batch, count in lost.items() if count > 0}, held)


def _lost(store: ObjectStore, manifests: Iterable[Manifest | None], staged: Staged) -> Counter[str]:
    """Return the records that each batch would lose in these buckets; negative when it gains."""
    lost: Counter[str] = Counter()
    for manifest in manifests:
        held = manifest.batch_inputs if manifest else {}
        changed = {batch for batch in held if staged.inputs.get(batch) != held[batch]}
        if manifest is None or not changed:
            continue
        counts = records_by_batch(store, manifest, changed)
        for batch in changed:
            new = staged.records(batch, manifest.bucket) if batch in staged.inputs else 0
            lost[batch] += counts.get(batch, 0) - new
    return lost
