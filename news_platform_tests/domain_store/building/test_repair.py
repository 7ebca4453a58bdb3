"""Deleted files of the store are rebuilt from the staged batches."""

import shutil
from pathlib import Path

import pytest

from news_platform.domain_store.building.verify import find_damage, verify_bucket
from news_platform.domain_store.layout import current_path, range_keys
from news_platform.domain_store.manifest import read_current
from news_platform.domain_store.pipeline import build_range, repair_buckets
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.domain_store.pages import NOW, SMALL, stage, urls
from news_platform_tests.domain_store.test_pipeline import DAYS, DOMAINS, EXPECTED

# One file of each kind; CURRENT is the manifest that counts.
SUFFIXES = {
    "data": ".gz",
    "entries": ".parquet",
    "records": ".parquet",
    "index": ".jsonl",
    "metadata": ".jsonl",
    "manifests": "CURRENT",
}


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a root built day by day, so that a bucket has several segments."""
    folder = tmp_path_factory.mktemp("repair") / "root"
    store = open_store(str(folder))
    for day, hosts in DAYS.items():
        stage(store, {day: hosts})
        _build_all(store)
    return folder


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> ObjectStore:
    """Return a copy of that root, which a test may damage."""
    return open_store(str(shutil.copytree(built_once, tmp_path / "root")))


def _build_all(store: ObjectStore) -> int:
    reports = [
        build_range(key, store=store, options=SMALL, now=NOW) for key in range_keys(SMALL.buckets)
    ]
    return sum(report.total("bytes_written") for report in reports)


def _assert_whole(store: ObjectStore) -> None:
    assert urls(store, DOMAINS) == EXPECTED
    for bucket in range(SMALL.buckets):
        assert verify_bucket(store, bucket).problems == ()


def _first(store: ObjectStore, kind: str) -> str:
    found = (info.path for info in store.list(f"domain_store/{kind}/"))
    return next(path for path in found if path.endswith(SUFFIXES[kind]))


@pytest.mark.parametrize("kind", SUFFIXES)
def test_whatever_is_deleted_the_next_run_of_the_range_builds_again(
    built: ObjectStore, kind: str
) -> None:
    built.delete([_first(built, kind)])
    _build_all(built)
    _assert_whole(built)


@pytest.mark.parametrize("kind", ["data", "index"])
def test_a_file_that_was_cut_short_is_lost_too(built: ObjectStore, kind: str) -> None:
    path = _first(built, kind)
    built.put(path, built.read(path)[:-9])
    _build_all(built)
    _assert_whole(built)


def test_a_bucket_whose_manifest_is_damaged_is_rebuilt_when_it_is_deleted(
    built: ObjectStore,
) -> None:
    built.put(current_path(0), b'{"format": 1}')
    with pytest.raises(StorageError, match=f"{current_path(0)}' is not a manifest"):
        _build_all(built)
    built.delete([current_path(0)])
    repair_buckets([0], store=built, options=SMALL, now=NOW)
    _assert_whole(built)


def test_only_the_segment_that_lost_a_file_is_written_again(built: ObjectStore) -> None:
    manifest = read_current(built, 0, with_batches=True).manifest
    assert manifest is not None and len(manifest.segments) > 1
    lost, *kept = manifest.segments
    built.delete([lost.files[0].path])
    sound = find_damage(built, manifest)
    assert sound.intact == tuple(kept)
    report = repair_buckets([0], store=built, options=SMALL, now=NOW)
    assert report.total("batches_added") == len(lost.live)
    _assert_whole(built)
