"""Make the bucket of the benchmarks; measure how fast it is written and how large it becomes."""

import io
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from isal import isal_zlib

from benchmarks.domain_store_pages import Page, iter_full_pages, iter_short_pages
from news_platform.domain_store.building.merge import read_entries
from news_platform.domain_store.data_files import GZIP, LEVEL, MEMBER_BYTES, MemberWriter
from news_platform.domain_store.fragments import Fragment, iter_fragment_lines, read_pieces
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.manifest import read_current
from news_platform.domain_store.pipeline import build_buckets, compact_buckets
from news_platform.domain_store.staging.rows import encode_lines
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.storage.objects.store import ObjectStore, open_store

NOW = datetime(2025, 11, 3, tzinfo=UTC)
OPTIONS = BuildOptions(buckets=1, memory_bytes=16 << 30)
TURNS = 3


@dataclass(frozen=True, slots=True)
class Bucket:
    """The raw_news rows of one bucket in crawl order, as Parquet, and their size as JSON lines."""

    folder: Path
    rows: tuple[Path, ...]
    raw_bytes: int


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the processor time of one call, all threads and the kernel included."""
    start = time.process_time()
    action()
    return time.process_time() - start


def best_of(*actions: Callable[[], object]) -> list[float]:
    """Return the best time of each action, measured in turns."""
    turns = [[cpu_seconds(action) for action in actions] for _ in range(TURNS)]
    return [min(times) for times in zip(*turns, strict=True)]


def make_bucket(pages: list[Page], folder: Path, *, records: int, domains: int) -> Bucket:
    """Write the rows as Parquet files of 10,000 rows in groups of 16 MB or so."""
    raw_bytes, files = 0, []
    frames = list(iter_short_pages(pages, records, domains=domains, seed=1))
    (folder / "rows").mkdir()
    for number in range(0, len(frames), 20):
        path = folder / "rows" / f"rows-{number:04d}.parquet"
        part = pl.concat(frames[number : number + 20])
        part.write_parquet(path, row_group_size=800, compression="zstd", compression_level=1)
        raw_bytes += int(encode_lines(part, 1)["length"].sum()) + part.height
        files.append(path)
    return Bucket(folder, tuple(files), raw_bytes)


def sorted_lines(bucket: Bucket) -> pl.DataFrame:
    """Return all records of the bucket, encoded and sorted as in staging."""
    parts = [encode_lines(pl.read_parquet(path), 1) for path in bucket.rows]
    return pl.concat(parts).sort("domain", maintain_order=True)


def measure_write(bucket: Bucket) -> dict[str, float]:
    """Compare writing gzip members and merging them with the bare codec on blocks of 1 MB."""
    frame = sorted_lines(bucket)
    domains, lines = frame["domain"].to_list(), frame["line"].to_list()
    groups = _grouped(domains, lines)
    blocks = _blocks(lines)
    target = bucket.folder / "written.jsonl.gz"

    def codec() -> None:
        with target.open("wb") as sink:
            for block in blocks:
                sink.write(isal_zlib.compress(block, LEVEL, GZIP))

    def write() -> None:
        with target.open("wb") as sink:
            writer = MemberWriter(sink)
            for domain, group in groups:
                writer.add(domain, group)
            writer.end_domain()

    staged = _staged(bucket, frame)
    taken = iter(range(TURNS))

    def stage_2() -> None:
        store = _copied(staged, bucket.folder / f"stage-2-{next(taken)}")
        build_buckets([0], store=store, options=OPTIONS, now=NOW)

    codec_time, write_time, stage_2_time = best_of(codec, write, stage_2)
    return {
        "codec_mb_per_second": bucket.raw_bytes / codec_time / 1e6,
        "write_ratio": codec_time / write_time,
        "stage_2_ratio": codec_time / stage_2_time,
    }


def _grouped(domains: Sequence[str], lines: Sequence[bytes]) -> list[tuple[str, list[bytes]]]:
    groups: list[tuple[str, list[bytes]]] = []
    for domain, line in zip(domains, lines, strict=True):
        if not groups or groups[-1][0] != domain:
            groups.append((domain, []))
        groups[-1][1].append(line)
    return groups


def _blocks(lines: Iterable[bytes]) -> list[bytes]:
    whole = b"\n".join(lines)
    return [whole[start : start + MEMBER_BYTES] for start in range(0, len(whole), MEMBER_BYTES)]


def _staged(bucket: Bucket, frame: pl.DataFrame) -> ObjectStore:
    """Return a store with the staged bucket."""
    store = open_store(str(bucket.folder / "staged"))
    rows = (pl.read_parquet(path) for path in bucket.rows)
    stage_batch(rows, store=store, batch="2025-11-01", inputs="x", options=OPTIONS)
    return store


def _copied(store: ObjectStore, folder: Path) -> ObjectStore:
    """Return a store with hard links to the same staged files."""
    assert store.local_folder is not None
    for info in store.list():
        target = folder / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(store.local_folder / info.path)
    return open_store(str(folder))


def measure_size(bucket: Bucket, pages: list[Page]) -> dict[str, float]:
    """Compare the size of members of a domain with one member per record, short and full pages."""
    full = pl.concat(
        [encode_lines(part, 1) for part in iter_full_pages(pages, 1_500, domains=150, seed=2)]
    )
    return {
        "size_ratio": _size_ratio(sorted_lines(bucket)),
        "full_size_ratio": _size_ratio(full.sort("domain", maintain_order=True)),
    }


def _size_ratio(frame: pl.DataFrame) -> float:
    lines = frame["line"].to_list()
    sink = io.BytesIO()
    writer = MemberWriter(sink)
    for domain, group in _grouped(frame["domain"].to_list(), lines):
        writer.add(domain, group)
    writer.end_domain()
    single = sum(len(isal_zlib.compress(line + b"\n", LEVEL, GZIP)) for line in lines)
    return writer.size_bytes / single


def measure_compaction(bucket: Bucket) -> dict[str, float]:
    """Compare merging eight segments by copying with decoding, regrouping and recompressing."""
    store = open_store(str(bucket.folder / "compaction"))
    options = replace(OPTIONS, fan=99)
    for number in range(8):
        rows = (pl.read_parquet(path) for path in bucket.rows[number::8])
        day = f"2025-11-{number + 1:02d}"
        stage_batch(rows, store=store, batch=day, inputs="x", options=options)
        build_buckets([0], store=store, options=options, now=NOW)
    turns = iter(range(TURNS))

    def copy() -> None:
        compacted = _copied(store, bucket.folder / f"compaction-{next(turns)}")
        compact_buckets([0], store=compacted, options=options, now=NOW)

    copy_time, recompress_time = best_of(copy, lambda: _recompress(store, bucket.folder))
    return {"compaction_ratio": recompress_time / copy_time}


def _recompress(store: ObjectStore, folder: Path) -> None:
    manifest = read_current(store, 0).manifest
    assert manifest is not None
    groups: dict[str, list[bytes]] = {}
    for segment in manifest.segments:
        entries = read_entries(store, segment).select("domain", "offset", "length", "records")
        for domain, offset, length, records in entries.iter_rows():
            fragment = Fragment(segment.files[0].path, offset, length, records)
            lines = iter_fragment_lines(fragment, read_pieces(store, fragment), "")
            groups.setdefault(domain, []).extend(lines)
    with (folder / "recompressed.jsonl.gz").open("wb") as sink:
        writer = MemberWriter(sink)
        for domain in sorted(groups):
            writer.add(domain, groups[domain])
        writer.end_domain()
