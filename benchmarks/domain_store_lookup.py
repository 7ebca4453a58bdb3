"""Measure lookups against Polars over Parquet and against scanning the index."""

import json
import random
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

import polars as pl

from benchmarks.domain_store_bucket import NOW, OPTIONS, Bucket, best_of
from news_platform.domain_store.building.merge import build_index, byte_ranges, index_totals
from news_platform.domain_store.layout import index_path
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import (
    BatchEntry,
    Current,
    DataFile,
    Index,
    Manifest,
    Segment,
    commit,
)
from news_platform.domain_store.pipeline import build_buckets
from news_platform.storage.objects.store import open_store

INDEX_DOMAINS = 50_000


def measure(bucket: Bucket) -> dict[str, float]:
    """Return all measurements of lookups in the store of the write benchmark."""
    store = open_store(str(bucket.folder / "staged"))
    build_buckets([0], store=store, options=OPTIONS, now=NOW)
    reader = DomainStore(store)
    parquet = _sorted_parquet(bucket)
    names = random.Random(5).sample(sorted(reader.domains()), 200)
    by_default, by_groups = (
        pl.scan_parquet(parquet),
        pl.scan_parquet(parquet, parallel="row_groups"),
    )
    # Without statistics and without early filters, so that every page is decoded.
    unpruned = pl.scan_parquet(parquet, use_statistics=False, parallel="columns")
    rows, ours, pruned, groups, scan = _best_each(
        (names, lambda name: list(reader.records(name))),
        (names, lambda name: list(reader.lines(name))),
        (names[:20], lambda name: by_default.filter(domain=name).collect()),
        (names[:20], lambda name: by_groups.filter(domain=name).collect()),
        (names[:3], lambda name: unpruned.filter(domain=name).collect()),
    )
    return {
        "lookup_ms": ours * 1e3,
        "lookup_parsed_ms": rows * 1e3,
        "lookup_parsed_ratio": pruned / rows,
        "parquet_lookup_ms": pruned * 1e3,
        "lookup_ratio": pruned / ours,
        "row_group_lookup_ms": groups * 1e3,
        "row_group_ratio": groups / ours,
        "scan_ratio": scan / ours,
        **_measure_index(bucket.folder / "index"),
    }


def _best_each(*actions: tuple[list[str], Callable[[str], object]]) -> list[float]:
    """Return the best processor time of one lookup of each kind, measured in turns."""

    def all_names(names: list[str], look_up: Callable[[str], object]) -> None:
        for name in names:
            look_up(name)

    times = best_of(*(partial(all_names, names, look_up) for names, look_up in actions))
    return [seconds / len(names) for seconds, (names, _) in zip(times, actions, strict=True)]


def _sorted_parquet(bucket: Bucket) -> Path:
    target = bucket.folder / "sorted.parquet"
    rows = pl.concat([pl.read_parquet(path) for path in bucket.rows])
    natural = pl.col("host").str.split(".").list.reverse().list.join(".")
    rows.with_columns(domain=natural).sort("domain").write_parquet(target, row_group_size=1_000)
    return target


def _measure_index(folder: Path) -> dict[str, float]:
    """Compare one index lookup among 50,000 domains with reading the JSON lines one by one."""
    store = open_store(str(folder))
    names = [f"site-{number:06d}.example" for number in range(INDEX_DOMAINS)]
    body = _write_index(folder, names)
    reader = DomainStore(store)
    chosen = random.Random(7).sample(names, 1_000)
    lookup, scan, find = _best_each(
        (chosen, reader.entry),
        (chosen[:5], lambda name: _scan(body, name)),
        (chosen[:50], lambda name: body.find(b'"domain":"%b"' % name.encode())),
    )
    return {
        "index_lookup_microseconds": lookup * 1e6,
        "index_ratio": scan / lookup,
        "index_against_byte_search": find / lookup,
    }


def _scan(body: bytes, name: str) -> object:
    return next(row for row in map(json.loads, body.splitlines()) if row["domain"] == name)


def _write_index(folder: Path, names: list[str]) -> bytes:
    """Write a bucket of which only the index exists."""
    store = open_store(str(folder))
    seen = date(2025, 11, 1)
    entries = pl.DataFrame(
        {"domain": names, "offset": range(len(names))},
    ).select(
        "domain",
        pl.col("offset").cast(pl.UInt64),
        batch=pl.lit("2025-11-01"),
        file=pl.lit(0, dtype=pl.UInt32),
        length=pl.lit(1, dtype=pl.UInt64),
        records=pl.lit(1, dtype=pl.UInt64),
        languages=pl.lit(["en"], dtype=pl.List(pl.String)),
        first_seen=pl.lit(seen),
        last_seen=pl.lit(seen),
    )
    file = DataFile("domain_store/data/0/0/part-0123456789ab-000001.jsonl.gz", len(names))
    segment = Segment(
        "0123456789ab", 0, (file,), "0123456789ab", {"2025-11-01": BatchEntry("x", 1_762_000_000)}
    )
    index = build_index([segment], [byte_ranges(segment, entries)], bucket=0, uri=store.uri)
    path = index_path(0, "0123456789ab")
    store.put(path, index.body)
    store.put("domain_store/store.json", b'{"format": 1, "buckets": 1}')
    described = Index(path, len(index.body), "", sparse=index.sparse, **index_totals(index.ranges))
    commit(store, Current(None, None), lambda number: Manifest(0, 1, number, described))
    return index.body
