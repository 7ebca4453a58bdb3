"""Writes the next generation of one bucket: merge, index, manifest, commit, view."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from news_platform.datasets.domain_store import RANGES
from news_platform.domain_store.building.index import build_index, sums
from news_platform.domain_store.building.merge import (
    MergeSource,
    iter_segment_sources,
    iter_staged_sources,
    read_kept_ranges,
    write_segment,
)
from news_platform.domain_store.building.tiers import Merge
from news_platform.domain_store.building.uploads import Uploads
from news_platform.domain_store.commit import Current, commit, retired_files, without_expired
from news_platform.domain_store.layout import index_path, ranges_path
from news_platform.domain_store.manifest import BatchEntry, Index, Manifest, Segment
from news_platform.domain_store.options import BuildOptions
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes


@dataclass(frozen=True, slots=True)
class BatchChange:
    """Versions of batches to take up, and batches whose present version no longer counts."""

    added: Mapping[str, str]
    dropped: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


def plan_batch_change(
    manifest: Manifest | None, wanted: Mapping[str, str], *, limit: int
) -> BatchChange:
    """Return the next step from a manifest to the wanted versions: at most `limit` additions."""
    taken = manifest.batch_inputs if manifest else {}
    changed = sorted(batch for batch in wanted if taken.get(batch) != wanted[batch])
    added = {batch: wanted[batch] for batch in changed[:limit]}
    gone = taken.keys() - wanted.keys()
    return BatchChange(added, frozenset(gone | (added.keys() & taken.keys())))


def without_batches(manifest: Manifest | None, dropped: frozenset[str]) -> tuple[Segment, ...]:
    """Return the segments that still hold something when these batches are dropped."""
    segments = manifest.segments if manifest else ()
    reduced = (
        replace(part, dropped=tuple(sorted({*part.dropped, *(dropped & part.batches.keys())})))
        for part in segments
    )
    return tuple(segment for segment in reduced if segment.live)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A version of a batch that is to be taken up, and how many files it has in this bucket."""

    batch: str
    inputs: str
    name: str
    files: int


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """What the next generation of a bucket consists of."""

    fresh: tuple[NewBatch, ...]
    merge: Merge
    empty: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Builder:
    """What every step of a build needs."""

    store: ObjectStore
    uploads: Uploads
    buckets: int
    options: BuildOptions
    now: datetime

    def write_generation(
        self, bucket: int, base: Current, plan: GenerationPlan
    ) -> tuple[Manifest, int]:
        """Build and commit; return the new manifest and the data bytes written for it."""
        segments, ranges = list(plan.merge.kept), []
        if base.manifest is not None and segments:
            ranges = read_kept_ranges(self.store, base.manifest, segments)
        written = self._merged(bucket, base, plan)
        if written is not None:
            segments.append(written[0])
            ranges.append(written[1])
        # Oldest first, as readers will meet them.
        segments.sort(key=lambda segment: max(segment.live))
        index = self._write_index(bucket, base, segments, ranges)
        self.uploads.finish()
        manifest = self._commit(bucket, base, plan, segments=tuple(segments), index=index)
        return manifest, written[0].size_bytes if written else 0

    def _merged(
        self, bucket: int, base: Current, plan: GenerationPlan
    ) -> tuple[Segment, pl.DataFrame] | None:
        sources = list(self._iter_sources(bucket, plan))
        if not sources:
            return None
        old = {name: batch for part in plan.merge.absorbed for name, batch in part.live.items()}
        new = {f.batch: BatchEntry(f.inputs, self._at) for f in plan.fresh if f.files}
        batches = {**old, **new}
        name = base.file_name(*(f"{key} {batch.inputs}" for key, batch in batches.items()))
        return write_segment(
            self.store,
            sources,
            self.uploads,
            bucket=bucket,
            name=name,
            batches=batches,
            options=self.options,
        )

    def _iter_sources(self, bucket: int, plan: GenerationPlan) -> Iterator[MergeSource]:
        for segment in plan.merge.absorbed:
            yield from iter_segment_sources(self.store, segment)
        for fresh in plan.fresh:
            yield from iter_staged_sources(
                self.store, bucket, batch=fresh.batch, name=fresh.name, files=fresh.files
            )

    def _write_index(
        self, bucket: int, base: Current, segments: list[Segment], ranges: list[pl.DataFrame]
    ) -> Index:
        file = build_index(segments, ranges, bucket=bucket, uri=self.store.uri)
        table_body = parquet_bytes(file.ranges, RANGES)
        # The table says all that the index says, but for the place of the root.
        name = base.file_name("index", hashlib.sha256(table_body).hexdigest())
        path, table = index_path(bucket, name), ranges_path(bucket, name)
        self.uploads.put(path, file.body)
        self.uploads.put(table, table_body)
        return Index(path, len(file.body), table, sparse=file.sparse, **sums(file.ranges))

    def _commit(
        self,
        bucket: int,
        base: Current,
        plan: GenerationPlan,
        *,
        segments: tuple[Segment, ...],
        index: Index,
    ) -> Manifest:
        draft = Manifest(bucket, self.buckets, 0, index, segments=segments, empty=plan.empty)
        retired = retired_files(base.manifest, draft.paths, at=self._at)
        oldest = int((self.now - self.options.grace).timestamp())
        draft, expired = without_expired(replace(draft, retired=retired), before=oldest)
        manifest = commit(self.store, base, lambda number: replace(draft, generation=number))
        self.store.delete(expired)
        return manifest

    @property
    def _at(self) -> int:
        return int(self.now.timestamp())
