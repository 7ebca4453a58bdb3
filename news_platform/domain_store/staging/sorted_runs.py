"""Encode rows as JSON lines and sort them by bucket and domain within a memory budget.

Records are spilled to disk as sorted runs, then merged; memory stays within 1.2 times the budget at
8 times its size. Rows of one domain keep their order. Run files have no name, so a killed process
leaves nothing behind.
"""

import heapq
import marshal
import struct
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, BinaryIO

import polars as pl
import polars_hash

from news_platform.datasets.domain_store import FACTS
from news_platform.datasets.raw_news import RAW_NEWS_ORDER
from news_platform.domain_store.layout import bucket_column

if TYPE_CHECKING:
    import pyarrow as pa

FACT_NAMES = tuple(column.name for column in FACTS)
# Share of the memory budget for the run being collected; the rest is for the interpreter, the frame
# being read and the buffers of the merge.
RUN_SHARE = 0.25
# Memory of a record's key and facts in addition to its line.
ROW_BYTES = 200
# Lines that are turned into Python objects at a time; these take several times the memory.
SLICE_BYTES = 4 << 20
# Compressed and read back as one block; the merge holds one block of every run in memory.
BLOCK_BYTES = 1 << 18
# Sizes of a block before and after compression.
BLOCK_HEADER = struct.Struct("<QQ")


def natural_domain(host: pl.Expr) -> pl.Expr:
    """Return domains in natural order (`bbc.co.uk`) from reversed ones; null becomes empty."""
    return host.fill_null("").str.split(".").list.reverse().list.join(".")


def encode_lines(rows: pl.DataFrame, buckets: int) -> pl.DataFrame:
    """Return one row per record: bucket, domain, line (bytes without a line end) and its facts."""
    named = rows.with_columns(domain=natural_domain(pl.col("host")))
    # `domain` comes first: `store verify` checks records by the start of their line.
    line = pl.struct("domain", *RAW_NEWS_ORDER).struct.json_encode()
    day = pl.concat_str("year", "month", "day", separator="-").str.to_date("%Y-%m-%d", strict=False)
    return named.select(
        "domain",
        bucket=bucket_column("domain", buckets),
        url=pl.col("uri").fill_null(""),
        day=day,
        language=pl.col("main_lang"),
        content_hash=polars_hash.col("tree").nchash.xxhash64(),
        line=line.cast(pl.Binary),
    ).with_columns(length=pl.col("line").bin.size().cast(pl.UInt64))


@dataclass(frozen=True, slots=True)
class DomainRun:
    """Consecutive records of one domain.

    `facts` has one list for each of FACT_NAMES; a day is the number of days since 1970.
    """

    bucket: int
    domain: str
    lines: list[bytes]
    facts: tuple[list[object], ...]


class SortedRuns:
    """Collects encoded records in any order and returns them sorted by bucket and domain."""

    def __init__(self, memory_bytes: int, *, scratch: str | None = None) -> None:
        self.spilled = 0
        self._run_bytes = int(memory_bytes * RUN_SHARE)
        self._scratch = scratch
        self._frames: list[pl.DataFrame] = []
        self._held_bytes = 0
        self._files: list[BinaryIO] = []

    def add(self, lines: pl.DataFrame) -> None:
        """Add one frame of encoded lines."""
        self._frames.append(lines)
        self._held_bytes += _size_bytes(lines)
        if self._held_bytes >= self._run_bytes:
            self._spill()

    def domain_runs(self) -> Iterator[DomainRun]:
        """Yield everything in order, once; a domain may come as several runs in a row."""
        runs = [_iter_spilled(file) for file in self._files]
        if self._frames:
            runs.append(self._take())
        # Stable: for equal keys, earlier runs come first, so rows of a domain keep their order.
        return heapq.merge(*runs, key=lambda run: (run.bucket, run.domain))

    def close(self) -> None:
        """Delete the run files."""
        for file in self._files:
            file.close()

    def _take(self) -> Iterator[DomainRun]:
        held = pl.concat(self._frames, rechunk=False)
        self._frames, self._held_bytes = [], 0
        return _iter_domain_runs(held.sort("bucket", "domain", maintain_order=True))

    def _spill(self) -> None:
        file: BinaryIO = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115 - closed by `close`
        self._files.append(file)
        self.spilled += 1
        for block in _iter_blocks(self._take()):
            raw = marshal.dumps(block)
            packed = _codec().compress(raw, asbytes=True)
            file.write(BLOCK_HEADER.pack(len(raw), len(packed)) + packed)


def _iter_spilled(file: BinaryIO) -> Iterator[DomainRun]:
    file.seek(0)
    while head := file.read(BLOCK_HEADER.size):
        raw_size, packed_size = BLOCK_HEADER.unpack(head)
        raw = _codec().decompress(file.read(packed_size), raw_size, asbytes=True)
        yield from (DomainRun(*fields) for fields in marshal.loads(raw))


def _iter_blocks(runs: Iterable[DomainRun]) -> Iterator[list[tuple[object, ...]]]:
    """Yield lists of runs as plain tuples, each list with about BLOCK_BYTES of lines."""
    # Plain tuples, because marshal cannot write dataclasses.
    block: list[tuple[object, ...]] = []
    held = 0
    for run in runs:
        block.append((run.bucket, run.domain, run.lines, run.facts))
        held += sum(map(len, run.lines))
        if held >= BLOCK_BYTES:
            yield block
            block, held = [], 0
    if block:
        yield block


def _iter_domain_runs(frame: pl.DataFrame) -> Iterator[DomainRun]:
    for piece in _iter_slices(frame, SLICE_BYTES):
        lines = iter(piece["line"].to_list())
        facts = [iter(piece[name].to_physical().to_list()) for name in FACT_NAMES]
        keys = zip(piece["bucket"].to_list(), piece["domain"].to_list(), strict=True)
        for (bucket, domain), same in groupby(keys):
            size = sum(1 for _ in same)
            taken = tuple(list(islice(column, size)) for column in facts)
            yield DomainRun(bucket, domain, list(islice(lines, size)), taken)


def _iter_slices(frame: pl.DataFrame, limit_bytes: int) -> Iterator[pl.DataFrame]:
    """Yield slices of the frame with about `limit_bytes` of lines and at least one row each."""
    before = frame["length"].cum_sum() - frame["length"]
    sizes = (before // limit_bytes).rle().struct.field("len")
    start = 0
    for size in sizes:
        yield frame[start : start + size]
        start += size


def _size_bytes(lines: pl.DataFrame) -> int:
    return int(lines["length"].sum()) + ROW_BYTES * lines.height


@cache
def _codec() -> "pa.Codec":
    # Imported here because pyarrow costs 0.4 s, which every process would pay.
    import pyarrow as pa

    return pa.Codec("lz4_raw")
