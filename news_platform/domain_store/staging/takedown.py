"""Remove taken-down records from staged batches.

The files of a touched bucket are written again under a name that follows from their content, then
the marker of the batch names them, then the old files go. Runs of other domains are copied byte by
byte. The marker keeps its name, so nothing that follows the batch becomes stale.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.domain_store.commit import read_bucket_count
from news_platform.domain_store.fragments import parse_row
from news_platform.domain_store.gzip_members import iter_inflated, iter_lines
from news_platform.domain_store.layout import (
    STORE_FILE,
    bucket_of,
    facts_path,
    staged_folder,
    staged_path,
)
from news_platform.domain_store.rewriting import rewrite_run
from news_platform.domain_store.staging.stage import REVISIONS, Staged, read_staged
from news_platform.errors import Conflict
from news_platform.storage.commit.markers import Marker, change_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes, read_table, scan_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData
from news_platform.takedowns.rows import covered_urls

_SUFFIX = ".parquet"


def touched_buckets(takedowns: Takedowns, buckets: int) -> list[int]:
    """Return the buckets of the domains that have covered pages."""
    return sorted({bucket_of(domain, buckets) for domain in takedowns.registrable_domains})


def find_staged(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered records by batch; files of interrupted runs count, too."""
    found: dict[str, int] = {}
    for bucket in _buckets(store, takedowns):
        for info in store.list(f"{STAGED}/{bucket}"):
            if info.path.endswith(_SUFFIX):
                rows = _covered_rows(store, [info.path], takedowns)
                if rows:
                    batch = info.path.split("/")[2]
                    found[batch] = found.get(batch, 0) + rows
    return found


def _buckets(store: ObjectStore, takedowns: Takedowns) -> list[int]:
    return touched_buckets(takedowns, read_bucket_count(store)) if store.exists(STORE_FILE) else []


def _covered_rows(store: ObjectStore, paths: Sequence[str], takedowns: Takedowns) -> int:
    rows = scan_table(store, paths, DOMAIN_BUCKETS).select("domain", "url")
    domains = list(takedowns.registrable_domains)
    urls = rows.filter(pl.col("domain").is_in(domains)).select("url").collect()["url"]
    return int(urls.is_in(list(covered_urls(urls, takedowns))).sum())


def clean_batch(store: ObjectStore, batch: str, takedowns: Takedowns) -> RemovedData:
    """Write the touched buckets of a batch again.

    All other files that hold covered records are deleted: those that were replaced, and those of
    runs that never ended.
    """
    done = RemovedData()
    for bucket in _buckets(store, takedowns):
        staged = read_staged(store, read_bucket_count(store))
        if batch in staged.markers and not staged.is_expired(batch):
            done += clean_bucket(store, staged, batch, bucket, takedowns)
        done += _delete_others(store, batch, bucket, takedowns)
    return done


def _delete_others(
    store: ObjectStore, batch: str, bucket: int, takedowns: Takedowns
) -> RemovedData:
    """Delete files of the batch that its marker does not name and that hold covered records."""
    staged = read_staged(store, read_bucket_count(store))
    infos = list(store.list(staged_folder(bucket, batch)))
    if batch in staged.markers:
        named = f"/part-{staged.name(batch, bucket)}-"
        infos = [one for one in infos if named not in one.path]
    gone: list[str] = []
    for info in infos:
        data = info.path.removesuffix(_SUFFIX) + ".jsonl.gz"
        if info.path.endswith(_SUFFIX) and _covered_rows(store, [info.path], takedowns):
            gone += [data, info.path]
        # Without a description: from an interrupted run, or one that is at it now.
        elif info.path.endswith(".gz") and not store.exists(facts_path(info.path)):
            gone += [info.path] if _holds_covered(store.read(info.path), takedowns) else []
    size = sum(one.size_bytes for one in infos if one.path in gone)
    store.delete(gone)
    return RemovedData(0, size, 0)


def _holds_covered(data: bytes, takedowns: Takedowns) -> bool:
    lines = iter_lines(iter_inflated([data]))
    return any(takedowns.covers_url(line_url(line)) for line in lines)


def require_clean(
    store: ObjectStore, staged: Staged, batch: str, bucket: int, takedowns: Takedowns
) -> None:
    """Clean a bucket of a staged batch before it is read; raise Conflict if that changed it."""
    if clean_bucket(store, staged, batch, bucket, takedowns).rows:
        raise Conflict(f"batch {batch!r} had taken-down records: read it again", thing=batch)


@dataclass(frozen=True, slots=True)
class _NewFile:
    data: bytes
    facts: pl.DataFrame


def clean_bucket(
    store: ObjectStore, staged: Staged, batch: str, bucket: int, takedowns: Takedowns
) -> RemovedData:
    """Write one bucket of a batch again without covered records, if it has any."""
    name = staged.name(batch, bucket)
    numbers = range(staged.files(batch, bucket))
    paths = [staged_path(bucket, batch, name=name, number=number) for number in numbers]
    if not paths or not _covered_rows(store, list(map(facts_path, paths)), takedowns):
        return RemovedData()
    old = [read_table(store, facts_path(path), DOMAIN_BUCKETS) for path in paths]
    files = [
        _without_covered(store.read(path), facts, takedowns)
        for path, facts in zip(paths, old, strict=True)
    ]
    kept = [file for file in files if file.facts.height]
    revision = _revision(kept)
    written = _put(store, kept, batch=batch, bucket=bucket, name=revision)
    lost = sum(facts.height for facts in old) - sum(file.facts.height for file in kept)
    cell = (len(kept), sum(f.facts.height for f in kept), sum(len(f.data) for f in kept))
    _amend(store, staged.markers[batch], bucket, revision, cell=cell, lost=lost)
    before = [info for info in store.list(staged_folder(bucket, batch)) if name in info.path]
    store.delete(info.path for info in before)
    return RemovedData(lost, sum(info.size_bytes for info in before) - written, written)


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
    *,
    cell: tuple[int, int, int],
    lost: int,
) -> None:
    def change(report: Mapping[str, object]) -> Mapping[str, object]:
        cells = dict(_mapping(report.get("buckets")))
        cells.pop(str(bucket), None)
        if cell[1]:
            cells[str(bucket)] = list(cell)
        numbers = [list(map(int, one)) for one in cells.values()]
        return {
            **report,
            "buckets": cells,
            REVISIONS: {**_mapping(report.get(REVISIONS)), str(bucket): revision},
            "records": sum(one[1] for one in numbers),
            "bytes": sum(one[2] for one in numbers),
            TAKEN_DOWN: int(str(report.get(TAKEN_DOWN, 0))) + lost,
        }

    change_report(store, marker, change)


def _mapping(value: object) -> Mapping[str, Sequence[int]]:
    return value if isinstance(value, dict) else {}


def _without_covered(data: bytes, facts: pl.DataFrame, takedowns: Takedowns) -> _NewFile:
    """Copy the runs of other domains, and write those with covered records again."""
    sink, parts = io.BytesIO(), []
    domains = takedowns.registrable_domains
    for run in facts.partition_by("domain", "run_offset", maintain_order=True):
        start, size = run["run_offset"][0], run["run_length"][0]
        raw = data[start : start + size]
        if run["domain"][0] in domains:
            found = rewrite_run(raw, lambda line: not takedowns.covers_url(line_url(line)))
            raw, run = found.body, run.filter(pl.Series(found.kept, dtype=pl.Boolean))
        place = {
            "run_offset": pl.lit(sink.tell(), pl.UInt64),
            "run_length": pl.lit(len(raw), pl.UInt64),
        }
        parts.append(run.with_columns(**place))
        sink.write(raw)
    return _NewFile(sink.getvalue(), pl.concat([facts.clear(), *parts]))


def line_url(line: bytes) -> str:
    """Return the URL of a record's JSON line."""
    return str(parse_row(line).get("uri") or "")
