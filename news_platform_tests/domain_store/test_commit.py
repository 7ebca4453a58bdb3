"""Commits to a bucket: one writer at a time."""

from dataclasses import replace

import pytest

from news_platform.domain_store.layout import STORE_FILE, manifest_path, view_path
from news_platform.domain_store.manifest import (
    Current,
    Manifest,
    commit,
    read_bucket_count,
    read_current,
    refresh_view,
    retired_files,
)
from news_platform.errors import Conflict, StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_store.test_manifest import MANIFEST

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
