"""The engine of the domain store: records are removed by writing their segments again.

Of a domain's records in a batch, all are encoded again if one is meant; all others are copied. Then
all files that the new generation does not name are deleted without waiting for the grace period; a
reader of an older generation gets an error that names the missing file and starts over at the
newest one.
"""

import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_store import DOMAIN_STORE, RECORDS
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.domain_store.building.builder import Builder
from news_platform.domain_store.building.merge import (
    MergeSource,
    iter_segment_sources,
    read_entries,
    read_kept_ranges,
    write_segment,
)
from news_platform.domain_store.data_files import open_uploads, rewrite_run, scratch_errors
from news_platform.domain_store.layout import (
    STORE_FILE,
    BuildOptions,
    bucket_folders,
    current_path,
    manifest_path,
    range_buckets,
    range_keys,
    records_path,
    view_path,
)
from news_platform.domain_store.manifest import (
    Current,
    Manifest,
    Segment,
    commit,
    read_bucket_count,
    read_current,
    refresh_view,
)
from news_platform.domain_store.staging.engine import touched_buckets
from news_platform.domain_store.staging.stage import built_ranges
from news_platform.storage.commit.markers import delete_marker, fingerprint
from news_platform.storage.engines import RemovedRows, Target
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import scan_table

_RUN = ["domain", "batch"]


@dataclass(frozen=True, slots=True)
class StoreEngine:
    """The buckets of the domain store; a unit is a range of buckets."""

    store: ObjectStore
    options: BuildOptions
    now: datetime
    dataset: Dataset = DOMAIN_STORE

    def units(self) -> Mapping[str, str]:
        """Return the fingerprint that every range was built from."""
        return built_ranges(self.store)

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the facts of the records of some ranges, or of all."""
        wanted = self._ranges() if units is None else units
        buckets = (bucket for key in wanted for bucket in self._buckets(key))
        tables = [path for bucket in buckets for path in self._files("records", bucket)]
        return scan_table(self.store, tables, RECORDS)

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the records that are meant, by range, in any generation that is stored.

        A range with data that no table describes, from a build that died, counts with 0 records.
        """
        touched = touched_buckets(self.store, target)
        found: Counter[str] = Counter()
        for key in self._ranges() if touched else ():
            for bucket in (one for one in self._buckets(key) if one in touched):
                tables = self._files("records", bucket)
                rows = _covered(self.store, tables, target).height
                if rows or _has_undescribed(self._files("data", bucket), tables):
                    found[key] += rows
        return found

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Write the next generation of the buckets that hold such records."""
        touched = touched_buckets(self.store, target)
        done = RemovedRows()
        for bucket in (one for one in self._buckets(unit) if one in touched):
            tables = self._files("records", bucket)
            rows = _covered(self.store, tables, target).height
            if rows or _has_undescribed(self._files("data", bucket), tables):
                done += clean_bucket(self, bucket, target)
        return done

    def delete(self, units: Collection[str]) -> None:
        """Delete ranges of buckets: first their manifests, then their markers."""
        for key in units:
            for bucket in self._buckets(key):
                for folder in reversed(bucket_folders(bucket)):
                    self.store.delete(info.path for info in self.store.list(folder))
                self.store.delete([view_path(bucket)])
            delete_marker(self.store, self.dataset.name, key)

    def _ranges(self) -> list[str]:
        if not self.store.exists(STORE_FILE):
            return []
        return range_keys(read_bucket_count(self.store))

    def _buckets(self, key: str) -> range:
        return range_buckets(key, read_bucket_count(self.store))

    def _files(self, kind: str, bucket: int) -> list[str]:
        return [info.path for info in self.store.list(f"{STORE}/{kind}/{bucket}")]


def _has_undescribed(files: Sequence[str], tables: Sequence[str]) -> bool:
    """Return whether a data file lacks the table of its records, because its build died."""
    described = {PurePosixPath(path).stem for path in tables}
    return any(PurePosixPath(path).name.split("-")[1] not in described for path in files)


def _covered(store: ObjectStore, tables: Sequence[str], target: Target) -> pl.DataFrame:
    rows = scan_table(store, tables, RECORDS).select("domain", "batch", "url")
    likely: pl.DataFrame = rows.filter(target.likely(RECORDS)).collect()
    return likely.filter(target.covered(RECORDS, likely))


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


def clean_bucket(engine: StoreEngine, bucket: int, target: Target) -> RemovedRows:
    """Write the next generation of a bucket without the records, and delete all older ones.

    Raise Conflict if another writer commits first.
    """
    store, options = engine.store, engine.options
    # Before the commit: whatever is listed here was made for an older generation, and nobody can
    # commit it any more.
    listed = _listed(store, bucket)
    current = read_current(store, bucket, with_batches=True)
    if current.manifest is None:
        return RemovedRows()
    with scratch_errors(options.scratch), open_uploads(store, options.uploads) as uploads:
        builder = Builder(store, uploads, current.manifest.buckets, options, engine.now)
        made = _Rewriting(builder, bucket, current, target).run()
    manifest = commit(
        store, current, lambda number: replace(made.manifest, generation=number, retired={})
    )
    gone = _unneeded(listed, manifest, bucket)
    store.delete(info.path for info in gone)
    if store.exists(view_path(bucket)):
        refresh_view(store, manifest)
    return RemovedRows(made.rows, sum(info.size_bytes for info in gone), made.written)


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A manifest without the records, how many they were, and the bytes of new segments."""

    manifest: Manifest
    rows: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Rewrites the segments of one bucket that hold such records."""

    builder: Builder
    bucket: int
    current: Current
    target: Target

    def run(self) -> _Rewritten:
        """Write new segments and the index of all; the caller commits."""
        manifest = self.current.manifest
        assert manifest is not None
        touched = {one.name: self._covered_rows(one) for one in manifest.segments}
        kept = [one for one in manifest.segments if not touched[one.name]]
        if len(kept) == len(manifest.segments):
            return _Rewritten(manifest)
        ranges = read_kept_ranges(self.builder.store, manifest, kept) if kept else []
        segments, written = list(kept), 0
        for segment, own in self._rewritten(one for one in manifest.segments if one not in kept):
            segments.append(segment)
            ranges.append(own)
            written += segment.size_bytes
        # Readers take the oldest batch first.
        segments.sort(key=lambda segment: max(segment.live))
        index = self.builder.write_index(self.bucket, self.current, segments, ranges)
        self.builder.uploads.finish()
        made = replace(manifest, index=index, segments=tuple(segments))
        return _Rewritten(made, sum(touched.values()), written)

    def _covered_rows(self, segment: Segment) -> int:
        if not segment.files:
            return 0
        path = records_path(self.bucket, segment.name)
        rows = _covered(self.builder.store, [path], self.target)
        return rows.filter(pl.col("batch").is_in(list(segment.live))).height

    def _rewritten(self, segments: Iterable[Segment]) -> Iterator[tuple[Segment, pl.DataFrame]]:
        """Yield the new segments, each with its byte ranges."""
        for segment in segments:
            sources = list(iter_segment_sources(self.builder.store, segment))
            records = sources[0].records
            gone = self.target.covered(RECORDS, records)
            runs = records.filter(gone).select(_RUN).unique()
            shortened = self._shortened(segment, runs, records.with_columns(gone.alias("gone")))
            sources = [*(_without_runs(source, runs) for source in sources), *shortened]
            yield write_segment(
                self.builder.store,
                sources,
                self.builder.uploads,
                base=self.current,
                bucket=self.bucket,
                name=self.current.file_name(
                    "removed", segment.name, fingerprint(_urls(records, gone))
                ),
                batches=segment.live,
                options=self.builder.options,
            )

    def _shortened(
        self, segment: Segment, runs: pl.DataFrame, records: pl.DataFrame
    ) -> Iterator[MergeSource]:
        """Yield what stays of the touched runs as a source in memory."""
        sink, rows, facts = io.BytesIO(), [], []
        entries = read_entries(self.builder.store, segment).join(runs, on=_RUN)
        for entry in entries.sort(*_RUN, "file", "offset").iter_rows(named=True):
            own = records.filter(
                (pl.col("domain") == entry["domain"]) & (pl.col("batch") == entry["batch"])
            )
            # A run may lie in two files, each with its part of the records.
            own = own.slice(_before(entries, entry), entry["records"])
            left = own.filter(~pl.col("gone")).drop("gone")
            if left.height:
                path = segment.files[entry["file"]].path
                raw = self.builder.store.read_range(path, entry["offset"], entry["length"])
                body = rewrite_run(raw, (~own["gone"]).to_list())
                rows.append(_entry(left, offset=sink.tell(), length=len(body)))
                facts.append(left)
                sink.write(body)
        if rows:
            yield MergeSource(
                "", sink.tell(), pl.concat(rows), pl.concat(facts), body=sink.getvalue()
            )


def _urls(records: pl.DataFrame, gone: pl.Series) -> list[str]:
    return [str(url) for url in records.filter(gone)["url"]]


def _without_runs(source: MergeSource, runs: pl.DataFrame) -> MergeSource:
    return replace(
        source,
        entries=source.entries.join(runs, on=_RUN, how="anti", maintain_order="left"),
        records=source.records.join(runs, on=_RUN, how="anti", maintain_order="left"),
    )


def _before(entries: pl.DataFrame, entry: Mapping[str, Any]) -> int:
    """Return how many records of the same run lie in earlier files."""
    same = (pl.col("domain") == entry["domain"]) & (pl.col("batch") == entry["batch"])
    return int(entries.filter(same & (pl.col("file") < entry["file"]))["records"].sum())


def _entry(records: pl.DataFrame, *, offset: int, length: int) -> pl.DataFrame:
    return records.group_by(_RUN, maintain_order=True).agg(
        pl.lit(offset, pl.UInt64).alias("offset"),
        pl.lit(length, pl.UInt64).alias("length"),
        pl.len().cast(pl.UInt64).alias("records"),
        pl.col("language").drop_nulls().unique().sort().alias("languages"),
        pl.col("day").min().alias("first_seen"),
        pl.col("day").max().alias("last_seen"),
    )
