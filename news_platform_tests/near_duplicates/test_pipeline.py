"""A day of the crawl: its inputs, its output, and when it is built again."""

import polars as pl

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES, near_duplicates_path
from news_platform.near_duplicates.pipeline import (
    built_days,
    cluster_day,
    day_problems,
    wanted_days,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table, write_table
from news_platform_tests.near_duplicates.rows import collect_warc
from news_platform_tests.near_duplicates.stories import story, variant

DAY = "2025-11-01"


def collect_day(store: ObjectStore) -> None:
    agency = {"https://a.example/1": story(1), "https://a.example/2": story(2)}
    collect_warc(store, DAY, agency, warc="one.warc.gz")
    copies = {"https://b.example/1": variant(1, changed=4), "https://b.example/0": None}
    collect_warc(store, DAY, copies, warc="two.warc.gz", language="de")


def rows(store: ObjectStore, day: str = DAY) -> pl.DataFrame:
    return read_table(store, near_duplicates_path(day), NEAR_DUPLICATES)


def test_copies_are_found_across_warcs_and_languages(any_store: ObjectStore) -> None:
    collect_day(any_store)
    report = cluster_day(any_store, DAY)
    assert report is not None
    assert (report.documents, report.too_short, report.clusters, report.members) == (4, 1, 1, 2)
    found = rows(any_store)
    assert found["uri"].to_list() == ["https://a.example/1", "https://b.example/1"]
    assert found["cluster_id"].n_unique() == 1
    assert found["cluster_size"].to_list() == [2, 2]
    assert found["jaccard"].min() == found["jaccard"].max()
    assert found["date"].to_list() == [DAY, DAY]
    assert day_problems(any_store, DAY) == []


def test_a_day_is_wanted_until_it_is_built_and_again_when_a_warc_is_added(
    local_store: ObjectStore,
) -> None:
    collect_day(local_store)
    assert wanted_days(local_store).keys() == {DAY}
    assert built_days(local_store) == {}
    cluster_day(local_store, DAY)
    assert built_days(local_store) == wanted_days(local_store)
    collect_warc(local_store, DAY, {"https://c.example/": story(2)}, warc="three.warc.gz")
    assert built_days(local_store) != wanted_days(local_store)
    cluster_day(local_store, DAY)
    assert built_days(local_store) == wanted_days(local_store)
    assert rows(local_store).height == 4


def test_strangers_among_the_markers_are_no_days(local_store: ObjectStore) -> None:
    collect_day(local_store)
    for path in (".DS_Store", "2025/notes.json", "2025/13/45/x.json", "2025/11/01/.DS_Store"):
        local_store.put(f"news/collected/{path}", b"")
    assert wanted_days(local_store).keys() == {DAY}
    assert cluster_day(local_store, DAY) is not None


def test_the_same_day_again_gives_the_same_bytes(local_store: ObjectStore) -> None:
    collect_day(local_store)
    cluster_day(local_store, DAY)
    before = local_store.read(near_duplicates_path(DAY))
    cluster_day(local_store, DAY)
    assert local_store.read(near_duplicates_path(DAY)) == before


def test_a_day_without_copies_has_an_empty_file(local_store: ObjectStore) -> None:
    collect_warc(local_store, DAY, {"https://a.example/": story(1)}, warc="one.warc.gz")
    report = cluster_day(local_store, DAY)
    assert report is not None
    assert report.members == 0
    assert rows(local_store).is_empty()


def test_a_day_whose_pages_are_gone_is_removed(local_store: ObjectStore) -> None:
    collect_day(local_store)
    cluster_day(local_store, DAY)
    local_store.delete([info.path for info in local_store.list("news/collected")])
    assert wanted_days(local_store) == {DAY: "removed"}
    assert cluster_day(local_store, DAY) is None
    assert not local_store.exists(near_duplicates_path(DAY))
    assert wanted_days(local_store) == built_days(local_store) == {}


def test_a_warc_without_its_marker_does_not_count(local_store: ObjectStore) -> None:
    collect_day(local_store)
    markers = [info.path for info in local_store.list("news/collected")]
    local_store.delete([markers[1]])
    report = cluster_day(local_store, DAY)
    assert report is not None
    assert report.documents == 2


def test_inconsistent_clusters_are_reported(local_store: ObjectStore) -> None:
    broken = pl.DataFrame(
        {
            "cluster_id": ["one", "two", "two", "three", "three"],
            "uri": ["a", "b", "c", "d", "b"],
            "jaccard": [0.9, 0.9, 0.9, 0.3, 0.9],
            "cluster_size": [1, 3, 2, 2, 2],
        }
    )
    write_table(local_store, near_duplicates_path(DAY), broken, NEAR_DUPLICATES)
    assert day_problems(local_store, DAY) == [
        f"{DAY}: b is in two clusters",
        f"{DAY}: b is in two clusters",
        f"{DAY}: a is alone in its cluster",
        f"{DAY}: d has a Jaccard below the threshold",
        f"{DAY}: b states a wrong cluster size",
    ]
