"""Compare manifest, index, records and data of a bucket: all, a sample, or file sizes only."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from news_platform.datasets.domain_store import RANGES, RECORDS
from news_platform.domain_store.building.merge import (
    build_index,
    byte_ranges,
    read_all,
    read_entries,
    records_by_batch,
)
from news_platform.domain_store.fragments import (
    Fragment,
    RangeReader,
    iter_fragment_lines,
    iter_fragment_rows,
)
from news_platform.domain_store.layout import (
    bucket_folders,
    bucket_of,
    manifest_path,
    records_path,
    view_path,
)
from news_platform.domain_store.lookup import DomainStore, IndexEntry, parse_index_entry
from news_platform.domain_store.manifest import (
    Manifest,
    Segment,
    check_bucket_count,
    find_orphans,
    read_bucket_count,
    read_current,
)
from news_platform.domain_store.staging.stage import Staged, read_staged
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.match import NO_TAKEDOWNS

# The checks after a build count the newest batches only; `store verify` counts all.
RECENT_BATCHES = 31
SAMPLED_DOMAINS = 20


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The records that were read, and one sentence per problem that names the file."""

    records: int
    problems: tuple[str, ...]


def verify_bucket(store: ObjectStore, bucket: int) -> VerifyReport:
    """Read every byte of the newest generation of a bucket and compare all counts."""
    try:
        manifest = read_current(store, bucket, with_batches=True).manifest
        if manifest is None:
            return VerifyReport(0, ())
        check_bucket_count(manifest, read_bucket_count(store))
    except StorageError as error:
        return VerifyReport(0, (str(error),))
    problems = [*_iter_segment_problems(store, manifest), *_iter_index_problems(store, manifest)]
    return VerifyReport(manifest.index.records, tuple(problems))


def _iter_segment_problems(store: ObjectStore, manifest: Manifest) -> Iterator[str]:
    for segment in (one for one in manifest.segments if one.files):
        try:
            entries = read_entries(store, segment)
            yield from _iter_file_problems(store, segment, entries)
            yield from _iter_record_problems(store, segment, entries)
        except StorageError as error:
            yield str(error)


def _iter_file_problems(
    store: ObjectStore, segment: Segment, entries: pl.DataFrame
) -> Iterator[str]:
    for number, file in enumerate(segment.files):
        part = entries.filter(pl.col("file") == number).sort("offset")
        info = store.find(file.path)
        if info is None or info.size_bytes != file.size_bytes:
            found = "missing" if info is None else f"{info.size_bytes} bytes long"
            yield f"{store.uri(file.path)!r} is {found}, expected {file.size_bytes} bytes"
            continue
        reader = RangeReader(store, file.path, size_bytes=file.size_bytes)
        expected = 0
        for domain, offset, length, records in part.select(
            "domain", "offset", "length", "records"
        ).iter_rows():
            if offset != expected:
                gap = f"{offset - expected} bytes without an entry at byte {expected}"
                yield f"{store.uri(file.path)!r} has {gap}"
            expected = offset + length
            fragment = Fragment(file.path, offset, length, records)
            where = store.uri(file.path)
            yield from _iter_data_problems(fragment, reader, domain=domain, where=where)
        if expected != file.size_bytes:
            ends = f"ends at byte {file.size_bytes}, its entries end at {expected}"
            yield f"{store.uri(file.path)!r} {ends}"


def _iter_data_problems(
    fragment: Fragment, reader: RangeReader, *, domain: str, where: str
) -> Iterator[str]:
    # `domain` is the first field of every record, so its line starts with these bytes.
    head = (
        pl.DataFrame({"domain": [domain]}).select(pl.struct("domain").struct.json_encode()).item()
    )
    prefix = head.removesuffix("}").encode() + b","
    try:
        pieces = reader.pieces(fragment.offset, fragment.length)
        lines = iter_fragment_lines(fragment, pieces, where)
        strangers = sum(not line.startswith(prefix) for line in lines)
    except StorageError as error:
        yield str(error)
        return
    if strangers:
        yield f"{where!r} has {strangers} records of other domains among those of {domain!r}"


def _iter_record_problems(
    store: ObjectStore, segment: Segment, entries: pl.DataFrame
) -> Iterator[str]:
    path = records_path(segment.bucket, segment.name)
    keys = ["domain", "batch"]
    listed = read_table(store, path, RECORDS).group_by(keys).agg(pl.len().alias("listed"))
    held = entries.group_by(keys).agg(pl.col("records").sum())
    joined = held.join(listed, on=keys, how="full", coalesce=True)
    wrong = joined.filter(pl.col("records").eq_missing(pl.col("listed")).not_())
    if wrong.height:
        differ = f"other record counts than the entries for {wrong.height} domains"
        yield f"{store.uri(path)!r} has {differ}"


def _iter_index_problems(store: ObjectStore, manifest: Manifest) -> Iterator[str]:
    try:
        entries = read_all(read_entries, store, manifest.segments)
        held = [byte_ranges(segment, part) for segment, part in entries]
        expected = build_index(manifest.segments, held, bucket=manifest.bucket, uri=store.uri)
        found = store.read(manifest.index.path)
        ranges = read_table(store, manifest.index.ranges_path, RANGES)
        view = store.read(view_path(manifest.bucket))
    except StorageError as error:
        yield str(error)
        return
    path = store.uri(manifest.index.path)
    size = manifest.index.size_bytes
    if len(found) != size or _entries(found) != _entries(expected.body):
        yield f"{path!r} differs from the entries"
    # With another length all offsets differ, which the line above reports already.
    if manifest.index.sparse != expected.sparse and len(found) == len(expected.body):
        yield f"the sparse index of {path!r} differs from the index"
    if not ranges.equals(expected.ranges.cast(pl.Schema(RANGES.schema))):
        yield f"{store.uri(manifest.index.ranges_path)!r} differs from the entries"
    names = expected.ranges["domain"].unique().sort()
    strangers = [name for name in names if bucket_of(name, manifest.buckets) != manifest.bucket]
    if strangers:
        yield f"{path!r} has domains of other buckets: {strangers[:3]}"
    if view != found:
        view_uri = store.uri(view_path(manifest.bucket))
        yield f"{view_uri!r} is not the newest index: build the bucket again"


def _entries(body: bytes) -> list[IndexEntry] | None:
    try:
        return [parse_index_entry(line) for line in body.splitlines()]
    except StorageError:
        return None


def iter_count_problems(store: ObjectStore, buckets: Iterable[int]) -> Iterator[str]:
    """Compare the record counts of the newest batches in each bucket with the staged ones."""
    staged: Staged | None = None
    for bucket in buckets:
        manifest = read_current(store, bucket, with_batches=True).manifest
        if manifest is None:
            continue
        # Listed once for all buckets, and only when there is something to compare.
        staged = staged or read_staged(store, manifest.buckets)
        held = records_by_batch(store, manifest)
        for batch in sorted(staged.inputs)[-RECENT_BATCHES:]:
            found, wrote = held.get(batch, 0), staged.records(batch, bucket)
            # A range is not built for batches without rows in it.
            is_here = found > 0 or wrote > 0
            if is_here and manifest.batch_inputs.get(batch) != staged.inputs[batch]:
                yield f"bucket {bucket} does not have the staged version of batch {batch!r}"
            elif found != wrote:
                yield f"bucket {bucket} has {found} records of batch {batch!r}, staged: {wrote}"


def iter_read_problems(
    store: ObjectStore, buckets: Iterable[int], *, seed: int, sample: int = SAMPLED_DOMAINS
) -> Iterator[str]:
    """Read every fragment of a random sample of domains, chosen by `seed`."""
    reader = DomainStore(store, hidden=NO_TAKEDOWNS)
    names = [domain for bucket in buckets for domain in reader.catalog(bucket)["domain"]]
    for domain in random.Random(seed).sample(names, min(sample, len(names))):
        entry = reader.entry(domain)
        if entry is None:
            yield f"{domain!r} is in the catalog but not in the index"
            continue
        try:
            strangers = sum(
                row.get("domain") != domain for row in iter_fragment_rows(store, entry.fragments)
            )
        except StorageError as error:
            yield str(error)
            continue
        if strangers:
            yield f"the fragments of {domain!r} hold {strangers} records of other domains"


def iter_orphan_problems(
    store: ObjectStore, buckets: Iterable[int], *, before: datetime
) -> Iterator[str]:
    """Report files written earlier than `before` that belong to no generation."""
    for bucket in buckets:
        current = read_current(store, bucket)
        for info in find_orphans(store, current, bucket=bucket, before=before):
            yield f"{store.uri(info.path)!r} belongs to no generation: `store compact` deletes it"


@dataclass(frozen=True, slots=True)
class Damage:
    """The segments of a bucket whose files are all there, and whether its index is."""

    intact: tuple[Segment, ...]
    is_indexed: bool


def find_damage(store: ObjectStore, manifest: Manifest) -> Damage:
    """Compare the files of a bucket with its manifest, by name and size.

    Without the index the byte ranges of all segments are unknown, even of those that are intact.
    """
    folders = bucket_folders(manifest.bucket)
    sizes = {info.path: info.size_bytes for folder in folders for info in store.list(f"{folder}/")}
    own, index = manifest_path(manifest.bucket, manifest.generation), manifest.index
    has_size = sizes.get(index.path) == index.size_bytes
    return Damage(
        intact=tuple(segment for segment in manifest.segments if _is_intact(segment, sizes)),
        is_indexed=has_size and {index.ranges_path, own} <= sizes.keys(),
    )


def _is_intact(segment: Segment, sizes: Mapping[str, int]) -> bool:
    has_size = all(sizes.get(file.path) == file.size_bytes for file in segment.files)
    return has_size and sizes.keys() >= set(segment.paths)
