"""Stage 1: the rows of one batch to files a bucket, sorted by domain; the marker comes last.

File names carry a hash of the inputs. A changed batch is therefore written beside the old one, the
marker moves over, and only then the old files go: whoever follows the marker sees one or the other.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import polars as pl

from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_buckets import ROOT as DATASET
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.domain_store.building.uploads import Uploads, open_uploads, scratch_errors
from news_platform.domain_store.commit import claim_bucket_count, read_bucket_count
from news_platform.domain_store.gzip_members import MemberWriter
from news_platform.domain_store.layout import (
    STORE_FILE,
    facts_path,
    range_keys,
    staged_folder,
    staged_path,
    validated_batch,
)
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.staging.inputs import StagingInput, iter_rows
from news_platform.domain_store.staging.sorted_runs import (
    FACT_NAMES,
    DomainRun,
    SortedRuns,
    encode_lines,
)
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import (
    Marker,
    delete_marker,
    fingerprint,
    read_markers,
    read_report,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes

# Part of every file name: a change of format is a change of input.
FORMAT = "1"
FACTS_PER_FRAME = 5_000
Cell = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class StageReport:
    """What stage 1 wrote for a batch; `cells` has (files, records, bytes) for each bucket."""

    batch: str
    records: int
    domains: int
    bytes: int
    spilled_runs: int
    cells: Mapping[int, Cell]


def staged_name(batch: str, inputs: str, *, buckets: int) -> str:
    """Return the 12 hex digits that stand in the names of all files of this version of a batch."""
    return fingerprint([f"batch {batch}", f"inputs {inputs}", f"buckets {buckets}", FORMAT])[:12]


def stage_batch(
    frames: Iterable[pl.DataFrame],
    *,
    store: ObjectStore,
    batch: str,
    inputs: str,
    options: BuildOptions,
) -> StageReport:
    """Replace the batch in all buckets by these raw_news rows; `inputs` is their fingerprint."""
    claim_bucket_count(store, options.buckets)
    name = staged_name(validated_batch(batch), inputs, buckets=options.buckets)
    runs = SortedRuns(options.memory_bytes, scratch=options.scratch)
    with scratch_errors(options.scratch), closing(runs):
        for frame in frames:
            runs.add(encode_lines(frame, options.buckets))
        with open_uploads(store, options.uploads) as uploads:
            report = _write(runs, uploads, batch=batch, name=name, options=options)
    write_marker(store, DATASET, batch, inputs=inputs, report=_as_json(report))
    _sweep(store, batch, keep=uploads.paths, options=options)
    return report


def stage_input(
    rows: StagingInput | None, *, store: ObjectStore, batch: str, options: BuildOptions
) -> StageReport:
    """Replace the batch by the rows of these files, or forget it when there is no input."""
    if rows is None:
        unstage_batch(store, batch, options=options)
        return StageReport(batch, 0, 0, 0, 0, {})
    frames = iter_rows(rows.store, rows.paths, scratch=options.scratch)
    return stage_batch(frames, store=store, batch=batch, inputs=rows.inputs, options=options)


def unstage_batch(store: ObjectStore, batch: str, *, options: BuildOptions) -> None:
    """Forget a batch whose input is gone: first its marker, then its files."""
    delete_marker(store, DATASET, batch)
    _sweep(store, batch, keep=set(), options=options)


def _write(
    runs: SortedRuns, uploads: Uploads, *, batch: str, name: str, options: BuildOptions
) -> StageReport:
    cells: dict[int, Cell] = {}
    domains = 0
    for bucket, groups in groupby(runs.groups(), key=lambda group: group.bucket):
        files = [
            _write_file(
                piece,
                uploads,
                staged_path(bucket, batch, name=name, number=number),
                scratch=options.scratch,
            )
            for number, piece in enumerate(_iter_files(groups, options.records_per_file))
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
    groups: Iterable[DomainRun], uploads: Uploads, path: str, *, scratch: str | None
) -> _File:
    spool = uploads.new_spool(scratch)
    writer = MemberWriter(spool)
    facts = _Facts()
    for group in groups:
        writer.add(group.domain, group.lines)
        facts.add(group)
    writer.end_run()
    rows = pl.concat([_placed(writer), facts.rows()], how="horizontal")
    uploads.put(facts_path(path), parquet_bytes(rows, DOMAIN_BUCKETS))
    uploads.put(path, spool)
    return _File(writer.records, writer.size_bytes, frozenset(run.domain for run in writer.runs))


class _Facts:
    """Collects the facts of records; lists of Python objects are large, so never many at once."""

    def __init__(self) -> None:
        self._parts = [_fact_frame(tuple([] for _ in FACT_NAMES))]
        self._columns: tuple[list[object], ...] = tuple([] for _ in FACT_NAMES)

    def add(self, group: DomainRun) -> None:
        for column, values in zip(self._columns, group.facts, strict=True):
            column.extend(values)
        if len(self._columns[0]) >= FACTS_PER_FRAME:
            self._settle()

    def rows(self) -> pl.DataFrame:
        self._settle()
        return pl.concat(self._parts)

    def _settle(self) -> None:
        self._parts.append(_fact_frame(self._columns))
        self._columns = tuple([] for _ in FACT_NAMES)


def _fact_frame(columns: tuple[list[object], ...]) -> pl.DataFrame:
    schema = DOMAIN_BUCKETS.schema
    named = zip(FACT_NAMES, columns, strict=True)
    return pl.DataFrame([pl.Series(name, values).cast(schema[name]) for name, values in named])


def _placed(writer: MemberWriter) -> pl.DataFrame:
    """Return for each record its domain and where that domain's run lies."""
    runs = pl.DataFrame(writer.runs, schema=["domain", "run_offset", "run_length", "records"])
    return runs.select(pl.exclude("records").repeat_by("records").explode())


def _iter_files(groups: Iterable[DomainRun], records: int) -> Iterator[Iterator[DomainRun]]:
    """Cut groups into files of `records` records; each file must be used up before the next."""
    source = iter(groups)
    held = next(source, None)

    def one_file() -> Iterator[DomainRun]:
        nonlocal held
        room = records
        while held is not None and room > 0:
            head, held = _cut(held, room)
            yield head
            room -= len(head.lines)
            if held is None:
                held = next(source, None)

    while held is not None:
        yield one_file()


def _cut(group: DomainRun, size: int) -> tuple[DomainRun, DomainRun | None]:
    if len(group.lines) <= size:
        return group, None
    head, tail = (
        DomainRun(
            group.bucket, group.domain, group.lines[part], tuple(f[part] for f in group.facts)
        )
        for part in (slice(size), slice(size, None))
    )
    return head, tail


def _sweep(store: ObjectStore, batch: str, *, keep: set[str], options: BuildOptions) -> None:
    """Delete what earlier versions or attempts of the batch left in any bucket."""

    def sweep(bucket: int) -> None:
        found = [info.path for info in store.list(staged_folder(bucket, batch))]
        store.delete(path for path in found if path not in keep)

    with ThreadPoolExecutor(options.uploads) as pool:
        list(pool.map(sweep, range(options.buckets)))


def _as_json(report: StageReport) -> dict[str, object]:
    return {
        "records": report.records,
        "domains": report.domains,
        "bytes": report.bytes,
        "buckets": {str(bucket): cell for bucket, cell in report.cells.items()},
    }


@dataclass(frozen=True)
class Staged:
    """The batches of stage 1 as one listing of their markers showed them."""

    store: ObjectStore
    buckets: int
    markers: Mapping[str, Marker]

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Return what stands for the present version of each batch."""
        return {batch: marker.inputs for batch, marker in self.markers.items()}

    def name(self, batch: str) -> str:
        """Return what stands in the names of all files of the present version of a batch."""
        return staged_name(batch, self.markers[batch].inputs, buckets=self.buckets)

    @property
    def fingerprint(self) -> str:
        """Return what stands for all batches in their present versions."""
        return staged_fingerprint(self.markers)

    def files(self, batch: str, bucket: int) -> int:
        """Return how many data files the batch has in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[0]

    def records(self, batch: str, bucket: int) -> int:
        """Return how many records the batch has in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[1]

    @cached_property
    def _reports(self) -> dict[str, Mapping[str, tuple[int, int, int]]]:
        return {}

    def _cells(self, batch: str) -> Mapping[str, tuple[int, int, int]]:
        if batch not in self._reports:
            marker = self.markers[batch]
            cells = read_report(self.store, marker).get("buckets")
            if not isinstance(cells, dict):
                raise StorageError(f"{marker.path!r} does not name its buckets", thing=marker.path)
            self._reports[batch] = cells
        return self._reports[batch]


def read_staged(store: ObjectStore, buckets: int) -> Staged:
    """List what stage 1 has ready."""
    return Staged(store, buckets, read_markers(store, DATASET))


def staged_fingerprint(markers: Mapping[str, Marker]) -> str:
    """Return what stands for all batches of stage 1 in their present versions, by names alone."""
    return fingerprint(f"{batch}@{marker.inputs}" for batch, marker in markers.items())


def wanted_ranges(store: ObjectStore) -> Mapping[str, str]:
    """Return what every range of buckets must stand on: all batches that stage 1 has ready."""
    if not store.exists(STORE_FILE):
        return {}
    inputs = staged_fingerprint(read_markers(store, DATASET))
    return dict.fromkeys(range_keys(read_bucket_count(store)), inputs)


def built_ranges(store: ObjectStore) -> Mapping[str, str]:
    """Return what every range of buckets stands on."""
    return {key: marker.inputs for key, marker in read_markers(store, STORE).items()}
