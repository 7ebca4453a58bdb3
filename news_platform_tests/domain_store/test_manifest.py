"""What a generation consists of, and commits to a bucket: one writer at a time."""

from dataclasses import replace
from datetime import date

import pytest

from news_platform.domain_store.layout import STORE_FILE, manifest_path, view_path
from news_platform.domain_store.manifest import (
    Current,
    DataFile,
    Index,
    Manifest,
    Segment,
    commit,
    parse_manifest,
    read_bucket_count,
    read_current,
    refresh_view,
    retired_files,
)
from news_platform.errors import Conflict, StorageError
from news_platform.storage.objects.store import ObjectStore

INDEX = Index(
    path="domain_store/index/7/aa.jsonl",
    size_bytes=120,
    ranges_path="domain_store/index/7/aa.parquet",
    domains=2,
    records=5,
    bytes=99,
    fragments=3,
    sparse=(("a.org", 0), ('q"uote.org', 64)),
)
SEGMENT = Segment(
    name="0123456789ab",
    bucket=7,
    files=(DataFile("domain_store/data/7/0/part-0123456789ab-000001.jsonl.gz", 99),),
    listing="cdef01234567",
    dropped=("2025-11-01",),
    last_day=date(2025, 11, 2),
)
MANIFEST = Manifest(
    bucket=7,
    buckets=64,
    generation=3,
    index=INDEX,
    segments=(SEGMENT,),
    retired={"domain_store/data/7/0/part-old.jsonl.gz": 5},
)


@pytest.mark.parametrize(
    "body",
    [b"[]", b"\xff", MANIFEST.to_json()[:-5], b'{"format": 1}'],
    ids=["a list", "no text", "cut off", "too little"],
)
def test_what_is_no_manifest_is_named(body: bytes) -> None:
    with pytest.raises(StorageError, match="'CURRENT' is not a manifest"):
        parse_manifest(body, "CURRENT")


def test_a_manifest_of_another_format_is_refused() -> None:
    body = MANIFEST.to_json().replace(b'"format":1', b'"format":2')
    with pytest.raises(StorageError, match=r"^'CURRENT' has format 2, .* up to 1: update News"):
        parse_manifest(body, "CURRENT")


def test_a_manifest_names_every_file_it_needs() -> None:
    assert MANIFEST.paths == {
        "domain_store/data/7/0/part-0123456789ab-000001.jsonl.gz",
        "domain_store/batches/7/cdef01234567.json",
        "domain_store/entries/7/0123456789ab.parquet",
        "domain_store/records/7/0123456789ab.parquet",
        "domain_store/index/7/aa.jsonl",
        "domain_store/index/7/aa.parquet",
    }
    assert SEGMENT.size_bytes == 99


NOTHING = Current(None, None)


def _numbered(generation: int) -> Manifest:
    return replace(MANIFEST, generation=generation)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"format": 1, "buckets": "many"}',
        b'{"format": 1, "buckets": 0}',
    ],
)
def test_a_broken_description_of_a_store_is_named(root: ObjectStore, body: bytes) -> None:
    root.put(STORE_FILE, body)
    with pytest.raises(StorageError, match=r"store\.json"):
        read_bucket_count(root)


def test_a_store_of_a_later_format_is_one_clear_line(root: ObjectStore) -> None:
    root.put(STORE_FILE, b'{"format": 2, "buckets": 64}')
    with pytest.raises(
        StorageError, match=r"json' has format 2, .* up to 1: update News Platform$"
    ):
        read_bucket_count(root)


def test_a_writer_that_is_late_conflicts_and_changes_nothing(root: ObjectStore) -> None:
    commit(root, NOTHING, _numbered)
    stale = read_current(root, 7)
    commit(root, stale, _numbered)
    with pytest.raises(Conflict):
        commit(root, stale, lambda n: replace(_numbered(n), retired={}))
    assert read_current(root, 7).manifest == _numbered(2)


def test_numbers_that_died_unfinished_are_skipped(root: ObjectStore) -> None:
    commit(root, NOTHING, _numbered)
    root.put(manifest_path(7, 2), b"died")
    root.put(manifest_path(7, 3), b"died")
    assert commit(root, read_current(root, 7), _numbered).generation == 4


def test_a_slow_writer_does_not_leave_its_old_view(root: ObjectStore) -> None:
    old = replace(MANIFEST, index=replace(MANIFEST.index, path="domain_store/index/7/old.jsonl"))
    root.put(old.index.path, b"old\n")
    root.put(MANIFEST.index.path, b"new\n")
    commit(root, NOTHING, lambda n: replace(old, generation=n))
    commit(root, read_current(root, 7), _numbered)
    refresh_view(root, replace(old, generation=1))
    assert root.read(view_path(7)) == b"new\n"


def test_files_are_retired_when_they_are_first_not_needed() -> None:
    needed = set(list(MANIFEST.paths)[:2])
    retired = retired_files(MANIFEST, needed, at=50)
    assert retired.keys() == (
        (MANIFEST.paths - needed) | MANIFEST.retired.keys() | {manifest_path(7, 3)}
    )
    assert retired["domain_store/data/7/0/part-old.jsonl.gz"] == 5
    assert set(retired.values()) == {5, 50}
