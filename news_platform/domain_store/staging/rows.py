"""Find, read, encode and sort the rows to stage.

They come from collected days of raw_news, or from Parquet files by pattern. Encoded as JSON lines,
they are sorted by bucket and domain within a memory budget: records are spilled to disk as sorted
runs, then merged; memory stays within 1.2 times the budget at 8 times its size. Rows of one domain
keep their order. Run files have no name, so a killed process leaves nothing behind.
"""

import heapq
import marshal
import re
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

import polars as pl
import polars_hash

from news_platform.datasets.domain_store import DOMAIN_BUCKETS, FACTS
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_FIRST, RAW_NEWS_ORDER
from news_platform.domain_store.layout import bucket_column, validated_batch
from news_platform.errors import InputError
from news_platform.storage.commit import collected
from news_platform.storage.commit.markers import (
    content_part,
    fingerprint_of,
)
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.parquet import FRAME_BYTES, iter_frames
from news_platform.storage.units import wanted_inputs

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class StagingInput:
    """Parquet files with the columns of raw_news, and the fingerprint of their content.

    `expired` has the WARCs of a day whose rows only the domain store holds, with their row counts.
    """

    store: ObjectStore
    paths: tuple[str, ...]
    inputs: str
    expired: Mapping[str, int] = field(default_factory=dict)


def day_input(store: ObjectStore, day: str) -> StagingInput | None:
    """Return the files of the collected WARCs of a day; None when there are none."""
    # Before reading the markers: a change in between then leaves the day stale, not wrong.
    inputs = wanted_inputs(store, DOMAIN_BUCKETS).get(day, collected.REMOVED)
    markers = collected.list_collected_day(store, date.fromisoformat(day))
    if not markers:
        return None
    found = collected.parse_listed(store, markers)
    gone = [marker for marker in found if marker.is_expired]
    whole = [marker for marker in found if marker not in gone]
    paths = tuple(path for marker in whole for path in marker.news_paths().values())
    return StagingInput(store, paths, inputs, {marker.warc: marker.rows for marker in gone})


def validated_crawl_name(batch: str) -> str:
    """Return the name of a crawl; raise InputError for a day, which is staged from raw_news."""
    if _DAY.fullmatch(batch):
        message = (
            f"invalid crawl name {batch!r}: it is a day of CC-NEWS, use another name for these rows"
        )
        raise InputError(message, thing=batch)
    return validated_batch(batch)


def matching_input(pattern: str, *, options: StoreOptions) -> StagingInput:
    """Return the Parquet files that match a path or URL with `*`, `?` or `**`."""
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    # Only the folder before the first wildcard is listed.
    folder, _, _ = fixed.rpartition("/")
    store = open_store(folder or ("/" if pattern.startswith("/") else "."), options=options)
    wanted = _pattern(pattern[len(folder) :].removeprefix("/"))
    infos = [info for info in store.list() if wanted.fullmatch(info.path)]
    if not infos:
        raise InputError(f"no file matches {pattern!r}", thing=pattern)
    inputs = fingerprint_of(infos, content_part(store))
    return StagingInput(store, tuple(info.path for info in infos), inputs)


def count_rows(found: StagingInput) -> int:
    """Return how many rows the files state in their footers."""
    paths = [found.store.uri(path) for path in found.paths]
    options = dict(found.store.polars_options())
    counted = pl.scan_parquet(paths, glob=False, storage_options=options or None).select(pl.len())
    try:
        return int(counted.collect().item())
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot read {paths[0]!r} and others as Parquet: {error}") from error


def _pattern(glob: str) -> re.Pattern[str]:
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces))


def iter_rows(
    store: ObjectStore,
    paths: Iterable[str],
    *,
    frame_bytes: int = FRAME_BYTES,
    scratch: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of Parquet files in order; the path may hold columns, too (`day=01`)."""
    for path in paths:
        uri = store.uri(path)
        # The columns of the file win over those of the path.
        folders = path_columns(uri)
        for frame in iter_frames(
            store, path, columns=RAW_NEWS_ORDER, frame_bytes=frame_bytes, scratch=scratch
        ):
            missing = {k: pl.lit(v) for k, v in folders.items() if k not in frame.columns}
            try:
                rows = cast_to_raw_news(frame.with_columns(**missing), uri)
            except pl.exceptions.PolarsError as error:
                raise InputError(f"cannot read {uri!r} as Parquet: {error}", thing=uri) from error
            yield rows


def cast_to_raw_news(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the columns of raw_news in their types; raise InputError for missing ones.

    Columns that were added to raw_news later may be missing and become null.
    """
    missing = [name for name in RAW_NEWS_FIRST if name not in rows.columns]
    if missing:
        raise InputError(
            f"{source!r} has no columns {', '.join(missing)}: expected those of raw_news",
            thing=source,
        )
    schema = RAW_NEWS.full_schema
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(schema[name]).alias(name)
        for name in RAW_NEWS_ORDER
    )


def path_columns(path: str) -> Mapping[str, str]:
    """Return the columns that a path holds as `name=value` folders."""
    pairs = (part.partition("=") for part in path.split("/"))
    return {name: unquote(value) for name, sign, value in pairs if sign}


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
