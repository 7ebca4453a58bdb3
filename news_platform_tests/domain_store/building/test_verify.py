"""Verifying a bucket, deleting its unneeded files, and the checks after a build."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from news_platform.domain_store.building.verify import (
    iter_count_problems,
    iter_orphan_problems,
    iter_read_problems,
    verify_bucket,
)
from news_platform.domain_store.layout import (
    current_path,
    entries_path,
    records_path,
    view_path,
)
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import Manifest, read_current
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.domain_store.pages import NOW, SMALL, build, stage

BUCKETS = range(SMALL.buckets)


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a root with three days, one of them built twice."""
    folder = tmp_path_factory.mktemp("verify") / "root"
    root = open_store(str(folder))
    stage(root, {f"2025-11-{day:02d}": [f"org.d{n}" for n in range(20)] for day in (1, 2)})
    build(root)
    stage(root, {"2025-11-01": ["org.d1"], "2025-11-03": ["org.d2"]})
    build(root)
    return folder


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> ObjectStore:
    """Return a copy of that root, which a test may damage."""
    return open_store(str(shutil.copytree(built_once, tmp_path / "root")))


def _manifest(store: ObjectStore) -> Manifest:
    """Return the manifest of a bucket that has data."""
    found = [read_current(store, bucket).manifest for bucket in BUCKETS]
    return max((m for m in found if m), key=lambda manifest: manifest.index.records)


def _problems(store: ObjectStore) -> list[str]:
    return [problem for bucket in BUCKETS for problem in verify_bucket(store, bucket).problems]


def test_a_sound_store_has_no_problems(built: ObjectStore) -> None:
    assert _problems(built) == []
    assert sum(verify_bucket(built, bucket).records for bucket in BUCKETS) == 22


def test_a_broken_manifest_is_named_and_the_other_buckets_are_verified(built: ObjectStore) -> None:
    manifest = _manifest(built)
    _cut(built, current_path(manifest.bucket))
    (problem,) = _problems(built)
    assert current_path(manifest.bucket) in problem
    assert sum(verify_bucket(built, bucket).records for bucket in BUCKETS) > 0


def _flip(store: ObjectStore, path: str) -> None:
    body = bytearray(store.read(path))
    body[len(body) // 2] ^= 0xFF
    store.put(path, bytes(body))


def _cut(store: ObjectStore, path: str) -> None:
    store.put(path, store.read(path)[:-1])


def _remove(store: ObjectStore, path: str) -> None:
    store.delete([path])


def _place(manifest: Manifest, kind: str) -> str:
    """Return the path of a file of this kind."""
    segment = manifest.segments[0]
    return {
        "data": segment.files[0].path,
        "entries": entries_path(manifest.bucket, segment.name),
        "records": records_path(manifest.bucket, segment.name),
        "index": manifest.index.path,
        "ranges": manifest.index.ranges_path,
    }[kind]


@pytest.mark.parametrize("damage", [_flip, _cut, _remove])
def test_a_damaged_data_file_is_named(
    built: ObjectStore, damage: Callable[[ObjectStore, str], None]
) -> None:
    path = _place(_manifest(built), "data")
    damage(built, path)
    problems = _problems(built)
    assert problems
    assert all(path in problem for problem in problems)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [(_cut, "entries"), (_remove, "records"), (_cut, "index"), (_remove, "ranges")],
)
def test_a_damaged_description_or_index_is_named(
    built: ObjectStore, damage: Callable[[ObjectStore, str], None], kind: str
) -> None:
    path = _place(_manifest(built), kind)
    damage(built, path)
    assert any(path in problem for problem in _problems(built))


def test_another_domains_records_under_an_entry_are_noticed(built: ObjectStore) -> None:
    manifest = _manifest(built)
    swapped = DomainStore(built).catalog(manifest.bucket)["domain"].to_list()
    index = built.read(manifest.index.path)
    a, b = (f'"domain":"{name}"'.encode() for name in swapped[:2])
    built.put(manifest.index.path, index.replace(a, b'"domain":"x"').replace(b, a))
    assert any("differs from the entries" in problem for problem in _problems(built))


def test_an_old_view_is_noticed_and_the_next_build_renews_it(built: ObjectStore) -> None:
    bucket = _manifest(built).bucket
    built.put(view_path(bucket), b"old\n")
    assert any("not the newest index" in problem for problem in _problems(built))
    build(built)
    assert _problems(built) == []


def test_a_batch_that_is_staged_and_not_built_fails_the_count(built: ObjectStore) -> None:
    stage(built, {"2025-11-04": ["org.d1"]})
    assert any("2025-11-04" in problem for problem in iter_count_problems(built, BUCKETS))


def test_a_damaged_file_fails_the_reading(built: ObjectStore) -> None:
    path = _manifest(built).segments[0].files[0].path
    built.put(path, b"\0" * 100_000)
    problems = list(iter_read_problems(built, BUCKETS, seed=1))
    assert any(path in problem for problem in problems)


def test_a_stray_file_is_an_orphan(built: ObjectStore) -> None:
    built.put("domain_store/data/0/0/part-stray.jsonl.gz", b"stray")
    problems = list(iter_orphan_problems(built, [0], before=NOW + timedelta(days=9999)))
    assert len(problems) == 1
    assert "part-stray" in problems[0]
