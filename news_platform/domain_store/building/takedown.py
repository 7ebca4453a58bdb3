"""Remove taken-down records from the buckets of the store, and old generations at once.

A touched segment is written again: gzip members are copied, and only those that hold a covered
record are encoded again. Then all files that the new generation does not name are deleted without
waiting for the grace period, because they hold what must go; a reader of an older generation gets
an error that names the missing file and starts over at the newest one.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import polars as pl

from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.datasets.domain_store import DOMAIN_CATALOG, RECORDS
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.domain_store.building.builder import Builder
from news_platform.domain_store.building.merge import (
    MergeSource,
    iter_segment_sources,
    read_entries,
    read_kept_ranges,
    write_segment,
)
from news_platform.domain_store.building.uploads import open_uploads, scratch_errors
from news_platform.domain_store.catalog import read_catalog, write_catalog_now
from news_platform.domain_store.commit import (
    Current,
    commit,
    read_bucket_count,
    read_current,
    refresh_view,
)
from news_platform.domain_store.layout import (
    STORE_FILE,
    bucket_folders,
    current_path,
    data_path,
    manifest_path,
    records_path,
    view_path,
)
from news_platform.domain_store.manifest import Manifest, Segment
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.rewriting import rewrite_run
from news_platform.domain_store.staging.takedown import (
    clean_batch,
    find_staged,
    line_url,
    touched_buckets,
)
from news_platform.storage.commit.markers import read_inputs
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import covered_urls


def takedown_parts(
    store: ObjectStore, *, options: BuildOptions, now: datetime
) -> list[TakedownPart]:
    """Return the parts of the staged batches, the store by bucket, and the catalog."""
    clean = partial(clean_bucket, store, options=options, now=now)
    return [
        SimplePart(STAGED, partial(find_staged, store), partial(clean_batch, store)),
        SimplePart(STORE, partial(find_buckets, store), lambda key, it: clean(int(key), it)),
        SimplePart(
            DOMAIN_CATALOG.name,
            partial(find_in_catalog, store),
            lambda _, it: clean_catalog(store, it),
        ),
    ]


def find_buckets(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered records by bucket, and every touched bucket that keeps old files."""
    if not store.exists(STORE_FILE):
        return {}
    found: dict[str, int] = {}
    for bucket in touched_buckets(takedowns, read_bucket_count(store)):
        tables = [info.path for info in store.list(f"{STORE}/records/{bucket}")]
        rows = _covered(store, tables, takedowns).height
        current = read_current(store, bucket)
        if rows or _unneeded(_listed(store, bucket), current.manifest, bucket):
            found[str(bucket)] = rows
    return found


def _covered(store: ObjectStore, tables: Sequence[str], takedowns: Takedowns) -> pl.DataFrame:
    rows = scan_table(store, tables, RECORDS).select("domain", "batch", "url")
    likely = rows.filter(pl.col("domain").is_in(list(takedowns.registrable_domains))).collect()
    return likely.filter(pl.col("url").is_in(list(covered_urls(likely["url"], takedowns))))


def _listed(store: ObjectStore, bucket: int) -> list[ObjectInfo]:
    return [info for folder in bucket_folders(bucket) for info in store.list(folder)]


def _unneeded(
    listed: Iterable[ObjectInfo], manifest: Manifest | None, bucket: int
) -> list[ObjectInfo]:
    """Return the files of older generations, of builds under way and of those that died."""
    needed = {current_path(bucket)}
    if manifest is not None:
        needed |= manifest.paths | {manifest_path(bucket, manifest.generation)}
    return [info for info in listed if info.path not in needed]


def clean_bucket(
    store: ObjectStore, bucket: int, takedowns: Takedowns, *, options: BuildOptions, now: datetime
) -> RemovedData:
    """Write the next generation of a bucket without covered records, and delete all older ones.

    Raise Conflict if another writer commits first.
    """
    # Before the commit: whatever is listed here was made for an older generation, and nobody can
    # commit it any more.
    listed = _listed(store, bucket)
    current = read_current(store, bucket)
    if current.manifest is None:
        return RemovedData()
    with scratch_errors(options.scratch), open_uploads(store, options.uploads) as uploads:
        builder = Builder(store, uploads, current.manifest.buckets, options, now, takedowns)
        made = _Rewriting(builder, bucket, current, takedowns).run()
    if made.manifest is None and not _unneeded(listed, current.manifest, bucket):
        return RemovedData()
    kept = made.manifest or current.manifest
    manifest = commit(store, current, lambda number: replace(kept, generation=number, retired={}))
    gone = [*_unneeded(listed, manifest, bucket), *_scratch(store, made.scratch)]
    store.delete(info.path for info in gone)
    if store.exists(view_path(bucket)):
        refresh_view(store, manifest)
    size = sum(info.size_bytes for info in gone)
    return RemovedData(made.rows, max(0, size - made.written), made.written)


def _scratch(store: ObjectStore, paths: Iterable[str]) -> list[ObjectInfo]:
    return [info for info in map(store.find, paths) if info is not None]


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A manifest without covered records, None if the bucket had none; rows gone, bytes written."""

    manifest: Manifest | None = None
    rows: int = 0
    written: int = 0
    scratch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Rewrites the segments of one bucket that hold covered records."""

    builder: Builder
    bucket: int
    current: Current
    takedowns: Takedowns

    def run(self) -> _Rewritten:
        """Write new segments and the index of all; the caller commits."""
        manifest = self.current.manifest
        assert manifest is not None
        touched = {
            segment.name: rows
            for segment in manifest.segments
            if (rows := self._covered(segment)).height
        }
        if not touched:
            return _Rewritten()
        kept = [segment for segment in manifest.segments if segment.name not in touched]
        ranges = read_kept_ranges(self.builder.store, manifest, kept) if kept else []
        segments, written = list(kept), 0
        scratch: list[str] = []
        for segment in manifest.segments:
            if segment.name in touched:
                part = self._rewrite(segment, touched[segment.name])
                scratch += part.scratch
                written += part.written
                if part.segment is not None:
                    segments.append(part.segment)
                    ranges.append(part.ranges)
        order = {name: place for place, name in enumerate(_origin(manifest, segments))}
        segments.sort(key=lambda segment: order[segment.name])
        index = self.builder.write_index(self.bucket, self.current, segments, ranges)
        self.builder.uploads.finish()
        empty = {**manifest.empty, **_emptied(manifest, segments)}
        made = replace(manifest, index=index, segments=tuple(segments), empty=empty)
        gone = sum(frame.height for frame in touched.values())
        return _Rewritten(made, gone, written, tuple(scratch))

    def _covered(self, segment: Segment) -> pl.DataFrame:
        path = records_path(self.bucket, segment.name)
        rows = _covered(self.builder.store, [path], self.takedowns)
        return rows.filter(pl.col("batch").is_in(list(segment.live)))

    def _rewrite(self, segment: Segment, covered: pl.DataFrame) -> "_NewSegment":
        store, builder = self.builder.store, self.builder
        runs = covered.select("domain", "batch").unique()
        whole = list(iter_segment_sources(store, segment))
        sources = [_without_runs(source, runs) for source in whole]
        name = self.current.file_name("takedown", segment.name, self.takedowns.fingerprint)
        scratch = data_path(self.bucket, f"{name}s", number=0)
        again = self._encoded_again(segment, runs, whole[0].records, scratch)
        if again is not None:
            sources.append(again)
        if not sum(source.entries.height for source in sources):
            return _NewSegment(None, pl.DataFrame(), 0, ())
        written, ranges = write_segment(
            store,
            sources,
            builder.uploads,
            bucket=self.bucket,
            name=name,
            batches=segment.live,
            options=builder.options,
        )
        used = (scratch,) if again is not None else ()
        size = written.size_bytes + (again.size_bytes if again is not None else 0)
        return _NewSegment(written, ranges, size, used)

    def _encoded_again(
        self, segment: Segment, runs: pl.DataFrame, records: pl.DataFrame, path: str
    ) -> MergeSource | None:
        """Write what stays of the touched runs to a file that is merged like any other."""
        sink, rows, facts = io.BytesIO(), [], []
        entries = read_entries(self.builder.store, segment).join(runs, on=["domain", "batch"])
        for entry in entries.sort("domain", "batch", "file", "offset").iter_rows(named=True):
            if self.takedowns.covers_domain(entry["domain"]):
                continue  # nothing of it stays, so it need not be read
            raw = self.builder.store.read_range(
                segment.files[entry["file"]].path, entry["offset"], entry["length"]
            )
            found = rewrite_run(raw, self._stays)
            stays = pl.Series(found.kept, dtype=pl.Boolean)
            own = records.filter(
                (pl.col("domain") == entry["domain"]) & (pl.col("batch") == entry["batch"])
            )
            # A run may lie in two files, each with its part of the records.
            own = own.slice(_before(entries, entry), stays.len()).filter(stays)
            if own.height:
                rows.append(_entry(own, offset=sink.tell(), length=len(found.body)))
                facts.append(own)
                sink.write(found.body)
        if not rows:
            return None
        self.builder.store.put(path, sink.getvalue())
        return MergeSource(path, sink.tell(), pl.concat(rows), pl.concat(facts))

    def _stays(self, line: bytes) -> bool:
        return not self.takedowns.covers_url(line_url(line))


@dataclass(frozen=True, slots=True)
class _NewSegment:
    segment: Segment | None
    ranges: pl.DataFrame
    written: int
    scratch: tuple[str, ...]


def _without_runs(source: MergeSource, runs: pl.DataFrame) -> MergeSource:
    keys = ["domain", "batch"]
    return replace(
        source,
        entries=source.entries.join(runs, on=keys, how="anti", maintain_order="left"),
        records=source.records.join(runs, on=keys, how="anti", maintain_order="left"),
    )


def _before(entries: pl.DataFrame, entry: Mapping[str, Any]) -> int:
    """Return how many records of the same run lie in earlier files."""
    same = (pl.col("domain") == entry["domain"]) & (pl.col("batch") == entry["batch"])
    return int(entries.filter(same & (pl.col("file") < entry["file"]))["records"].sum())


def _entry(records: pl.DataFrame, *, offset: int, length: int) -> pl.DataFrame:
    return records.group_by("domain", "batch", maintain_order=True).agg(
        pl.lit(offset, pl.UInt64).alias("offset"),
        pl.lit(length, pl.UInt64).alias("length"),
        pl.len().cast(pl.UInt64).alias("records"),
        pl.col("language").drop_nulls().unique().sort().alias("languages"),
        pl.col("day").min().alias("first_seen"),
        pl.col("day").max().alias("last_seen"),
    )


def _origin(manifest: Manifest, segments: Sequence[Segment]) -> list[str]:
    """Return the names of segments in the order of readers: oldest batch first."""
    return [one.name for one in sorted(segments, key=lambda segment: max(segment.live))]


def _emptied(manifest: Manifest, segments: Iterable[Segment]) -> dict[str, str]:
    """Return the batches whose last records in the bucket are gone, with their inputs."""
    held = {batch for segment in segments for batch in segment.live}
    before = {name: one.inputs for part in manifest.segments for name, one in part.live.items()}
    return {batch: inputs for batch, inputs in before.items() if batch not in held}


def find_in_catalog(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return whether the catalog counts a touched domain, and how many whole domains go."""
    try:
        domains = read_catalog(store)["domain"]
    except NotFound:
        return {}
    touched = domains.filter(domains.is_in(list(takedowns.registrable_domains)))
    whole = sum(1 for domain in touched if takedowns.covers_domain(domain))
    return {"all": whole} if touched.len() else {}


def clean_catalog(store: ObjectStore, takedowns: Takedowns) -> RemovedData:
    """Write the catalog again from the store as it is now; its marker keeps its fingerprint."""
    before = store.find(DOMAIN_CATALOG.path)
    inputs = read_inputs(store, DOMAIN_CATALOG.name).get("all")
    if before is None or inputs is None:
        return RemovedData()
    rows = sum(find_in_catalog(store, takedowns).values())
    write_catalog_now(store, inputs=inputs)
    after = store.head(DOMAIN_CATALOG.path).size_bytes
    return RemovedData(rows, max(0, before.size_bytes - after), after)
