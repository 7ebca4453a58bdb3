"""Merge staged files and older segments into one segment by copying their gzip members.

Nothing is decoded, which is 4.3 times as fast as compressing again. Every source is sorted by
domain and batch, so each is read once from front to back, with a buffer that the memory budget
limits. The byte ranges of all segments of a bucket then become its index.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import BinaryIO, cast

import polars as pl

from news_platform.datasets.domain_store import DOMAIN_BUCKETS, ENTRIES, RANGES, RECORDS
from news_platform.domain_store.data_files import Uploads
from news_platform.domain_store.fragments import RangeReader
from news_platform.domain_store.layout import (
    BuildOptions,
    batches_path,
    data_path,
    entries_path,
    facts_path,
    records_path,
)
from news_platform.domain_store.manifest import (
    Batches,
    Current,
    DataFile,
    Manifest,
    Segment,
    dump_batches,
)
from news_platform.domain_store.staging.stage import Staged
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes, read_table

# Small tables that are read at the same time.
READERS = 8


@dataclass(frozen=True, slots=True)
class MergeSource:
    """A file to copy from, with its entries and records in the order of the file.

    `body` is the content of one that is in memory only.
    """

    path: str
    size_bytes: int
    entries: pl.DataFrame
    records: pl.DataFrame
    body: bytes = b""


def write_segment(
    store: ObjectStore,
    sources: Sequence[MergeSource],
    uploads: Uploads,
    *,
    base: Current,
    bucket: int,
    name: str,
    batches: Batches,
    options: BuildOptions,
) -> tuple[Segment, pl.DataFrame]:
    """Copy the sources into new data files; return the segment and its byte ranges."""
    listed = dump_batches(batches)
    # By content, too: two builders of the same files take the batches over at different seconds.
    listing = base.file_name("batches", name, hashlib.sha256(listed).hexdigest())
    uploads.put(batches_path(bucket, listing), listed)
    sources = [source for source in sources if source.entries.height]
    if not sources:
        return Segment(name, bucket, (), listing, batches), pl.DataFrame(schema=RANGES.schema)
    plan = copy_plan([source.entries for source in sources], file_bytes=options.file_bytes)
    # A quarter of the budget is for buffers; the rest is for spools, tables and the interpreter.
    share = options.memory_bytes // (4 * len(sources))
    readers = [
        RangeReader(
            store,
            source.path,
            size_bytes=source.size_bytes,
            buffer_bytes=share,
            held=source.body,
        )
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
    segment = Segment(name, bucket, tuple(files), listing, batches, last_day=last_day)
    return segment, byte_ranges(segment, entries)


def copy_plan(entries: Iterable[pl.DataFrame], *, file_bytes: int) -> pl.DataFrame:
    """Return what to copy, in the order of the result: from which source and offset to which file.

    A domain stays in one file unless it alone is larger than `file_bytes`.
    """
    numbered = [
        part.with_columns(source=pl.lit(number, dtype=pl.UInt32), source_offset=pl.col("offset"))
        for number, part in enumerate(entries)
    ]
    ordered = pl.concat(numbered).sort("domain", "batch", "source", "source_offset")
    start = pl.col("length").cum_sum() - pl.col("length")
    fits = pl.col("length").sum().over("domain") <= file_bytes
    # The file of a domain follows from its first byte, so that one file holds all of it.
    anchor = pl.when(fits).then(pl.col("start").first().over("domain")).otherwise(pl.col("start"))
    placed = ordered.with_columns(start=start).with_columns(slot=anchor // file_bytes)
    return placed.with_columns(
        file=pl.col("slot").rle_id(),
        offset=pl.col("start") - pl.col("start").first().over("slot"),
    ).drop("slot", "start")


def merged_entries(plan: pl.DataFrame) -> pl.DataFrame:
    """Return one entry per domain, batch and file of a plan; the bytes of each are adjacent."""
    return plan.group_by("domain", "batch", "file", maintain_order=True).agg(
        pl.col("offset").min(),
        pl.col("length", "records").sum(),
        pl.col("languages").explode().drop_nulls().unique().sort(),
        pl.col("first_seen").min(),
        pl.col("last_seen").max(),
    )


def _copy(plan: pl.DataFrame, readers: Sequence[RangeReader], sink: BinaryIO) -> int:
    size = 0
    for source, offset, length in plan.select("source", "source_offset", "length").iter_rows():
        for piece in readers[source].pieces(offset, length):
            size += sink.write(piece)
    return size


def iter_staged_sources(staged: Staged, batch: str, bucket: int) -> Iterator[MergeSource]:
    """Yield the staged files of one batch and bucket."""
    for path in staged.paths(batch, bucket):
        facts = read_table(staged.store, facts_path(path), DOMAIN_BUCKETS)
        facts = facts.with_columns(batch=pl.lit(batch))
        size = int(facts["run_offset"][-1] + facts["run_length"][-1])
        yield MergeSource(path, size, _staged_entries(facts), facts.select(*RECORDS.schema))


def _staged_entries(facts: pl.DataFrame) -> pl.DataFrame:
    return facts.group_by("domain", "batch", maintain_order=True).agg(
        pl.col("run_offset").first().alias("offset"),
        pl.col("run_length").first().alias("length"),
        pl.len().cast(pl.UInt64).alias("records"),
        pl.col("language").drop_nulls().unique().sort().alias("languages"),
        pl.col("day").min().alias("first_seen"),
        pl.col("day").max().alias("last_seen"),
    )


def read_entries(store: ObjectStore, segment: Segment) -> pl.DataFrame:
    """Return the byte range of each domain and batch in a segment, dropped batches included."""
    if not segment.files:
        return pl.DataFrame(schema=ENTRIES.schema)
    return read_table(store, entries_path(segment.bucket, segment.name), ENTRIES)


def read_all(
    read: Callable[[ObjectStore, Segment], pl.DataFrame],
    store: ObjectStore,
    segments: Sequence[Segment],
) -> list[tuple[Segment, pl.DataFrame]]:
    """Call `read` for all segments concurrently; return each segment with its result."""
    # Most buckets have one segment, which is not worth a pool of threads.
    if len(segments) < 2:
        return [(segment, read(store, segment)) for segment in segments]
    with ThreadPoolExecutor(min(READERS, len(segments))) as pool:
        found = pool.map(lambda segment: read(store, segment), segments)
        return list(zip(segments, found, strict=True))


def records_by_batch(
    store: ObjectStore, manifest: Manifest, batches: Collection[str] | None = None
) -> dict[str, int]:
    """Return the number of records of some batches in a bucket, or of all."""
    held: dict[str, int] = {}
    wanted = [
        part
        for part in manifest.segments
        if batches is None or not part.live.keys().isdisjoint(batches)
    ]
    for segment, part in read_all(read_entries, store, wanted):
        counted = part.group_by("batch").agg(pl.col("records").sum())
        held |= {batch: n for batch, n in counted.iter_rows() if batch in segment.live}
    return held


def read_kept_ranges(
    store: ObjectStore, base: Manifest, kept: Sequence[Segment]
) -> list[pl.DataFrame]:
    """Return the byte ranges of the segments that are kept, read from the previous index.

    Those of a segment with newly dropped batches are computed again from its entries.
    """
    before = {segment.name: segment.dropped for segment in base.segments}
    same = [segment.name for segment in kept if before[segment.name] == segment.dropped]
    changed = [segment for segment in kept if segment.name not in same]
    ranges = read_table(store, base.index.ranges_path, RANGES)
    computed = [
        byte_ranges(part, entries) for part, entries in read_all(read_entries, store, changed)
    ]
    return [ranges.filter(pl.col("segment").is_in(same)), *computed]


def iter_segment_sources(store: ObjectStore, segment: Segment) -> Iterator[MergeSource]:
    """Yield the data files of a segment, with the entries and records of its live batches."""
    if not segment.files:
        return
    is_live = pl.col("batch").is_in(list(segment.live))
    entries = read_entries(store, segment).filter(is_live)
    table = read_table(store, records_path(segment.bucket, segment.name), RECORDS)
    records = table.filter(is_live)
    for number, file in enumerate(segment.files):
        part = entries.filter(pl.col("file") == number).drop("file")
        # A segment has one table of records; the first file carries it.
        rows = records if number == 0 else records.clear()
        yield MergeSource(file.path, file.size_bytes, part, rows)


# A lookup reads one block of the index: 64 domains, or fewer when their lines are long. For 50,000
# domains the sparse index then has 29 KB.
BLOCK_DOMAINS = 64
BLOCK_BYTES = 1 << 15


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The index as JSON lines, its sparse index, and the same byte ranges as a table."""

    body: bytes
    sparse: tuple[tuple[str, int], ...]
    ranges: pl.DataFrame


def byte_ranges(segment: Segment, entries: pl.DataFrame) -> pl.DataFrame:
    """Return the byte ranges of a segment's live batches; adjacent ones of a domain are joined."""
    added = pl.DataFrame(
        [(name, batch.taken_at) for name, batch in segment.live.items()],
        schema={"batch": pl.String, "timestamp": pl.Int64},
        orient="row",
    )
    # Adjacent ranges of a domain are joined, because a lookup sends one request per range.
    ordered = entries.join(added, on="batch").sort("domain", "file", "offset")
    place = pl.struct("domain", "file")
    gap = pl.col("offset") != (pl.col("offset") + pl.col("length")).shift()
    starts = ((place != place.shift()) | gap).fill_null(True)
    ranges = ordered.with_columns(range=starts.cum_sum()).group_by("range", maintain_order=True)
    joined = ranges.agg(
        pl.col("domain", "file", "offset").first(),
        pl.col("length", "records").sum(),
        pl.col("timestamp").max(),
        pl.col("languages").explode().drop_nulls().unique().sort(),
        pl.col("first_seen").min(),
        pl.col("last_seen").max(),
    )
    return joined.with_columns(segment=pl.lit(segment.name)).select(*RANGES.schema)


def build_index(
    segments: Sequence[Segment],
    ranges: Sequence[pl.DataFrame],
    *,
    bucket: int,
    uri: Callable[[str], str],
) -> IndexFile:
    """Join the byte ranges of all segments into one line per domain, oldest segment first."""
    places = pl.DataFrame(
        [
            (order, segment.name, number, uri(file.path))
            for order, segment in enumerate(segments)
            for number, file in enumerate(segment.files)
        ],
        schema={"order": pl.UInt32, "segment": pl.String, "file": pl.UInt32, "filepath": pl.String},
        orient="row",
    )
    held = pl.concat([pl.DataFrame(schema=RANGES.schema), *ranges])
    placed = held.join(places, on=["segment", "file"]).sort("domain", "order", "file", "offset")
    rows = placed.group_by("domain", maintain_order=True).agg(
        pl.lit(str(bucket)).alias("domain_hash_id"),
        pl.col("records").sum().alias("count"),
        pl.struct(
            "filepath", "offset", "length", pl.col("records").alias("record_count"), "timestamp"
        ).alias("files"),
    )
    lines = rows.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    body = "".join(f"{line}\n" for line in lines).encode()
    sparse = _sparse(rows["domain"].to_list(), lines)
    return IndexFile(body, sparse, placed.select(*RANGES.schema))


def _sparse(domains: Sequence[str], lines: pl.Series) -> tuple[tuple[str, int], ...]:
    blocks: list[tuple[str, int]] = []
    offset, block_start, in_block = 0, 0, 0
    for domain, size in zip(domains, lines.str.len_bytes(), strict=True):
        # A block must start at a domain, so it may exceed BLOCK_BYTES by one line.
        if not blocks or in_block == BLOCK_DOMAINS or offset - block_start >= BLOCK_BYTES:
            blocks.append((domain, offset))
            block_start, in_block = offset, 0
        offset, in_block = offset + size + 1, in_block + 1
    return tuple(blocks)


def index_totals(ranges: pl.DataFrame) -> Mapping[str, int]:
    """Return the totals that a manifest records about its index."""
    return {
        "domains": ranges["domain"].n_unique(),
        "records": int(ranges["records"].sum()),
        "bytes": int(ranges["length"].sum()),
        "fragments": ranges.height,
    }
