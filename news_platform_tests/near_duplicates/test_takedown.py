"""Taken-down articles leave their clusters, also what release 0.1 wrote."""

from pathlib import Path

import pytest

from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    OLD_ARTICLE_CLUSTERS,
    near_duplicates_path,
)
from news_platform.near_duplicates.takedown import takedown_parts
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import read_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import TakedownPart
from news_platform_tests.near_duplicates.days import Corpus, day
from news_platform_tests.near_duplicates.stories import story, variant
from news_platform_tests.near_duplicates.test_reading import store_old_articles, store_old_pages
from news_platform_tests.takedowns.asked import AskedDuringBuild, asked


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "root"))


def parts(store: ObjectStore, *hashes: str) -> list[TakedownPart]:
    return takedown_parts(store, days=14, hashes=lambda _: hashes)


def test_days_that_were_compared_with_an_article_are_clustered_without_it(
    store: ObjectStore, tmp_path: Path
) -> None:
    corpus = Corpus(store, tmp_path)
    corpus.add(0, {"gone": story(1), "stays": story(2)})
    corpus.add(1, {"copy": variant(1, changed=4)})
    corpus.build(0, 1)
    assert corpus.rows(1)["cluster_size"].to_list() == [2]
    takedowns = Takedowns.of([asked("url", "https://gone.example/")])
    clusters, _ = parts(store)
    assert clusters.find(takedowns) == {day(0): 1}
    corpus.add(0, {"stays": story(2)})
    assert clusters.remove(day(0), takedowns).rows == 1
    assert corpus.rows(0)["uri"].to_list() == ["https://stays.example/"]
    assert corpus.rows(1)["cluster_size"].to_list() == [1]
    assert clusters.find(takedowns) == {}


def test_a_request_that_comes_during_a_build_is_obeyed(store: ObjectStore, tmp_path: Path) -> None:
    during = AskedDuringBuild(store, "near_duplicates", "url", "https://gone.example/")
    corpus = Corpus(during, tmp_path)
    corpus.add(0, {"gone": story(1), "stays": story(2)})
    corpus.build(0)
    assert corpus.rows(0)["uri"].to_list() == ["https://stays.example/"]
    clusters, _ = parts(store)
    assert clusters.find(Takedowns.read(store, use="removal")) == {}
    # A later build, whose table is not clean yet, has no sketch of it either.
    corpus.add(1, {"copy": variant(1, changed=4)})
    corpus.build(1)
    assert corpus.rows(1)["cluster_size"].to_list() == [1] and corpus.stale() == set()


def test_pages_of_release_0_1_are_removed_with_clusters_of_one(store: ObjectStore) -> None:
    store_old_pages(store, day(0))
    takedowns = Takedowns.of([asked("url", "https://a.example/")])
    clusters, _ = parts(store)
    assert clusters.find(takedowns) == {day(0): 1}
    assert clusters.remove(day(0), takedowns).rows == 1
    assert read_table(store, near_duplicates_path(day(0)), NEAR_DUPLICATES).is_empty()
    assert clusters.find(takedowns) == {}


def test_articles_of_release_0_1_are_removed_by_their_hash(store: ObjectStore) -> None:
    takedowns = Takedowns.of([asked("url", "https://a.example/")])
    _, articles = parts(store, "gone")
    assert articles.find(takedowns) == {}
    assert articles.remove("all", takedowns).rows == 0
    store_old_articles(store, "gone", "stays", "too")
    assert articles.find(takedowns) == {"all": 1}
    assert articles.remove("all", takedowns).rows == 1
    left = read_table(store, OLD_ARTICLE_CLUSTERS, ARTICLE_CLUSTERS)
    assert left["url_hash"].to_list() == ["stays", "too"]
    assert left["cluster_size"].to_list() == [2, 2]
