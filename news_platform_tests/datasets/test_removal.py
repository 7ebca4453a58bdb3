"""What has lost its inputs is removed in one place, behind one brake, for every dataset."""

import ast
from datetime import date
from pathlib import Path

import pytest

import news_platform
from news_platform.composition.engines import open_dataset
from news_platform.datasets.collected import collected_path
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.registry import DATASETS, stored_parents
from news_platform.defs.graph import BUILD_ORDER
from news_platform.domain_store.layout import STORE_FILE, staged_path
from news_platform.errors import StorageError
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.commit.markers import read_markers, write_marker
from news_platform.storage.engines import DatasetEngine, remove_gone
from news_platform.storage.objects.store import ObjectStore

RULES = {rule.asset: rule for rule in BUILD_ORDER}
REMOVABLE = [
    dataset
    for name, dataset in DATASETS.items()
    if name in RULES and dataset.partitions in ("day", "month") and dataset.fingerprint == "markers"
]
DAYS = [f"2025-{number:02}-01" for number in range(1, 11)]
LOST = DAYS[2:4]


def units(dataset: Dataset, days: list[str]) -> list[str]:
    """Return the partitions of a dataset that these days belong to."""
    return [day[:7] if dataset.partitions == "month" else day for day in days]


def unit_paths(dataset: Dataset, unit: str) -> list[str]:
    """Return paths of files of a partition, also of those that are written beside it."""
    if dataset.place.engine == "index":
        return [f"search/day={unit}/build/meta.json", f"search/month={unit[:7]}/build/meta.json"]
    if dataset.place.engine == "store":
        return [staged_path(0, unit, name="0123456789ab", number=0)]
    written = [one for one in DATASETS.values() if one.writer == dataset.name]
    values = dict.fromkeys(("date", "month"), unit) | dict.fromkeys(
        ("version", "shard", "shards"), "1"
    )
    places = [place for one in written for place in one.places if place.engine != "delta"]
    return [place.path(**values) for place in places]


def store_parents(store: ObjectStore, dataset: Dataset, days: list[str]) -> None:
    """Store what the days of a dataset are built from."""
    for parent in (DATASETS[it.dataset] for it in stored_parents(dataset) if it.is_followed):
        for day in days:
            if parent.fingerprint == "collected":
                store.put(collected_path(date.fromisoformat(day), "a.warc.gz", "0-0"), b"{}")
            elif parent.fingerprint == "files":
                store.put(parent.place.path(date=day), b"")
            else:
                write_marker(store, parent.name, day, inputs="0" * 16, report={})


def build(store: ObjectStore, dataset: Dataset) -> None:
    """Store ten partitions of a dataset."""
    store.put(STORE_FILE, b'{"format": 1, "buckets": 1}')
    for unit in units(dataset, DAYS):
        write_marker(store, dataset.name, unit, inputs="1" * 16, report={"records": 1})
        for path in unit_paths(dataset, unit):
            store.put(path, b"")


def opened(store: ObjectStore, dataset: Dataset) -> DatasetEngine:
    engine = open_dataset(Resources(Settings(root=store.url)), dataset)
    assert engine is not None
    return engine


def paths(store: ObjectStore) -> set[str]:
    return {info.path for info in store.list()} - {"root.json", "paused", STORE_FILE}


@pytest.mark.parametrize("dataset", REMOVABLE, ids=lambda it: it.name)
def test_a_dataset_whose_parents_vanish_stays_until_its_removal_is_allowed(
    local_store: ObjectStore, dataset: Dataset
) -> None:
    build(local_store, dataset)
    before = paths(local_store)
    refused = f"refused to remove 10 of 10 units of '{dataset.name}'.*; restore.*--allow-removal"
    with pytest.raises(StorageError, match=refused) as caught:
        remove_gone(opened(local_store, dataset), units(dataset, DAYS[:1]))
    assert "\n" not in str(caught.value)
    with pytest.raises(StorageError, match=refused):
        RULES[dataset.name].stale(Resources(Settings(root=local_store.url)))
    assert paths(local_store) == before
    gone = remove_gone(opened(local_store, dataset), allowed=True)
    assert gone == units(dataset, DAYS)
    assert paths(local_store) == set()


@pytest.mark.parametrize("dataset", REMOVABLE, ids=lambda it: it.name)
def test_few_partitions_go_with_their_parents_and_leave_nothing_behind(
    local_store: ObjectStore, dataset: Dataset
) -> None:
    build(local_store, dataset)
    before = paths(local_store)
    store_parents(local_store, dataset, [day for day in DAYS if day not in LOST])
    lost = units(dataset, LOST)
    assert remove_gone(opened(local_store, dataset)) == lost
    gone = before - paths(local_store)
    files = {path for unit in lost for path in unit_paths(dataset, unit)}
    assert gone >= files and len(gone) == len(files) + len(lost)
    assert sorted(read_markers(local_store, dataset.name)) == [
        unit for unit in units(dataset, DAYS) if unit not in lost
    ]
    assert remove_gone(opened(local_store, dataset)) == []


def test_every_dataset_that_is_removed_with_its_parents_is_tried() -> None:
    assert {dataset.name for dataset in REMOVABLE} >= {
        "crawl_articles",
        "feed_articles",
        "domain_buckets",
        "near_duplicates",
        "search_index",
        "stories",
        "training_export",
    }


def test_no_build_deletes_units_by_another_way() -> None:
    """`engine.delete` is called by the brake, and by the engine of the search index itself."""
    callers = set()
    package = Path(news_platform.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if ".delete(" in text else ():
            if isinstance(node, ast.Attribute) and node.attr == "delete":
                owner = ast.unparse(node.value)
                if owner in ("self", "engine") or owner.endswith("Engine"):
                    callers.add(path.relative_to(package).as_posix())
    assert callers == {"search/index_engine.py", "storage/engines.py"}
