"""A range of buckets is stale only by the batches that have rows in it."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from news_platform.domain_store.building.verify import iter_count_problems
from news_platform.domain_store.layout import (
    BATCH_BYTES,
    SCOPE_BITS,
    batch_scope,
    bucket_of,
    is_in_scope,
    range_keys,
)
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_range
from news_platform.domain_store.staging.engine import StagedEngine
from news_platform.domain_store.staging.stage import (
    built_ranges,
    stage_batch,
    wanted_ranges,
)
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.domain_store.pages import NOW, SMALL, news_rows

OPTIONS = replace(SMALL, buckets=64)
RANGES = range_keys(OPTIONS.buckets)


def _hosts(ranges: Iterable[int]) -> list[str]:
    """Return a reversed host whose domain lies in each of these ranges."""
    found = {bucket_of(f"site{n}.org", OPTIONS.buckets) // 16: f"org.site{n}" for n in range(200)}
    return [found[number] for number in ranges]


def _stage(store: ObjectStore, batch: str, ranges: Iterable[int], *, inputs: str = "one") -> None:
    frames = [news_rows(_hosts(ranges))] if list(ranges) else []
    stage_batch(frames, store=store, batch=batch, inputs=inputs, options=OPTIONS)


def _stale(store: ObjectStore) -> list[str]:
    return sorted(stale_partitions(wanted_ranges(store), built_ranges(store)))


def _build_stale(store: ObjectStore) -> None:
    for key in _stale(store):
        build_range(key, store=store, options=OPTIONS, now=NOW)
    assert _stale(store) == []


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store with one batch in all four ranges."""
    folder = tmp_path_factory.mktemp("ranges") / "root"
    _stage(open_store(str(folder)), "2025-11-01", range(4))
    _build_stale(open_store(str(folder)))
    return folder


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> ObjectStore:
    """Return a copy of that store, which a test may change."""
    return open_store(str(shutil.copytree(built_once, tmp_path / "root")))


def test_a_batch_that_comes_moves_or_goes_makes_its_ranges_stale(
    built: ObjectStore,
) -> None:
    _stage(built, "crawl", [1, 3])
    assert _stale(built) == [RANGES[1], RANGES[3]]
    _build_stale(built)
    assert sum(DomainStore(built).count(domain) for domain in DomainStore(built).domains()) == 6
    _stage(built, "crawl", [2, 3], inputs="two")
    assert _stale(built) == RANGES[1:]
    _build_stale(built)
    assert list(iter_count_problems(built, range(OPTIONS.buckets))) == []
    StagedEngine(built).delete(["crawl"])
    assert _stale(built) == [RANGES[2], RANGES[3]]


def test_a_batch_without_rows_makes_nothing_stale(built: ObjectStore) -> None:
    _stage(built, "crawl", [])
    assert _stale(built) == []


@pytest.mark.parametrize("buckets", [1, 17, 1000, 1537])
def test_a_scope_covers_its_buckets_and_few_others(buckets: int) -> None:
    for bucket in {0, buckets // 3, buckets - 1}:
        scope = batch_scope([bucket], buckets)
        hit = {key for key in range(buckets) if is_in_scope(scope, key, buckets)}
        assert bucket in hit
        ranges = -(-buckets // 16)
        assert len({key // 16 for key in hit}) <= max(1, -(-ranges // SCOPE_BITS))
    assert not any(is_in_scope(batch_scope([], buckets), key, buckets) for key in range(buckets))


def test_the_marker_of_the_longest_batch_name_fits_into_a_file_name(root: ObjectStore) -> None:
    everywhere = batch_scope(range(10_000), 10_000)
    assert len("b" * BATCH_BYTES + "@" + "f" * 16 + "." + everywhere + ".json") <= 255
