"""Sorts records by bucket and domain within a memory budget: sorted runs on disk, then one merge.

Rows of equal domain keep the order in which they came. Run files have no name, so nothing is left
behind when the process is killed.
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


def natural_domain(host: pl.Expr) -> pl.Expr:
    """Turn reversed domains (`uk.co.bbc`) into natural order (`bbc.co.uk`); null becomes empty."""
    return host.fill_null("").str.split(".").list.reverse().list.join(".")


def encode_lines(rows: pl.DataFrame, buckets: int) -> pl.DataFrame:
    """Return one row a record: bucket, domain, line (bytes, no end of line) and its facts."""
    named = rows.with_columns(domain=natural_domain(pl.col("host")))
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


FACT_NAMES = tuple(column.name for column in FACTS)
# Of the budget; the rest is for the interpreter, the batch being read and the merge's buffers.
RUN_SHARE = 0.25
# What a record's key and facts take beside its line.
ROW_BYTES = 200
SLICE_BYTES = 4 << 20
# What is compressed and read back at once; every run has one such batch open in the merge.
BATCH_BYTES = 1 << 18
HEAD = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class DomainRun:
    """Neighbouring records of one domain.

    `facts` has one list for each of FACT_NAMES, a day as its number since 1970.
    """

    bucket: int
    domain: str
    lines: list[bytes]
    facts: tuple[list[object], ...]


class SortedRuns:
    """Takes encoded records in any order and gives them back grouped, by bucket and domain."""

    def __init__(self, memory_bytes: int, *, scratch: str | None = None) -> None:
        self.spilled = 0
        self._run_bytes = int(memory_bytes * RUN_SHARE)
        self._scratch = scratch
        self._frames: list[pl.DataFrame] = []
        self._held_bytes = 0
        self._files: list[BinaryIO] = []

    def add(self, lines: pl.DataFrame) -> None:
        """Take one frame of encoded lines."""
        self._frames.append(lines)
        self._held_bytes += _size_bytes(lines)
        if self._held_bytes >= self._run_bytes:
            self._spill()

    def groups(self) -> Iterator[DomainRun]:
        """Yield everything in order, once; a domain may come as several groups in a row."""
        runs = [_iter_spilled(file) for file in self._files]
        if self._frames:
            runs.append(self._take())
        return heapq.merge(*runs, key=lambda group: (group.bucket, group.domain))

    def close(self) -> None:
        """Give the disk space back."""
        for file in self._files:
            file.close()

    def _take(self) -> Iterator[DomainRun]:
        held = pl.concat(self._frames, rechunk=False)
        self._frames, self._held_bytes = [], 0
        return _iter_groups(held.sort("bucket", "domain", maintain_order=True))

    def _spill(self) -> None:
        file: BinaryIO = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115 - closed by `close`
        self._files.append(file)
        self.spilled += 1
        for batch in _iter_batches(self._take()):
            raw = marshal.dumps(batch)
            packed = _codec().compress(raw, asbytes=True)
            file.write(HEAD.pack(len(raw), len(packed)) + packed)


def _iter_spilled(file: BinaryIO) -> Iterator[DomainRun]:
    file.seek(0)
    while head := file.read(HEAD.size):
        raw_size, packed_size = HEAD.unpack(head)
        raw = _codec().decompress(file.read(packed_size), raw_size, asbytes=True)
        yield from (DomainRun(*fields) for fields in marshal.loads(raw))


def _iter_batches(groups: Iterable[DomainRun]) -> Iterator[list[tuple[object, ...]]]:
    """Yield groups as plain tuples, together about as large as a batch may be."""
    batch: list[tuple[object, ...]] = []
    held = 0
    for group in groups:
        batch.append((group.bucket, group.domain, group.lines, group.facts))
        held += sum(map(len, group.lines))
        if held >= BATCH_BYTES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _iter_groups(frame: pl.DataFrame) -> Iterator[DomainRun]:
    for piece in _iter_slices(frame, SLICE_BYTES):
        lines = iter(piece["line"].to_list())
        facts = [iter(piece[name].to_physical().to_list()) for name in FACT_NAMES]
        keys = zip(piece["bucket"].to_list(), piece["domain"].to_list(), strict=True)
        for (bucket, domain), same in groupby(keys):
            size = sum(1 for _ in same)
            taken = tuple(list(islice(column, size)) for column in facts)
            yield DomainRun(bucket, domain, list(islice(lines, size)), taken)


def _iter_slices(frame: pl.DataFrame, limit_bytes: int) -> Iterator[pl.DataFrame]:
    """Yield the frame in pieces of about `limit_bytes` of lines, at least one row each."""
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
