"""Every file of the demo belongs to one dataset, by a template that gives its path back."""

import pytest

from news_platform.datasets.dataset import (
    ALL_BEFORE,
    EVERY,
    KNOWN_IN_MONTH,
    OF_MONTH,
    OF_SURVEY_DAY,
    SAME,
    PartitionMap,
    window,
)
from news_platform.datasets.registry import DATASETS, column_sources, stored_parents
from news_platform_tests.servers.demo import Demo

# What is no dataset: facts about the root, the ledger, inputs that are placed by hand, and the
# sample's own internet.
OTHERS = (
    "root.json",
    "demo.json",
    "paused",
    "feeds.opml",
    "outlets.csv",
    "ledger.sqlite",
    "markers/",
    "world/",
)


def test_every_file_of_the_demo_belongs_to_one_dataset_and_its_path_comes_back(
    finished_demo: Demo,
) -> None:
    found = (path for path in finished_demo.root.rglob("*") if path.is_file())
    paths = [str(path.relative_to(finished_demo.root)) for path in found]
    datasets = set()
    for path in paths:
        if path.startswith(OTHERS):
            continue
        owners = [one for one in DATASETS.values() if one.holds(path)]
        assert len(owners) == 1, (path, [one.name for one in owners])
        datasets.add(owners[0].name)
        for place in owners[0].places:
            values = place.parse(path)
            assert values is None or place.path(**values) == path
    # The sheet may be Google's, the queue is in the ledger, nobody took anything down, and no
    # story was joined or split.
    stored = {name for name, one in DATASETS.items() if one.place.engine not in ("sql", "view")}
    assert stored - datasets <= {"takedowns", "dropped_responses", "story_changes", "warc_paths"}


@pytest.mark.parametrize("name", DATASETS)
def test_a_declaration_names_columns_and_datasets_that_exist(name: str) -> None:
    dataset = DATASETS[name]
    columns = {column.name for column in dataset.all_columns}
    assert {made for given in dataset.sources.values() for made in given} <= columns
    for sources in column_sources(dataset).values():
        for source in filter(None, sources):
            parent, _, column = source.partition(".")
            assert column in DATASETS[parent].full_schema
    for given in stored_parents(dataset):
        assert DATASETS[given.dataset].place.engine != "view"
    assert dataset.written_by == "" or dataset.written_by in DATASETS


def test_a_view_stands_for_the_datasets_that_it_joins() -> None:
    assert [it.dataset for it in stored_parents(DATASETS["all_articles"])] == [
        "crawl_articles",
        "feed_articles",
    ]


def test_partitions_map_to_those_of_parents() -> None:
    def inputs(of: PartitionMap, own: str, *units: str) -> list[str]:
        return [unit for unit in units if of.is_input({unit})(own)]

    days = [f"2025-11-0{day}" for day in range(1, 8)]
    assert inputs(SAME, days[1], *days) == [days[1]]
    assert inputs(window(3), days[4], *days) == days[2:5]
    assert inputs(ALL_BEFORE, days[4], *days) == days[:5]
    assert window(3).is_input({days[0], days[6], days[4]})(days[5])
    assert not window(3).is_input({days[0], days[6]})(days[5])
    assert inputs(OF_MONTH, "2025-11", "2025-11-30", "2025-12-01") == ["2025-11-30"]
    assert EVERY.is_input({"a"})("b") and not EVERY.is_input(set())("b")
    assert KNOWN_IN_MONTH.is_input({"gb|news|2025-11-02"})("2025-11")
    assert not KNOWN_IN_MONTH.is_input({"gb|news|2025-12-02"})("2025-11")
    assert OF_SURVEY_DAY.own("gb|news|2025-11-02") == "2025-11-02"


@pytest.mark.parametrize(
    ("name", "path", "unit"),
    [
        (
            "raw_news",
            "news/raw/year=2025/month=11/day=01/main_lang=en/filename=a%2Fb/part-0.parquet",
            "2025-11-01",
        ),
        (
            "domain_metadata",
            "prod/country=gb/category=news/date=2025-11-02/bbc.co.uk/robots.txt",
            "gb|news|2025-11-02",
        ),
        ("domain_catalog", "domain_catalog/part-0.parquet", "all"),
        ("training_export", "training_export/month=2025-11/v/data/train-0-of-1.parquet", "2025-11"),
    ],
)
def test_a_file_lies_in_the_folder_of_its_unit(name: str, path: str, unit: str) -> None:
    dataset = DATASETS[name]
    assert dataset.unit_of(path) == unit
    assert path.startswith(dataset.unit_folder(unit))
    assert dataset.unit_of("other/part-0.parquet") is None
