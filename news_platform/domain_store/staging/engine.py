"""The engine of staged batches: records are removed by writing the files of a bucket again.

The new files have a name that follows from their content; then the marker of the batch names them,
then the old files go. Runs of other domains are copied byte by byte. The marker keeps its name, so
nothing that follows the batch becomes stale.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import STAGED_ROOT as STAGED
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.domain_store.data_files import rewrite_run
from news_platform.domain_store.layout import (
    STORE_FILE,
    bucket_of,
    facts_path,
    staged_folder,
    staged_path,
)
from news_platform.domain_store.manifest import read_bucket_count
from news_platform.domain_store.staging.stage import (
    REVISIONS,
    Staged,
    delete_staged,
    read_staged,
)
from news_platform.errors import Conflict
from news_platform.storage.commit.markers import (
    Marker,
    change_report,
    delete_marker,
    read_inputs,
)
from news_platform.storage.engines import RemovedRows, Target
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import parquet_bytes, read_table, scan_table

_FACTS, _DATA = ".parquet", ".jsonl.gz"


@dataclass(frozen=True, slots=True)
class StagedEngine:
    """The staged batches; a unit is a batch."""

    store: ObjectStore
    dataset: Dataset = DOMAIN_BUCKETS

    def units(self) -> Mapping[str, str]:
        """Return the fingerprint in the marker of every batch."""
        return read_inputs(self.store, self.dataset.name)

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the facts of the records of some batches, or of all."""
        infos = self.store.list(STAGED)
        wanted = [info.path for info in infos if units is None or _batch(info) in units]
        return scan_table(self.store, [one for one in wanted if one.endswith(_FACTS)], self.dataset)

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the records that are meant, by batch; files of interrupted runs count, too."""
        found: Counter[str] = Counter()
        for bucket in touched_buckets(self.store, target):
            infos = list(self.store.list(f"{STAGED}/{bucket}"))
            for info in infos:
                if info.path.endswith(_FACTS):
                    found[_batch(info)] += covered_records(self.store, [info.path], target)
            for info in _undescribed(infos):
                found[_batch(info)] += self._covers(info, target)
        return +found

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Write the touched buckets of a batch again, and delete its other files with records."""
        done = RemovedRows()
        for bucket in touched_buckets(self.store, target):
            staged = read_staged(self.store, read_bucket_count(self.store))
            if unit in staged.markers and not staged.is_expired(unit):
                done += clean_cell(self.store, staged, unit, bucket, target)
            done += self._delete_others(unit, bucket, target)
        return done

    def delete(self, units: Collection[str]) -> None:
        """Remove batches: first their markers, then their files."""
        buckets = read_bucket_count(self.store) if self.store.exists(STORE_FILE) else 0
        for batch in units:
            delete_marker(self.store, self.dataset.name, batch)
            delete_staged(self.store, batch, buckets=buckets)

    def _covers(self, info: ObjectInfo, target: Target) -> bool:
        return target.covers_file(self.dataset, {}, partial(self.store.read, info.path))

    def _delete_others(self, batch: str, bucket: int, target: Target) -> RemovedRows:
        """Delete files that the marker does not name and that hold such records."""
        infos = list(self.store.list(staged_folder(bucket, batch)))
        staged = read_staged(self.store, read_bucket_count(self.store))
        if batch in staged.markers:
            named = f"/part-{staged.name(batch, bucket)}-"
            infos = [info for info in infos if named not in info.path]
        # Without a description: from an interrupted run, or one that is at it now.
        gone = [info.path for info in _undescribed(infos) if self._covers(info, target)]
        for info in infos:
            if info.path.endswith(_FACTS) and covered_records(self.store, [info.path], target):
                gone += [info.path.removesuffix(_FACTS) + _DATA, info.path]
        self.store.delete(gone)
        return RemovedRows(0, sum(info.size_bytes for info in infos if info.path in gone))


def touched_buckets(store: ObjectStore, target: Target) -> list[int]:
    """Return the buckets of the domains that are meant; none before there is a store."""
    if not store.exists(STORE_FILE):
        return []
    buckets = read_bucket_count(store)
    return sorted({bucket_of(domain, buckets) for domain in target.domains})


def _batch(info: ObjectInfo) -> str:
    return info.path.split("/")[2]


def _undescribed(infos: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    given = list(infos)
    paths = {info.path for info in given}
    data = (info for info in given if info.path.endswith(_DATA))
    return [info for info in data if facts_path(info.path) not in paths]


def covered_records(store: ObjectStore, paths: Sequence[str], target: Target) -> int:
    """Return how many records of staged files are meant."""
    rows = scan_table(store, paths, DOMAIN_BUCKETS).select("domain", "url")
    likely = rows.filter(target.likely(DOMAIN_BUCKETS)).collect()
    return int(target.covered(DOMAIN_BUCKETS, likely).sum())


def require_clean(
    store: ObjectStore, staged: Staged, batch: str, bucket: int, target: Target
) -> None:
    """Clean a bucket of a staged batch before it is read; raise Conflict if that changed it."""
    if clean_cell(store, staged, batch, bucket, target).rows:
        raise Conflict(f"batch {batch!r} had taken-down records: read it again", thing=batch)


@dataclass(frozen=True, slots=True)
class _NewFile:
    data: bytes
    facts: pl.DataFrame


def clean_cell(
    store: ObjectStore, staged: Staged, batch: str, bucket: int, target: Target
) -> RemovedRows:
    """Write one bucket of a batch again without the records that are meant, if it has any."""
    name, paths = staged.name(batch, bucket), staged.paths(batch, bucket)
    if not paths or not covered_records(store, list(map(facts_path, paths)), target):
        return RemovedRows()
    old = [read_table(store, facts_path(path), DOMAIN_BUCKETS) for path in paths]
    files = [
        _without_covered(store.read(path), facts, target)
        for path, facts in zip(paths, old, strict=True)
    ]
    kept = [file for file in files if file.facts.height]
    revision = _revision(kept)
    written = _put(store, kept, batch=batch, bucket=bucket, name=revision)
    lost = sum(facts.height for facts in old) - sum(file.facts.height for file in kept)
    _amend(store, staged.markers[batch], bucket, revision, kept, lost=lost)
    before = [info for info in store.list(staged_folder(bucket, batch)) if name in info.path]
    store.delete(info.path for info in before)
    return RemovedRows(lost, sum(info.size_bytes for info in before), written)


def _without_covered(data: bytes, facts: pl.DataFrame, target: Target) -> _NewFile:
    """Copy the runs of other domains, and write those with such records again."""
    sink, parts = io.BytesIO(), [facts.clear()]
    marked = facts.with_columns(target.covered(DOMAIN_BUCKETS, facts).alias("gone"))
    for run in marked.partition_by("domain", "run_offset", maintain_order=True):
        start, size = run["run_offset"][0], run["run_length"][0]
        body, stays = data[start : start + size], ~run["gone"]
        if not stays.all():
            body = rewrite_run(body, stays.to_list())
        place = {
            "run_offset": pl.lit(sink.tell(), pl.UInt64),
            "run_length": pl.lit(len(body), pl.UInt64),
        }
        parts.append(run.filter(stays).drop("gone").with_columns(**place))
        sink.write(body)
    return _NewFile(sink.getvalue(), pl.concat(parts))


def _revision(files: Sequence[_NewFile]) -> str:
    """Return a name that follows from the content: two writers never share one by accident."""
    digest = hashlib.sha256(b"revision")
    for file in files:
        digest.update(hashlib.sha256(file.data).digest())
    return digest.hexdigest()[:12]


def _put(
    store: ObjectStore, files: Iterable[_NewFile], *, batch: str, bucket: int, name: str
) -> int:
    written = 0
    for number, file in enumerate(files):
        path = staged_path(bucket, batch, name=name, number=number)
        facts = parquet_bytes(file.facts, DOMAIN_BUCKETS)
        store.put(facts_path(path), facts)
        store.put(path, file.data)
        written += len(file.data) + len(facts)
    return written


def _amend(
    store: ObjectStore,
    marker: Marker,
    bucket: int,
    revision: str,
    files: Sequence[_NewFile],
    *,
    lost: int,
) -> None:
    """Let the marker count what is left, and name the files of the bucket."""
    cell = [len(files), sum(f.facts.height for f in files), sum(len(f.data) for f in files)]

    def change(report: Mapping[str, object]) -> Mapping[str, object]:
        cells = {**_mapping(report.get("buckets")), str(bucket): cell}
        left = {name: list(map(int, one)) for name, one in cells.items() if one[1]}
        return {
            **report,
            "buckets": left,
            REVISIONS: {**_mapping(report.get(REVISIONS)), str(bucket): revision},
            "records": sum(one[1] for one in left.values()),
            "bytes": sum(one[2] for one in left.values()),
            TAKEN_DOWN: int(str(report.get(TAKEN_DOWN, 0))) + lost,
        }

    change_report(store, marker, change)


def _mapping(value: object) -> Mapping[str, Sequence[int]]:
    return value if isinstance(value, dict) else {}
