"""What a unit should be built from: the units of its parents, the version and the options."""

from dataclasses import dataclass, replace

import pytest

from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.datasets.dataset import (
    ALL_BEFORE,
    EVERY,
    OF_MONTH,
    SAME,
    Dataset,
    ParentDataset,
    PartitionKey,
    PartitionMap,
    parquet,
    window,
)
from news_platform.datasets.feeds import ARTICLES
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import delete_marker, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import stale_units, unit_states, wanted_inputs

DAYS = ("2025-11-01", "2025-11-02", "2025-11-03", "2025-12-01")


@dataclass(frozen=True, slots=True)
class Options:
    languages: frozenset[str] = frozenset()
    strict: bool = False


def child(partitions: PartitionKey, mapping: PartitionMap, *, is_followed: bool = True) -> Dataset:
    return Dataset(
        name="child",
        group="corpus",
        row="a row",
        description="A child of crawl_articles.",
        place=parquet("child/date={date}/part-0.parquet"),
        partitions=partitions,
        parents=(ParentDataset(CRAWL_ARTICLES.name, mapping, is_followed=is_followed),),
        version="1",
        options=("languages", "strict"),
    )


def mark(store: ObjectStore, dataset: str, unit: str, inputs: str, scope: str = "") -> None:
    write_marker(store, dataset, unit, inputs=inputs, report={}, scope=scope)


@pytest.fixture
def store(local_store: ObjectStore) -> ObjectStore:
    for day in DAYS:
        mark(local_store, CRAWL_ARTICLES.name, day, "a" * 16)
    return local_store


@pytest.mark.parametrize(
    ("partitions", "mapping", "units", "touched"),
    [
        ("day", SAME, list(DAYS), ["2025-11-02"]),
        ("day", window(2), list(DAYS), ["2025-11-02", "2025-11-03"]),
        ("day", ALL_BEFORE, list(DAYS), ["2025-11-02", "2025-11-03", "2025-12-01"]),
        ("month", OF_MONTH, ["2025-11", "2025-12"], ["2025-11"]),
        ("whole", EVERY, ["all"], ["all"]),
    ],
    ids=["same day", "window", "all before", "of the month", "whole"],
)
def test_a_changed_parent_makes_stale_what_is_built_from_it(
    store: ObjectStore,
    partitions: PartitionKey,
    mapping: PartitionMap,
    units: list[str],
    touched: list[str],
) -> None:
    dataset = child(partitions, mapping)
    before = wanted_inputs(store, dataset, Options())
    assert sorted(before) == units
    mark(store, CRAWL_ARTICLES.name, "2025-11-02", "b" * 16)
    after = wanted_inputs(store, dataset, Options())
    assert sorted(unit for unit in after if after[unit] != before[unit]) == touched


def test_another_scope_of_a_parent_counts_as_a_change(store: ObjectStore) -> None:
    before = wanted_inputs(store, child("day", SAME), Options())
    mark(store, CRAWL_ARTICLES.name, DAYS[0], "a" * 16, scope="5-2")
    assert wanted_inputs(store, child("day", SAME), Options())[DAYS[0]] != before[DAYS[0]]


def test_options_and_a_followed_version_count_and_options_that_are_off_do_not(
    store: ObjectStore,
) -> None:
    dataset = child("day", SAME)
    plain = wanted_inputs(store, dataset, Options())
    assert wanted_inputs(store, replace(dataset, options=()), None) == plain
    assert wanted_inputs(store, dataset, Options(frozenset({"de", "en"}))) != plain
    assert wanted_inputs(store, replace(dataset, version="2"), Options()) == plain
    followed = replace(dataset, follows_version=True)
    assert wanted_inputs(store, replace(followed, version="2"), Options()) != wanted_inputs(
        store, followed, Options()
    )


def test_what_only_informs_a_dataset_makes_nothing_stale(store: ObjectStore) -> None:
    assert wanted_inputs(store, child("day", SAME, is_followed=False), Options()) == {}


def test_a_built_day_without_inputs_is_to_be_removed(store: ObjectStore) -> None:
    dataset = child("day", SAME)
    for unit, inputs in wanted_inputs(store, dataset, Options()).items():
        mark(store, dataset.name, unit, inputs)
    mark(store, dataset.name, "CC-MAIN-2013-20", "c" * 16)  # a named crawl is not a day
    assert stale_units(store, dataset, Options()) == {}
    delete_marker(store, CRAWL_ARTICLES.name, DAYS[0])
    assert stale_units(store, dataset, Options()) == {DAYS[0]: REMOVED}


def test_files_without_markers_count_by_their_content(local_store: ObjectStore) -> None:
    path = ARTICLES.place.path(date=DAYS[0])
    local_store.put(path, b"one")
    before = unit_states(local_store, ARTICLES)
    local_store.put(path, b"one")  # another inode and time
    local_store.put("articles/full_text/ab/abc.txt.gz", b"beside")
    assert unit_states(local_store, ARTICLES) == before
    local_store.put(path, b"two")
    assert unit_states(local_store, ARTICLES).keys() == {DAYS[0]}
    assert unit_states(local_store, ARTICLES) != before
