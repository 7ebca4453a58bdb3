"""Deleted files of the store are rebuilt from the staged batches."""

import pytest

from news_platform.domain_store.building.verify import find_damage, verify_bucket
from news_platform.domain_store.layout import current_path, range_keys
from news_platform.domain_store.manifest import read_current
from news_platform.domain_store.pipeline import build_range, repair_buckets
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_store.pages import NOW, SMALL, stage, urls
from news_platform_tests.domain_store.test_pipeline import DAYS, DOMAINS, EXPECTED

KINDS = ("data", "entries", "records", "index", "metadata", "manifests")


def _built(store: ObjectStore) -> None:
    """Build day by day, so that a bucket has several segments."""
    for day, hosts in DAYS.items():
        stage(store, {day: hosts})
        _build_all(store)


def _build_all(store: ObjectStore) -> int:
    reports = [
        build_range(key, store=store, options=SMALL, now=NOW) for key in range_keys(SMALL.buckets)
    ]
    return sum(report.total("bytes_written") for report in reports)


def _assert_whole(store: ObjectStore) -> None:
    assert urls(store, DOMAINS) == EXPECTED
    for bucket in range(SMALL.buckets):
        assert verify_bucket(store, bucket).problems == ()


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_deleted_the_next_run_of_the_range_builds_again(
    root: ObjectStore, kind: str
) -> None:
    _built(root)
    # Each rebuilds its whole bucket: every third file is enough.
    for info in list(root.list(f"domain_store/{kind}/"))[::3]:
        root.delete([info.path])
        _build_all(root)
        _assert_whole(root)


@pytest.mark.parametrize("kind", ["data", "index"])
def test_a_file_that_was_cut_short_is_lost_too(root: ObjectStore, kind: str) -> None:
    _built(root)
    found = root.list(f"domain_store/{kind}/")
    files = [info for info in found if not info.path.endswith(".parquet")]
    for info in files[::2]:
        root.put(info.path, root.read(info.path)[:-9])
        _build_all(root)
        _assert_whole(root)


@pytest.mark.parametrize("body", [b"", b'{"format": 1}'])
def test_a_bucket_whose_manifest_is_damaged_is_rebuilt_when_it_is_deleted(
    root: ObjectStore, body: bytes
) -> None:
    _built(root)
    root.put(current_path(0), body)
    with pytest.raises(StorageError, match=f"{current_path(0)}' is not a manifest"):
        _build_all(root)
    root.delete([current_path(0)])
    repair_buckets([0], store=root, options=SMALL, now=NOW)
    _assert_whole(root)


def test_only_the_segment_that_lost_a_file_is_written_again(root: ObjectStore) -> None:
    _built(root)
    manifest = read_current(root, 0).manifest
    assert manifest is not None and len(manifest.segments) > 1
    lost, *kept = manifest.segments
    root.delete([lost.files[0].path])
    sound = find_damage(root, manifest)
    assert sound.intact == tuple(kept)
    report = repair_buckets([0], store=root, options=SMALL, now=NOW)
    assert report.total("batches_added") == len(lost.live)
    _assert_whole(root)
