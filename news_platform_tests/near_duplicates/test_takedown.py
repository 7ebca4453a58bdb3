"""Taken-down articles leave their clusters."""

from pathlib import Path

import pytest

from news_platform.near_duplicates.takedown import takedown_parts
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import TakedownPart
from news_platform_tests.near_duplicates.days import Corpus, day
from news_platform_tests.near_duplicates.stories import story, variant
from news_platform_tests.takedowns.asked import AskedDuringBuild, asked


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "root"))


def part(store: ObjectStore) -> TakedownPart:
    return takedown_parts(store, days=14)[0]


def test_days_that_were_compared_with_an_article_are_clustered_without_it(
    store: ObjectStore, tmp_path: Path
) -> None:
    corpus = Corpus(store, tmp_path)
    corpus.add(0, {"gone": story(1), "stays": story(2)})
    corpus.add(1, {"copy": variant(1, changed=4)})
    corpus.build(0, 1)
    assert corpus.rows(1)["cluster_size"].to_list() == [2]
    takedowns = Takedowns.of([asked("url", "https://gone.example/")])
    clusters = part(store)
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
    clusters = part(store)
    assert clusters.find(Takedowns.read(store, use="removal")) == {}
    # A later build, whose table is not clean yet, has no sketch of it either.
    corpus.add(1, {"copy": variant(1, changed=4)})
    corpus.build(1)
    assert corpus.rows(1)["cluster_size"].to_list() == [1] and corpus.stale() == set()
