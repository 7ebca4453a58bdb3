"""Reduce every dataset of a root and its ledger to one hash over its sorted rows."""

import gzip
import hashlib
import io
import json
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.corpus import DELTA_TABLES, SEARCH_INDEX, STATISTICS_COLUMNS
from news_platform.search.index import Hit
from news_platform.search.publish import ROOT, place_of
from news_platform.search.reading import open_build
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.ledger_backup import read_tables

# Datasets in the second folder level; all others are named by their first folder.
_DEEP = ("news", "domain_store", "articles")
# Uploaded inputs, and our own bookkeeping, which contains ETags, attempts and paths. The messages
# of domain_queue are in the ledger; its clock.json depends on the order in which they were queued.
_NOT_DATA = (
    "markers", "raw", "snapshots", "world", "feeds.opml", "root.json", "demo.json", "ledger.sqlite",
    "domain_queue",
    "domain_store/manifests", "domain_store/index", "domain_store/entries", "domain_store/CURRENT",
)  # fmt: skip
_NOT_DATA_TABLES = ("ledger_sequence",)
# Their folders also contain files of older versions.
_READ_AS_A_WHOLE = {ROOT, *(table.name for table in DELTA_TABLES)}
# Keys, at any depth, that depend on the place, the worker or the speed and not on the content:
# remote files are named after the ETags of their inputs, and a page that could not be read has the
# time at which it was stored.
_PLACES = {
    "domain_buckets": ("run_length", "run_offset"),  # isal's output can vary by a few bytes
    "domain_catalog": ("bytes",),
    "domain_surveys": ("elapsed_seconds",),
    "domain_store/metadata": ("filepath", "length", "offset", "timestamp"),
    "domain_store/records": ("filepath",),
    "ledger article_states": ("id", "reason"),  # the reason names a worker
    "ledger domain_queue": ("finished_at", "id", "lease_until"),
    "ledger research_files": ("etag", "fingerprint"),
    "news/collected": ("attempt", "source", "source_etag"),
    "prod": ("elapsed_seconds",),
    "quarantine": ("fetched_at",),
}


@dataclass(frozen=True, slots=True)
class Content:
    """The number of rows of a dataset, and the hash of all of them in sorted order."""

    rows: int
    sha256: str


def read_contents(store: ObjectStore, ledger: sa.Engine) -> dict[str, Content]:
    """Return the content of every dataset under a root and in its ledger."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for info in store.list():
        dataset = dataset_of(info.path)
        if dataset is not None and dataset not in _READ_AS_A_WHOLE:
            rows[dataset] += _rows_of_file(info.path, store.read(info.path), root=store.url)
    for one in DELTA_TABLES:
        articles = DeltaDataset(store, one, STATISTICS_COLUMNS).scan().collect()
        rows[one.name] += (_canonical(row, one.name, ()) for row in articles.iter_rows(named=True))
    rows[ROOT] += (_canonical(asdict(hit), ROOT, ()) for hit in indexed_articles(store))
    for name, found in _ledger_rows(ledger):
        rows[name] += (_rooted(row, store.url) for row in found)
    return {name: _content(found) for name, found in sorted(rows.items())}


def indexed_articles(store: ObjectStore) -> Iterator[Hit]:
    """Yield every article of the full-text indexes that are in use."""
    for place in {place_of(one) for one in read_markers(store, SEARCH_INDEX.name).values()}:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            reader = open_build(store, place, Path(folder) / "index")
            yield from reader.iter_articles() if reader is not None else ()


def dataset_of(path: str) -> str | None:
    """Return the dataset of a file, or None if the file is not compared."""
    parts = path.split("/")
    name = "/".join(parts[:2]) if parts[0] in _DEEP else parts[0]
    first, kind = parts[0], parts[0].partition("-")[0]
    return None if {name, first, kind} & set(_NOT_DATA) else name


def differences(one: Mapping[str, Content], other: Mapping[str, Content]) -> list[str]:
    """Return the datasets that differ."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _content(rows: list[str]) -> Content:
    return Content(len(rows), hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest())


def _rows_of_file(path: str, body: bytes, *, root: str) -> Iterator[str]:
    dataset = dataset_of(path) or ""
    partition = [part for part in path.split("/") if "=" in part]
    for row in _parse(path, body, root):
        yield _rooted(_canonical(row, dataset, partition), root)


def _rooted(row: str, root: str) -> str:
    return row.replace(root.rstrip("/"), "ROOT")


def _parse(path: str, body: bytes, root: str) -> Iterable[Any]:
    if path.endswith(".gz"):
        path, body = path.removesuffix(".gz"), gzip.decompress(body)
    if path.endswith(".parquet"):
        return pl.read_parquet(io.BytesIO(body), hive_partitioning=False).iter_rows(named=True)
    if path.endswith(".jsonl"):
        return (json.loads(line) for line in body.splitlines())
    if path.endswith(".json") and body:
        return (json.loads(body),)
    if path.endswith(".xlsx"):
        return _parse_workbook(body, root)
    return ({"name": path.rpartition("/")[2], "sha256": hashlib.sha256(body).hexdigest()},)


def _parse_workbook(body: bytes, root: str) -> Iterator[dict[str, str]]:
    """Yield the parts of a workbook, whose bytes depend on the root in its cells."""
    with zipfile.ZipFile(io.BytesIO(body)) as book:
        for name in book.namelist():
            yield {"name": name, "text": _rooted(book.read(name).decode(), root)}


def _ledger_rows(ledger: sa.Engine) -> Iterator[tuple[str, list[str]]]:
    with ledger.connect() as connection:
        for table in read_tables(connection).values():
            if table.name not in _NOT_DATA_TABLES:
                found = connection.execute(sa.select(table)).mappings()
                name = f"ledger {table.name}"
                yield name, [_canonical(dict(row), name, ()) for row in found]


def _canonical(row: Any, dataset: str, partition: Iterable[str]) -> str:
    kept = _without(row, _PLACES.get(dataset, ()))
    return json.dumps([*partition, kept], sort_keys=True, default=_plain, ensure_ascii=False)


def _without(value: Any, keys: Container[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(part, keys) for key, part in value.items() if key not in keys}
    return [_without(part, keys) for part in value] if isinstance(value, list) else value


def _plain(value: object) -> str:
    """Return the same text for both databases; SQLite stores no time zone, and all ours are UTC."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    return value.isoformat() if isinstance(value, date) else str(value)
