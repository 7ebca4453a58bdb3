"""A range of buckets is stale only by the batches that have rows in it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.domain_store.building.verify import iter_count_problems
from news_platform.domain_store.catalog import write_catalog
from news_platform.domain_store.layout import (
    BATCH_BYTES,
    SCOPE_BITS,
    batch_scope,
    bucket_of,
    is_in_scope,
    range_keys,
)
from news_platform.domain_store.pipeline import build_range
from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.domain_store.staging.stage import (
    built_ranges,
    stage_batch,
    unstage_batch,
    wanted_ranges,
)
from news_platform.storage.commit.markers import read_markers, stale_partitions
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs
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


def _forget_scopes(store: ObjectStore) -> None:
    """Give the staged batches the names of markers that version 0.1 wrote."""
    for marker in read_markers(store, STAGED).values():
        store.put(marker.path.replace(f".{marker.scope}.json", ".json"), store.read(marker.path))
        store.delete([marker.path])


@pytest.fixture
def built(root: ObjectStore) -> ObjectStore:
    """Return a store with one batch in all four ranges."""
    _stage(root, "2025-11-01", range(4))
    _build_stale(root)
    return root


def test_a_batch_makes_stale_the_ranges_with_its_rows(built: ObjectStore) -> None:
    _stage(built, "crawl", [1, 3])
    assert _stale(built) == [RANGES[1], RANGES[3]]
    _build_stale(built)
    assert list(iter_count_problems(built, range(OPTIONS.buckets))) == []
    assert sum(DomainStore(built).count(domain) for domain in DomainStore(built).domains()) == 6


def test_a_batch_that_moves_or_goes_makes_stale_where_it_was(built: ObjectStore) -> None:
    _stage(built, "crawl", [1, 3])
    _build_stale(built)
    _stage(built, "crawl", [2, 3], inputs="two")
    assert _stale(built) == RANGES[1:]
    _build_stale(built)
    assert list(iter_count_problems(built, range(OPTIONS.buckets))) == []
    unstage_batch(built, "crawl", options=OPTIONS)
    assert _stale(built) == [RANGES[2], RANGES[3]]


def test_a_batch_without_rows_makes_nothing_stale(built: ObjectStore) -> None:
    _stage(built, "crawl", [])
    assert _stale(built) == []


def test_a_range_that_lacks_the_rows_of_a_batch_is_told(built: ObjectStore) -> None:
    _stage(built, "crawl", [1])
    [problem] = iter_count_problems(built, range(OPTIONS.buckets))
    assert "does not have the staged version of batch 'crawl'" in problem


def test_batches_of_version_0_1_count_in_every_range_and_stay_current(root: ObjectStore) -> None:
    _stage(root, "2025-11-01", [0, 1])
    _forget_scopes(root)
    assert len(set(wanted_ranges(root).values())) == 1
    _build_stale(root)
    write_catalog(root, inputs=wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE, ""))
    _stage(root, "crawl", [1, 3])
    assert _stale(root) == [RANGES[1], RANGES[3]]


@pytest.mark.parametrize("buckets", [1, 16, 17, 1000, 1536, 1537, 10_000])
def test_a_scope_covers_its_buckets_and_few_others(buckets: int) -> None:
    for bucket in {0, buckets // 3, buckets - 1}:
        scope = batch_scope([bucket], buckets)
        hit = {key for key in range(buckets) if is_in_scope(scope, key, buckets)}
        assert bucket in hit
        ranges = -(-buckets // 16)
        assert len({key // 16 for key in hit}) <= max(1, -(-ranges // SCOPE_BITS))
    assert all(is_in_scope("", key, buckets) for key in range(buckets))
    assert not any(is_in_scope(batch_scope([], buckets), key, buckets) for key in range(buckets))


def test_the_marker_of_the_longest_batch_name_fits_into_a_file_name(root: ObjectStore) -> None:
    everywhere = batch_scope(range(10_000), 10_000)
    assert len("b" * BATCH_BYTES + "@" + "f" * 16 + "." + everywhere + ".json") <= 255
