"""Reads what a merge starts from: stage 1 files and older segments, without their dropped parts."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import ENTRIES, RANGES, RECORDS
from news_platform.domain_store.building.index import byte_ranges
from news_platform.domain_store.building.merge import Source
from news_platform.domain_store.layout import entries_path, facts_path, records_path, staged_path
from news_platform.domain_store.manifest import Manifest, Segment
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table

READERS = 8


def iter_staged_sources(
    store: ObjectStore, bucket: int, *, batch: str, name: str, files: int
) -> Iterator[Source]:
    """Yield the stage 1 files of one batch and bucket."""
    for number in range(files):
        path = staged_path(bucket, batch, name=name, number=number)
        facts = read_table(store, facts_path(path), DOMAIN_BUCKETS)
        facts = facts.with_columns(batch=pl.lit(batch))
        size = int(facts["run_offset"][-1] + facts["run_length"][-1])
        yield Source(path, size, _staged_entries(facts), facts.select(*RECORDS.schema))


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
    """Return where everything lies in a segment, dropped batches included."""
    return read_table(store, entries_path(segment.bucket, segment.name), ENTRIES)


def read_all(
    read: Callable[[ObjectStore, Segment], pl.DataFrame],
    store: ObjectStore,
    segments: Sequence[Segment],
) -> list[tuple[Segment, pl.DataFrame]]:
    """Return many segments, each with what `read` gives of it, read at the same time."""
    if len(segments) < 2:
        return [(segment, read(store, segment)) for segment in segments]
    with ThreadPoolExecutor(min(READERS, len(segments))) as pool:
        found = pool.map(lambda segment: read(store, segment), segments)
        return list(zip(segments, found, strict=True))


def read_kept_ranges(
    store: ObjectStore, base: Manifest, kept: Sequence[Segment]
) -> list[pl.DataFrame]:
    """Return the byte ranges of segments that stay, from the index of the generation before.

    Where batches were dropped meanwhile they are made anew.
    """
    before = {segment.name: segment.dropped for segment in base.segments}
    same = [segment.name for segment in kept if before[segment.name] == segment.dropped]
    changed = [segment for segment in kept if segment.name not in same]
    ranges = read_table(store, base.index.ranges_path, RANGES)
    anew = [byte_ranges(part, entries) for part, entries in read_all(read_entries, store, changed)]
    return [ranges.filter(pl.col("segment").is_in(same)), *anew]


def iter_segment_sources(store: ObjectStore, segment: Segment) -> Iterator[Source]:
    """Yield the data files of a segment with those batches that still count."""
    is_live = pl.col("batch").is_in(list(segment.live))
    entries = read_entries(store, segment).filter(is_live)
    table = read_table(store, records_path(segment.bucket, segment.name), RECORDS)
    records = table.filter(is_live)
    for number, file in enumerate(segment.files):
        part = entries.filter(pl.col("file") == number).drop("file")
        # The records of a segment are one table; they come with its first file.
        rows = records if number == 0 else records.clear()
        yield Source(file.path, file.size_bytes, part, rows)
