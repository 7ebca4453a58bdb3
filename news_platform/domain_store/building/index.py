"""Pure: turn the byte ranges of segments into the index of a bucket and its sparse index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from news_platform.datasets.domain_store import RANGES
from news_platform.domain_store.manifest import Segment

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


def catalog_rows(ranges: pl.DataFrame, bucket: int) -> pl.DataFrame:
    """Return one row per domain from the byte ranges of a bucket."""
    return ranges.group_by("domain", maintain_order=True).agg(
        pl.lit(bucket, dtype=pl.UInt32).alias("bucket"),
        pl.col("records").sum(),
        pl.col("length").sum().alias("bytes"),
        pl.len().alias("fragments"),
        pl.col("languages").explode().drop_nulls().unique().sort(),
        pl.col("first_seen").min(),
        pl.col("last_seen").max(),
    )


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
