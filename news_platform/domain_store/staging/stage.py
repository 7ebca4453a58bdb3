"""Stage 1: write the rows of one batch to one folder per bucket, sorted by domain.

A batch is a day or a named crawl. File names contain a hash of the inputs, so a changed batch is
written next to the old one. Then the marker is replaced, and only then the old files are deleted:
readers that start at the marker see either the old or the new batch.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain, groupby

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.datasets.domain_store import STAGED_ROOT as DATASET
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.domain_store.data_files import (
    MemberWriter,
    Uploads,
    open_uploads,
    scratch_errors,
)
from news_platform.domain_store.fragments import iter_warc_frames
from news_platform.domain_store.layout import (
    MANIFESTS,
    STORE_FILE,
    BuildOptions,
    batch_scope,
    facts_path,
    is_in_scope,
    range_buckets,
    range_keys,
    staged_folder,
    staged_path,
    validated_batch,
)
from news_platform.domain_store.manifest import claim_bucket_count, read_bucket_count
from news_platform.domain_store.staging.rows import (
    FACT_NAMES,
    DomainRun,
    SortedRuns,
    StagingInput,
    encode_lines,
    iter_rows,
)
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import (
    Marker,
    fingerprint,
    read_inputs,
    read_markers,
    read_report,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes
from news_platform.takedowns.build_filters import require_same_takedowns, without_covered
from news_platform.takedowns.match import Takedowns

# Part of every file name, so that a new format gets new files.
FORMAT = versions.STORE_FORMAT
# Facts of this many records are Python objects at a time; a Polars column takes far less memory.
FACTS_PER_FRAME = 5_000
_CONCURRENT_DELETES = 8
# In the report of a batch whose files were deleted, see `domain_store/retention.py`.
EXPIRED_AT = "expired_at"
# In the report: the name of the files in buckets that were written again, see `engine.py`.
REVISIONS = "revisions"
# Files, records and bytes of a batch in one bucket.
Cell = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class StageReport:
    """What was staged for a batch; `cells` has (files, records, bytes) of each bucket."""

    batch: str
    records: int
    domains: int
    bytes: int
    spilled_runs: int
    cells: Mapping[int, Cell]
    taken_down: int = 0


def staged_name(batch: str, inputs: str, *, buckets: int) -> str:
    """Return the 12 hex digits in the names of all files of this version of a batch."""
    return fingerprint([f"batch {batch}", f"inputs {inputs}", f"buckets {buckets}", FORMAT])[:12]


def stage_batch(
    frames: Iterable[pl.DataFrame],
    *,
    store: ObjectStore,
    batch: str,
    inputs: str,
    options: BuildOptions,
    now: datetime | None = None,
) -> StageReport:
    """Replace the batch in all buckets with raw_news rows; `inputs` is their fingerprint.

    Rows that are taken down at `now` are left out.
    """
    # Before any work: with another number of buckets the whole run would be lost.
    claim_bucket_count(store, options.buckets)
    name = staged_name(validated_batch(batch), inputs, buckets=options.buckets)
    runs = SortedRuns(options.memory_bytes, scratch=options.scratch)
    takedowns = Takedowns.read(store, now=now, use="removal")
    refused = 0
    with scratch_errors(options.scratch), closing(runs):
        for frame in frames:
            kept = without_covered(frame, RAW_NEWS, takedowns)
            refused += frame.height - kept.height
            runs.add(encode_lines(kept, options.buckets))
        with open_uploads(store, options.uploads) as uploads:
            report = _write(runs, uploads, batch=batch, name=name, options=options)
    report = replace(report, taken_down=refused)
    require_same_takedowns(store, takedowns, now=now)
    # Last: until then, readers find the old batch.
    scope = batch_scope(report.cells, options.buckets)
    write_marker(store, DATASET, batch, inputs=inputs, report=_as_json(report), scope=scope)
    delete_staged(store, batch, buckets=options.buckets, keep=uploads.paths)
    return report


def stage_input(
    found: StagingInput | None,
    *,
    store: ObjectStore,
    batch: str,
    options: BuildOptions,
    now: datetime | None = None,
) -> StageReport:
    """Replace the batch with the rows of these files; without an input it stays as it is."""
    if found is None:
        return StageReport(batch, 0, 0, 0, 0, {})
    frames = iter_rows(found.store, found.paths, scratch=options.scratch)
    if found.expired:
        frames = chain(iter_warc_frames(store, batch, found.expired), frames)
    return stage_batch(
        frames, store=store, batch=batch, inputs=found.inputs, options=options, now=now
    )


def _write(
    runs: SortedRuns, uploads: Uploads, *, batch: str, name: str, options: BuildOptions
) -> StageReport:
    cells: dict[int, Cell] = {}
    domains = 0
    for bucket, domain_runs in groupby(runs.domain_runs(), key=lambda run: run.bucket):
        files = [
            _write_file(
                piece,
                uploads,
                staged_path(bucket, batch, name=name, number=number),
                scratch=options.scratch,
            )
            for number, piece in enumerate(_iter_files(domain_runs, options.records_per_file))
        ]
        cells[bucket] = (len(files), sum(f.records for f in files), sum(f.bytes for f in files))
        domains += len({domain for file in files for domain in file.domains})
    records = sum(cell[1] for cell in cells.values())
    size_bytes = sum(cell[2] for cell in cells.values())
    return StageReport(batch, records, domains, size_bytes, runs.spilled, cells)


@dataclass(frozen=True, slots=True)
class _File:
    records: int
    bytes: int
    domains: frozenset[str]


def _write_file(
    runs: Iterable[DomainRun], uploads: Uploads, path: str, *, scratch: str | None
) -> _File:
    spool = uploads.new_spool(scratch)
    writer = MemberWriter(spool)
    facts = _Facts()
    for run in runs:
        writer.add(run.domain, run.lines)
        facts.add(run)
    writer.end_domain()
    rows = pl.concat([_domain_ranges(writer), facts.rows()], how="horizontal")
    uploads.put(facts_path(path), parquet_bytes(rows, DOMAIN_BUCKETS))
    uploads.put(path, spool)
    return _File(
        writer.records, writer.size_bytes, frozenset(part.domain for part in writer.ranges)
    )


class _Facts:
    """Collects the facts of records, and turns them into frames in time to save memory."""

    def __init__(self) -> None:
        self._parts = [_fact_frame(tuple([] for _ in FACT_NAMES))]
        self._columns: tuple[list[object], ...] = tuple([] for _ in FACT_NAMES)

    def add(self, run: DomainRun) -> None:
        for column, values in zip(self._columns, run.facts, strict=True):
            column.extend(values)
        if len(self._columns[0]) >= FACTS_PER_FRAME:
            self._flush()

    def rows(self) -> pl.DataFrame:
        self._flush()
        return pl.concat(self._parts)

    def _flush(self) -> None:
        self._parts.append(_fact_frame(self._columns))
        self._columns = tuple([] for _ in FACT_NAMES)


def _fact_frame(columns: tuple[list[object], ...]) -> pl.DataFrame:
    schema = DOMAIN_BUCKETS.schema
    named = zip(FACT_NAMES, columns, strict=True)
    return pl.DataFrame([pl.Series(name, values).cast(schema[name]) for name, values in named])


def _domain_ranges(writer: MemberWriter) -> pl.DataFrame:
    """Return the domain of each record and the byte range of that domain."""
    ranges = pl.DataFrame(writer.ranges, schema=["domain", "run_offset", "run_length", "records"])
    return ranges.select(pl.exclude("records").repeat_by("records").explode())


def _iter_files(runs: Iterable[DomainRun], records: int) -> Iterator[Iterator[DomainRun]]:
    """Split runs into files of `records` records; consume each file before the next."""
    source = iter(runs)
    held = next(source, None)

    def one_file() -> Iterator[DomainRun]:
        nonlocal held
        room = records
        while held is not None and room > 0:
            head, held = _split(held, room)
            yield head
            room -= len(head.lines)
            if held is None:
                held = next(source, None)

    while held is not None:
        yield one_file()


def _split(run: DomainRun, size: int) -> tuple[DomainRun, DomainRun | None]:
    if len(run.lines) <= size:
        return run, None
    head, tail = (
        DomainRun(run.bucket, run.domain, run.lines[part], tuple(f[part] for f in run.facts))
        for part in (slice(size), slice(size, None))
    )
    return head, tail


def delete_staged(
    store: ObjectStore, batch: str, *, buckets: int, keep: Collection[str] = ()
) -> None:
    """Delete the files of a batch in all buckets, but for those of its current version."""

    def delete_in(bucket: int) -> None:
        found = [info.path for info in store.list(staged_folder(bucket, batch))]
        store.delete(path for path in found if path not in keep)

    # In all buckets, because an earlier version may have files where this one has none.
    with ThreadPoolExecutor(_CONCURRENT_DELETES) as pool:
        list(pool.map(delete_in, range(buckets)))


def _as_json(report: StageReport) -> dict[str, object]:
    return {
        "records": report.records,
        "domains": report.domains,
        "bytes": report.bytes,
        "buckets": {str(bucket): cell for bucket, cell in report.cells.items()},
        **({TAKEN_DOWN: report.taken_down} if report.taken_down else {}),
    }


@dataclass(frozen=True)
class Staged:
    """All staged batches, from one listing of their markers."""

    store: ObjectStore
    buckets: int
    markers: Mapping[str, Marker]

    @cached_property
    def inputs(self) -> Mapping[str, str]:
        """Return the fingerprint of the inputs of each batch."""
        return {batch: marker.inputs for batch, marker in self.markers.items()}

    def name(self, batch: str, bucket: int) -> str:
        """Return the 12 hex digits in the names of all files of a batch in a bucket.

        A bucket that was written again without taken-down records has a name of its own.
        """
        revisions = self._report(batch).get(REVISIONS)
        if isinstance(revisions, dict) and str(bucket) in revisions:
            return str(revisions[str(bucket)])
        return staged_name(batch, self.markers[batch].inputs, buckets=self.buckets)

    def range_fingerprint(self, key: str) -> str:
        """Return the fingerprint of the batches that have rows in a range of buckets."""
        return _range_fingerprint(self.markers, key, buckets=self.buckets)

    def files(self, batch: str, bucket: int) -> int:
        """Return the number of data files of a batch in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[0]

    def paths(self, batch: str, bucket: int) -> list[str]:
        """Return the data files of a batch in a bucket, in order."""
        name, numbers = self.name(batch, bucket), range(self.files(batch, bucket))
        return [staged_path(bucket, batch, name=name, number=number) for number in numbers]

    def records(self, batch: str, bucket: int) -> int:
        """Return the number of records of a batch in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[1]

    def size_bytes(self, batch: str, bucket: int) -> int:
        """Return the bytes of the data files of a batch in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[2]

    def filled_buckets(self, batch: str) -> list[int]:
        """Return the buckets in which a batch has records."""
        return sorted(map(int, self._cells(batch)))

    def is_expired(self, batch: str) -> bool:
        """Return whether the files of a batch were deleted because the store holds its records."""
        return EXPIRED_AT in self._report(batch)

    @cached_property
    def _reports(self) -> dict[str, Mapping[str, object]]:
        return {}

    def _report(self, batch: str) -> Mapping[str, object]:
        # Read on demand: most builds add one batch of hundreds.
        if batch not in self._reports:
            self._reports[batch] = read_report(self.store, self.markers[batch])
        return self._reports[batch]

    def _cells(self, batch: str) -> Mapping[str, Cell]:
        cells = self._report(batch).get("buckets")
        if not isinstance(cells, dict):
            path = self.markers[batch].path
            message = f"marker {path!r} has no buckets: stage the batch again"
            raise StorageError(message, thing=path)
        return cells


def read_staged(store: ObjectStore, buckets: int) -> Staged:
    """List the staged batches."""
    return Staged(store, buckets, read_markers(store, DATASET))


def staged_fingerprint(markers: Mapping[str, Marker]) -> str:
    """Return the fingerprint of staged batches, from the names of their markers."""
    return fingerprint(f"{batch}@{marker.inputs}" for batch, marker in markers.items())


def wanted_ranges(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that every range of buckets should be built from.

    It is that of the batches with rows in the range, so other batches do not make it stale.
    """
    if not store.exists(STORE_FILE):
        return {}
    markers, buckets = read_markers(store, DATASET), read_bucket_count(store)
    return {key: _range_fingerprint(markers, key, buckets=buckets) for key in range_keys(buckets)}


def _range_fingerprint(markers: Mapping[str, Marker], key: str, *, buckets: int) -> str:
    # All buckets of a range share a bit of the scope.
    first = range_buckets(key, buckets)[0]
    return staged_fingerprint(
        {
            batch: marker
            for batch, marker in markers.items()
            if is_in_scope(marker.scope, first, buckets)
        }
    )


def built_ranges(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that every range of buckets was built from.

    Markers of a store that somebody deleted do not count, but for ranges that hold nothing.
    """
    inputs = read_inputs(store, STORE)
    if not inputs or store.list_folders(MANIFESTS):
        return inputs
    nothing = staged_fingerprint({})
    return {key: built_from for key, built_from in inputs.items() if built_from == nothing}
