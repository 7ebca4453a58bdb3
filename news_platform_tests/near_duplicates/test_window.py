"""Clusters over a sliding window of days: stable names, merges, and what leaves the window."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from news_platform.corpus.feed_articles import feed_dataset
from news_platform.near_duplicates.window import day_clusters, read_clusters, window_days
from news_platform.near_duplicates.window_days import (
    build_window_day,
    built_window_days,
    expire_sketches,
    wanted_window_days,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.near_duplicates.stories import story, variant

START = datetime(2025, 11, 1, 9, tzinfo=UTC)


def day(number: int) -> str:
    return (START + timedelta(days=number)).date().isoformat()


class Corpus:
    """A root whose days are stored and clustered one after the other."""

    def __init__(self, store: ObjectStore, scratch: Path, window: int = 14) -> None:
        self.store, self.scratch, self.window = store, scratch, window

    def add(self, number: int, texts: Mapping[str, str], *, is_feed: bool = False) -> None:
        moment = START + timedelta(days=number)
        source = "feed" if is_feed else "crawl"
        rows = [
            article(f"https://{name}.example/", text, fetched_at=moment, source=source)
            for name, text in texts.items()
        ]
        dataset = feed_dataset(self.store) if is_feed else None
        store_articles(self.store, day(number), rows, self.scratch, dataset=dataset)

    def build(self, *numbers: int) -> None:
        for number in numbers:
            build_window_day(self.store, day(number), days=self.window)

    def clusters(self, *numbers: int) -> dict[str, str]:
        rows = read_clusters(self.store, [day(number) for number in numbers])
        names = rows["url"].str.extract("https://(.*).example")
        return dict(zip(names, rows["cluster_id"], strict=True))


@pytest.fixture
def corpus(local_store: ObjectStore, tmp_path: Path) -> Corpus:
    return Corpus(local_store, tmp_path)


def test_copies_of_both_sources_and_several_days_are_one_cluster(corpus: Corpus) -> None:
    corpus.add(0, {"first": story(1), "other": story(2)})
    corpus.add(1, {"edited": variant(1, changed=4)})
    corpus.add(1, {"copy": story(1), "short": "a few words"}, is_feed=True)
    corpus.build(0, 1)
    found = corpus.clusters(0, 1)
    assert found["first"] == found["edited"] == found["copy"]
    assert len(set(found.values())) == 3
    rows = read_clusters(corpus.store, [day(0), day(1)])
    first = rows.filter(pl.col("cluster_id") == found["first"])
    assert first["members"].to_list() == [3, 3, 3]
    assert first["sources"].to_list() == [2, 2, 2]
    assert first["first_seen_at"].unique().to_list() == [START]
    jaccards = dict(zip(rows["url"], rows["jaccard"], strict=True))
    assert jaccards["https://first.example/"] is None
    assert jaccards["https://copy.example/"] == 1.0
    assert jaccards["https://short.example/"] is None
    assert 0.8 <= jaccards["https://edited.example/"] < 1


def test_a_name_lasts_while_copies_keep_coming_and_the_window_moves(corpus: Corpus) -> None:
    corpus.window = 3
    for number in range(6):
        corpus.add(number, {f"copy{number}": variant(1, changed=number + 1)})
        corpus.build(number)
    found = corpus.clusters(*range(6))
    assert len(set(found.values())) == 1
    assert read_clusters(corpus.store, [day(5)])["first_seen_at"].to_list() == [START]


def test_what_left_the_window_is_not_compared(corpus: Corpus) -> None:
    corpus.window = 3
    corpus.add(0, {"old": story(1)})
    corpus.add(3, {"new": story(1)})
    corpus.build(0, 3)
    found = corpus.clusters(0, 3)
    assert found["old"] != found["new"]
    assert window_days(day(3), 3) == [day(1), day(2)]


def test_clusters_that_an_article_joins_keep_the_older_name(corpus: Corpus) -> None:
    # Two halves that are too different to be copies, and a text that is like both.
    words = story(1, words=600).split()
    left = " ".join([*words[:540], *story(7, words=60).split()])
    right = " ".join([*story(8, words=60).split(), *words[60:]])
    corpus.add(0, {"left": left})
    corpus.add(1, {"right": right})
    corpus.build(0, 1)
    before = corpus.clusters(0, 1)
    assert before["left"] != before["right"]
    stored = day_clusters(corpus.store, day(1))
    corpus.add(2, {"both": " ".join(words)})
    corpus.build(2)
    after = corpus.clusters(0, 1, 2)
    assert after["left"] == after["right"] == after["both"] == before["left"]
    # What was written for the earlier day is untouched: readers resolve it.
    assert day_clusters(corpus.store, day(1)).equals(stored)


def test_an_article_that_changes_stays_in_its_cluster(corpus: Corpus) -> None:
    corpus.add(0, {"story": story(1)})
    corpus.add(1, {"story": variant(1, changed=5)})
    corpus.build(0, 1)
    names = [read_clusters(corpus.store, [day(number)])["cluster_id"][0] for number in (0, 1)]
    assert names[0] == names[1]


def test_a_cluster_begins_with_its_first_article_in_whatever_order_days_come(
    corpus: Corpus,
) -> None:
    corpus.add(0, {"first": story(1)})
    early = START - timedelta(days=3)
    url = "https://early.example/"
    rows = [article(url, variant(1, changed=4), fetched_at=early)]
    store_articles(corpus.store, day(1), rows, corpus.scratch)
    corpus.build(0, 1)
    found = read_clusters(corpus.store, [day(0), day(1)])
    assert found["cluster_id"].n_unique() == 1
    assert found["first_seen_at"].to_list() == [early, early]
    assert day_clusters(corpus.store, day(1))["first_seen_at"].to_list() == [early]


def test_a_day_is_stale_when_a_day_of_its_window_changes(corpus: Corpus) -> None:
    corpus.window = 3
    for number in (0, 1, 5):
        corpus.add(number, {f"story{number}": story(number)})
    corpus.build(0, 1, 5)

    def stale() -> set[str]:
        wanted, built = wanted_window_days(corpus.store, days=3), built_window_days(corpus.store)
        return {key for key, inputs in wanted.items() if built.get(key) != inputs}

    assert stale() == set()
    corpus.add(0, {"story0": story(0), "more": story(9)})
    assert stale() == {day(0), day(1)}
    corpus.build(0, 1)
    assert stale() == set()
    again = day_clusters(corpus.store, day(1))
    corpus.build(1)
    assert day_clusters(corpus.store, day(1)).equals(again)


def test_expired_sketches_are_made_again_when_a_late_day_needs_them(corpus: Corpus) -> None:
    corpus.window = 2
    corpus.add(0, {"first": story(1)})
    corpus.add(9, {"last": story(3)})
    corpus.build(0, 9)
    assert expire_sketches(corpus.store, days=2) == 2
    assert expire_sketches(corpus.store, days=2) == 0
    corpus.add(1, {"late": variant(1, changed=4)})
    corpus.build(1)
    found = corpus.clusters(0, 1)
    assert found["first"] == found["late"]


def test_a_root_on_s3_gives_the_same_clusters(
    corpus: Corpus, s3_store: ObjectStore, tmp_path: Path
) -> None:
    remote = Corpus(s3_store, tmp_path)
    for each in (corpus, remote):
        each.add(0, {"first": story(1)})
        each.add(1, {"edited": variant(1, changed=4)})
        each.build(0, 1)
    assert corpus.clusters(0, 1) == remote.clusters(0, 1)


def test_a_day_without_articles_is_removed(corpus: Corpus) -> None:
    from news_platform.storage.commit.markers import delete_marker

    corpus.add(0, {"first": story(1)})
    corpus.build(0)
    delete_marker(corpus.store, "crawl_articles", day(0))
    assert wanted_window_days(corpus.store, days=14) == {day(0): "removed"}
    corpus.build(0)
    assert built_window_days(corpus.store) == {}
    assert corpus.clusters(0) == {}
