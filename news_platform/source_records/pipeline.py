"""Segment all snapshots of an institution: records to Parquet, failed pages to quarantine.

`build_institution` reads the snapshots, segments each in a worker process and replaces the output.
`wanted_institutions` gives the fingerprints by which an institution is found to be out of date.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.source_records import (
    SNAPSHOTS_FOLDER,
    SOURCE_RECORD_CHANGES,
    SOURCE_RECORDS,
    SOURCE_RECORDS_QUARANTINE,
    SourceRecord,
    changes_path,
    institution_folder,
    institution_of,
    quarantine_path,
    records_path,
    samples_path,
)
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.isolation.pool import Done, Pool
from news_platform.source_records.changes import changes_of, new_changes
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import (
    TARGET,
    SegmentJob,
    SnapshotResult,
    failed_snapshot,
)
from news_platform.source_records.snapshots import SUFFIXES, Snapshot
from news_platform.storage.commit.markers import (
    content_part,
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import parquet_bytes, read_table
from news_platform.takedowns.build_filters import require_same_takedowns
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import TakedownTarget

_log = logging.getLogger(__name__)

DATASET = SOURCE_RECORDS.name
# In the name of every marker: what another version built is outdated, but no sensor requests it.
SEGMENTER_VERSION = versions.SEGMENTER
# A marker of its own that records the current options.
_OPTIONS_DATASET = f"{DATASET}_options"
_OPTIONS_KEY = "all"
# How many failed pages a report names.
_FAILURES = 5
# Enough for a page of the maximum size and its JSON; larger files are not read at all.
_MAX_SNAPSHOT_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class RecordsOptions:
    """How snapshots are segmented, the limits of the workers, and the samples in the report.

    `target` is the function that a worker runs on each `SegmentJob`.
    """

    segment: SegmentOptions = field(default_factory=SegmentOptions)
    workers: int = 2
    # Real pages take about 10 ms.
    deadline_seconds: float = 5.0
    memory_bytes: int = 1_500_000_000
    samples: int = 5
    target: str = TARGET


@dataclass(frozen=True, slots=True)
class RecordsReport:
    """Counts of an institution's pages and blocks; an empty page has no block that is kept.

    `languages` counts every block whose language was detected. `samples` are (section, text) of a
    few records spread over all pages, for display; `failures` are (snapshot, error) of the first
    failed pages. `new_changes` are the blocks that differ in snapshots which the last build did not
    have.
    """

    institution: str
    pages_seen: int = 0
    pages_failed: int = 0
    pages_empty: int = 0
    blocks_total: int = 0
    blocks_kept: int = 0
    blocks_deduped: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[tuple[str, str], ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    changes: int = 0
    new_changes: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)

    @property
    def failed_share(self) -> float:
        """Return the share of pages that failed."""
        return self.pages_failed / self.pages_seen if self.pages_seen else 0.0


def build_institution(
    institution: str, *, store: ObjectStore, options: RecordsOptions
) -> RecordsReport:
    """Segment every snapshot of an institution and replace its records, quarantine and marker."""
    declare_options(store, options.segment)
    infos = _snapshots(store, institution_folder(institution))
    # Computed before reading: a snapshot that arrives meanwhile makes the institution stale.
    inputs = _fingerprint(infos, _options_fingerprint(options.segment), store=store)
    takedowns = Takedowns.read(store)
    snapshots = _Snapshots(store, TakedownTarget(takedowns))
    results = list(_iter_results(infos, snapshots, options=options))
    records = [record for result in results for record in result.records]
    failures = [failure for result in results for failure in result.failures]
    samples = _samples(records, options.samples)
    report = _report(institution, results, records=records, samples=samples)
    if snapshots.refused:
        report = replace(report, dropped={**report.dropped, TAKEN_DOWN: snapshots.refused})
    require_same_takedowns(store, takedowns, now=None, use="collection")
    changes = changes_of(records)
    report = replace(
        report,
        changes=changes.height,
        new_changes=new_changes(store, institution, changes),
    )
    _put_rows(store, records_path(institution), records, SOURCE_RECORDS)
    _put(store, changes_path(institution), parquet_bytes(changes, SOURCE_RECORD_CHANGES))
    _put(store, samples_path(institution), samples_json(samples))
    if failures:
        _put_rows(store, quarantine_path(institution), failures, SOURCE_RECORDS_QUARANTINE)
    else:
        store.delete([quarantine_path(institution)])  # an earlier build may have left one
    write_marker(
        store,
        DATASET,
        institution,
        inputs=inputs,
        report=_plain(report),
        scope=SEGMENTER_VERSION,
    )
    return report


def declare_options(store: ObjectStore, options: SegmentOptions) -> None:
    """Record the current options: what was built with other options is now out of date."""
    inputs = _options_fingerprint(options)
    if _declared_options(store) != inputs:
        write_marker(store, _OPTIONS_DATASET, _OPTIONS_KEY, inputs=inputs, report=asdict(options))


def wanted_institutions(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of every institution's snapshots.

    It includes the options that were declared last, with the rules of a rule file.
    """
    options = _declared_options(store)
    found: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in _snapshots(store, SNAPSHOTS_FOLDER):
        institution = institution_of(info.path)
        if institution:
            found[institution].append(info)
    return {
        institution: _fingerprint(infos, options, store=store)
        for institution, infos in found.items()
    }


def outdated_institutions(store: ObjectStore) -> list[str]:
    """Return the institutions whose records another version of the segmenter made."""
    markers = read_markers(store, DATASET)
    return sorted(key for key, marker in markers.items() if marker.scope != SEGMENTER_VERSION)


def record_problems(institution: str, *, store: ObjectStore) -> list[str]:
    """Return the problems of an institution's stored records; an empty list if there are none."""
    rows = read_table(store, records_path(institution), SOURCE_RECORDS)
    is_broken = {
        "without text": pl.col("text").str.strip_chars() == "",
        "without provenance": pl.any_horizontal(pl.col("url", "institution", "snapshot").is_null()),
        "without fetched_at": pl.col("fetched_at").is_null(),
        "out of order": pl.col("order").diff().over("snapshot", "url") <= 0,
    }
    counts = rows.select(**{name: rule.sum() for name, rule in is_broken.items()})
    found = counts.row(0, named=True)
    return [f"{institution}: {count} records {name}" for name, count in found.items() if count]


@dataclass(slots=True)
class _Snapshots:
    """Reads snapshots without the pages that are taken down, and counts the files that had any."""

    store: ObjectStore
    target: TakedownTarget
    refused: int = 0

    def read(self, info: ObjectInfo) -> Snapshot | None:
        """Return a snapshot, None if all of its pages are taken down."""
        body = self.store.read(info.path)
        left = self.target.left_of(body) if self.target.takedowns else body
        self.refused += left != body
        return _snapshot(info, left) if left is not None else None


def _snapshots(store: ObjectStore, folder: str) -> list[ObjectInfo]:
    return [info for info in store.list(folder) if info.path.lower().endswith(SUFFIXES)]


def _fingerprint(infos: list[ObjectInfo], options: str, *, store: ObjectStore) -> str:
    return fingerprint([f"options {options}", *map(content_part(store), infos)])


def _options_fingerprint(options: SegmentOptions) -> str:
    """Return the fingerprint of the options that differ from the defaults of this version."""
    default = asdict(SegmentOptions())
    given = {name: value for name, value in asdict(options).items() if value != default[name]}
    return fingerprint([json.dumps(given, sort_keys=True)])


def _declared_options(store: ObjectStore) -> str:
    declared = read_markers(store, _OPTIONS_DATASET).get(_OPTIONS_KEY)
    return declared.inputs if declared else _options_fingerprint(SegmentOptions())


def _iter_results(
    infos: list[ObjectInfo], snapshots: _Snapshots, *, options: RecordsOptions
) -> Iterator[SnapshotResult]:
    """Segment the snapshots in worker processes that can be killed, in the order of their paths."""
    small = [info for info in infos if info.size_bytes <= _MAX_SNAPSHOT_BYTES]
    for info in infos:
        if info.size_bytes > _MAX_SNAPSHOT_BYTES:
            yield failed_snapshot(_snapshot(info, b""), f"the snapshot has {info.size_bytes} bytes")
    sent: list[ObjectInfo] = []

    def jobs() -> Iterator[SegmentJob]:
        for info in small:
            if snapshot := snapshots.read(info):
                sent.append(info)
                yield SegmentJob(snapshot, options.segment)

    with Pool(
        options.target,
        workers=min(options.workers, max(1, len(small))),
        deadline_seconds=options.deadline_seconds,
        memory_bytes=options.memory_bytes,
    ) as pool:
        for number, outcome in enumerate(pool.map(jobs())):
            if isinstance(outcome, Done):
                yield outcome.value
            else:
                cause = f"{outcome.reason}: {outcome.detail}"
                _log.warning("snapshot %r failed: %s", sent[number].path, cause)
                yield failed_snapshot(_snapshot(sent[number], b""), cause)


def _snapshot(info: ObjectInfo, body: bytes) -> Snapshot:
    institution = institution_of(info.path) or ""
    return Snapshot(info.path, institution, body, modified_at=info.modified_at)


def _put(store: ObjectStore, path: str, body: bytes) -> None:
    """Write a file unless it has these bytes already: what no rule touches keeps its age."""
    if not (store.exists(path) and store.read(path) == body):
        store.put(path, body)


def _put_rows(
    store: ObjectStore, path: str, records: Iterable[SourceRecord], table: Dataset
) -> None:
    _put(store, path, parquet_bytes(record_rows(records, table), table))


def _samples(records: list[SourceRecord], count: int) -> list[SourceRecord]:
    # Every step-th record, rounded up, so that the samples spread over all pages.
    step = max(1, -(-len(records) // max(1, count)))
    return records[::step][:count]


def _report(
    institution: str,
    results: list[SnapshotResult],
    *,
    records: list[SourceRecord],
    samples: list[SourceRecord],
) -> RecordsReport:
    dropped = sum((result.dropped for result in results), Counter[str]())
    failures = [failure for result in results for failure in result.failures]
    return RecordsReport(
        institution,
        pages_seen=sum(result.pages for result in results),
        pages_failed=len(failures),
        pages_empty=sum(result.empty for result in results),
        blocks_total=sum(result.blocks for result in results),
        blocks_kept=len(records),
        blocks_deduped=dropped["duplicate"],
        dropped=dict(sorted(dropped.items())),
        languages=dict(sorted(sum((r.languages for r in results), Counter[str]()).items())),
        samples=tuple((record.provenance.section or "", record.text) for record in samples),
        failures=tuple((r.meta.snapshot or "", r.meta.error or "") for r in failures[:_FAILURES]),
    )


def _plain(report: RecordsReport) -> dict[str, object]:
    """Return what the marker keeps of a report: its counts, and the files that were written."""
    institution = report.institution
    files = [records_path(institution), changes_path(institution), samples_path(institution)]
    if report.pages_failed:
        files.append(quarantine_path(institution))
    return {"files": files, **report_document(report)}


def report_document(report: RecordsReport) -> dict[str, object]:
    """Return the counts of a report."""
    shown = ("institution", "samples", "failures", "new_changes")
    names = (one.name for one in fields(report) if one.name not in shown)
    return {name: getattr(report, name) for name in names}


def record_document(record: SourceRecord) -> dict[str, object]:
    """Return a record as the specification's JSON object, without unknown fields."""
    provenance = {key: value for key, value in record.provenance.items() if value is not None}
    meta = {key: value for key, value in record.meta.items() if value is not None}
    if "fetched_at" in provenance:
        provenance["fetched_at"] = str(provenance["fetched_at"]).replace(" ", "T")
    return {"id": record.id, "text": record.text, "provenance": provenance, "meta": meta}


def record_json(record: SourceRecord) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(record_document(record), ensure_ascii=False)


def samples_json(samples: Iterable[SourceRecord]) -> bytes:
    """Return sample records as an indented JSON document, for people who check them."""
    documents = [record_document(record) for record in samples]
    return (json.dumps(documents, ensure_ascii=False, indent=1) + "\n").encode()


def record_rows(records: Iterable[SourceRecord], table: Dataset) -> pl.DataFrame:
    """Return records, or the records of failed pages, as rows of a table."""
    rows = [
        {
            **record.provenance,
            **record.meta,
            # Sorted, so that the same hints are always the same bytes.
            "hints": json.dumps(dict(record.meta.hints), ensure_ascii=False, sort_keys=True),
            "text": record.text,
            "id": record.id,
        }
        for record in records
    ]
    return pl.DataFrame(rows, schema=dict(table.schema))
