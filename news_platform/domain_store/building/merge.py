"""Joins stage 1 files and segments into one segment by copying gzip members, never decoding them.

Every source is sorted by domain and batch, so each is read once from front to back, through a
window whose size the memory budget decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import BinaryIO, cast

import polars as pl

from news_platform.datasets.domain_store import ENTRIES, RECORDS
from news_platform.domain_store.building.index import byte_ranges
from news_platform.domain_store.building.uploads import Uploads
from news_platform.domain_store.layout import data_path, entries_path, records_path
from news_platform.domain_store.manifest import Batch, DataFile, Segment
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.reading.range_reader import Window
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes


@dataclass(frozen=True, slots=True)
class Source:
    """One file to copy from: its entries and records, in the order of the file."""

    path: str
    size_bytes: int
    entries: pl.DataFrame
    records: pl.DataFrame


def write_segment(
    store: ObjectStore,
    sources: Sequence[Source],
    uploads: Uploads,
    *,
    bucket: int,
    name: str,
    batches: Mapping[str, Batch],
    options: BuildOptions,
) -> tuple[Segment, pl.DataFrame]:
    """Copy what the sources hold into new data files; return the segment and its byte ranges."""
    plan = copy_plan([source.entries for source in sources], file_bytes=options.file_bytes)
    share = options.memory_bytes // (4 * max(len(sources), 1))
    readers = [
        Window(store, source.path, size_bytes=source.size_bytes, window_bytes=share)
        for source in sources
    ]
    files = []
    for number, part in enumerate(plan.partition_by("file", maintain_order=True)):
        path = data_path(bucket, name, number=number)
        spool = uploads.new_spool(options.scratch)
        size = _copy(part, readers, spool)
        uploads.put(path, spool)
        files.append(DataFile(path, size))
    entries = merged_entries(plan)
    uploads.put(entries_path(bucket, name), parquet_bytes(entries, ENTRIES))
    records = pl.concat([source.records for source in sources])
    records = records.sort("domain", "batch", maintain_order=True)
    uploads.put(records_path(bucket, name), parquet_bytes(records, RECORDS))
    last_day = cast(date | None, entries["last_seen"].max())
    segment = Segment(name, bucket, tuple(files), batches, last_day=last_day)
    return segment, byte_ranges(segment, entries)


def copy_plan(entries: Iterable[pl.DataFrame], *, file_bytes: int) -> pl.DataFrame:
    """Return what to copy in the order of the result: source, offset there, file, offset here.

    A domain stays in one file unless it alone is larger than a file should be.
    """
    numbered = [
        part.with_columns(source=pl.lit(number, dtype=pl.UInt32), source_offset=pl.col("offset"))
        for number, part in enumerate(entries)
    ]
    ordered = pl.concat(numbered).sort("domain", "batch", "source", "source_offset")
    start = pl.col("length").cum_sum() - pl.col("length")
    fits = pl.col("length").sum().over("domain") <= file_bytes
    anchor = pl.when(fits).then(pl.col("start").first().over("domain")).otherwise(pl.col("start"))
    placed = ordered.with_columns(start=start).with_columns(slot=anchor // file_bytes)
    return placed.with_columns(
        file=pl.col("slot").rle_id(),
        offset=pl.col("start") - pl.col("start").first().over("slot"),
    ).drop("slot", "start")


def merged_entries(plan: pl.DataFrame) -> pl.DataFrame:
    """Return one entry for each domain, batch and file of a plan; their bytes are neighbours."""
    return plan.group_by("domain", "batch", "file", maintain_order=True).agg(
        pl.col("offset").min(),
        pl.col("length", "records").sum(),
        pl.col("languages").explode().drop_nulls().unique().sort(),
        pl.col("first_seen").min(),
        pl.col("last_seen").max(),
    )


def _copy(plan: pl.DataFrame, readers: Sequence[Window], sink: BinaryIO) -> int:
    size = 0
    for source, offset, length in plan.select("source", "source_offset", "length").iter_rows():
        for piece in readers[source].pieces(offset, length):
            size += sink.write(piece)
    return size
