"""Taken-down articles leave their clusters, and those of the days compared with them."""

from pathlib import Path

import pytest

from news_platform.composition.takedown_parts import same_text_elsewhere
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.near_duplicates.days import Corpus
from news_platform_tests.near_duplicates.stories import story, variant
from news_platform_tests.takedowns.asked import AskedDuringBuild, ask, served, target


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "root"))


def test_days_that_were_compared_with_an_article_are_clustered_without_it(
    store: ObjectStore, tmp_path: Path
) -> None:
    corpus = Corpus(store, tmp_path)
    corpus.add(0, {"gone": story(1), "stays": story(2)})
    corpus.add(1, {"copy": variant(1, changed=4)})
    corpus.build(0, 1)
    assert corpus.rows(1)["cluster_size"].to_list() == [2]
    resources = Resources(Settings(root=store.url))
    down = target("url", "https://gone.example/").takedowns
    # It is a page of its own, which only a request of its own removes.
    assert same_text_elsewhere(resources, down) == ["https://copy.example/"]
    ask(store, "url", "https://gone.example/")
    assert served(store).removed["near_duplicates"].rows == 1
    assert corpus.rows(0)["uri"].to_list() == ["https://stays.example/"]
    assert corpus.rows(1)["cluster_size"].to_list() == [1] and corpus.stale() == set()


def test_a_request_that_comes_during_a_build_is_obeyed(store: ObjectStore, tmp_path: Path) -> None:
    during = AskedDuringBuild(store, "near_duplicates", "url", "https://gone.example/")
    corpus = Corpus(during, tmp_path)
    corpus.add(0, {"gone": story(1), "stays": story(2)})
    corpus.build(0)
    assert corpus.rows(0)["uri"].to_list() == ["https://stays.example/"]
    engine = ParquetEngine(store, NEAR_DUPLICATES)
    assert engine.find(target("url", "https://gone.example/")) == {}
    # A later build, whose table is not clean yet, has no sketch of it either.
    corpus.add(1, {"copy": variant(1, changed=4)})
    corpus.build(1)
    assert corpus.rows(1)["cluster_size"].to_list() == [1] and corpus.stale() == set()
