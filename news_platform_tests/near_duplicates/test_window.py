"""Clusters over a sliding window of days: stable names, merges, and what leaves the window."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from news_platform.near_duplicates.pipeline import expire_sketches
from news_platform.near_duplicates.reading import read_clusters
from news_platform.near_duplicates.window import window_days
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.near_duplicates.days import START, Corpus, day
from news_platform_tests.near_duplicates.stories import BOTH, LEFT, RIGHT, story, variant


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
    jaccards = dict(zip(rows["uri"], rows["jaccard"], strict=True))
    assert jaccards["https://first.example/"] is None
    assert jaccards["https://copy.example/"] == 1.0
    assert jaccards["https://short.example/"] is None
    assert 0.8 <= jaccards["https://edited.example/"] < 1


def test_an_address_that_changes_its_text_joins_no_cluster_of_another_article(
    corpus: Corpus,
) -> None:
    """A live blog: its address has another text on every day and in each source."""
    corpus.add(0, {"live": story(1), "first": story(2)})
    corpus.add(1, {"live": story(2), "short": "a few words"})
    corpus.add(1, {"live": story(3), "short": "some other words"}, is_feed=True)
    last = {"second": story(3), "third": story(1), "fourth": story(2)}
    corpus.add(2, {**last, "short": "again other words"})
    corpus.build(0, 1, 2)
    rows = read_clusters(corpus.store, [day(0), day(1), day(2)])
    names = rows["uri"].str.extract("https://(.*).example")
    keys = zip(names, rows["source"], rows["date"].str.slice(9), strict=True)
    found = dict(zip(keys, rows["cluster_id"], strict=True))
    texts = [
        {("live", "crawl", "1"), ("third", "crawl", "3")},
        {("first", "crawl", "1"), ("live", "crawl", "2"), ("fourth", "crawl", "3")},
        {("live", "feed", "2"), ("second", "crawl", "3")},
        *({("short", *key)} for key in (("crawl", "2"), ("feed", "2"), ("crawl", "3"))),
    ]
    by_name: dict[str, set[tuple[str, ...]]] = {}
    for key, name in found.items():
        by_name.setdefault(name, set()).add(key)
    assert sorted(map(sorted, by_name.values())) == sorted(map(sorted, texts))


def test_a_name_lasts_while_copies_keep_coming_and_the_window_moves(corpus: Corpus) -> None:
    corpus.window = 2
    for number in range(4):
        corpus.add(number, {f"copy{number}": variant(1, changed=number + 1)})
        corpus.build(number)
    found = corpus.clusters(*range(4))
    assert len(set(found.values())) == 1
    assert read_clusters(corpus.store, [day(3)])["first_seen_at"].to_list() == [START]


def test_what_left_the_window_is_not_compared(corpus: Corpus) -> None:
    corpus.window = 3
    corpus.add(0, {"old": story(1)})
    corpus.add(3, {"new": story(1)})
    corpus.build(0, 3)
    found = corpus.clusters(0, 3)
    assert found["old"] != found["new"]
    assert window_days(day(3), 3) == [day(1), day(2)]


def test_clusters_that_an_article_joins_keep_the_older_name(corpus: Corpus) -> None:
    corpus.add(0, {"left": LEFT})
    corpus.add(1, {"right": RIGHT})
    corpus.build(0, 1)
    before = corpus.clusters(0, 1)
    assert before["left"] != before["right"]
    stored = corpus.rows(1)
    corpus.add(2, {"both": BOTH})
    corpus.build(2)
    after = corpus.clusters(0, 1, 2)
    assert after["left"] == after["right"] == after["both"] == before["left"]
    assert corpus.rows(2)["merged_ids"].to_list() == [[before["right"]]]
    assert corpus.rows(2)["cluster_size"].to_list() == [3]
    # What was written for the earlier day is untouched: readers resolve it.
    assert corpus.rows(1).equals(stored)


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
    assert corpus.rows(1)["first_seen_at"].to_list() == [early]


def test_a_day_is_stale_when_a_day_of_its_window_changes(corpus: Corpus) -> None:
    corpus.window = 3
    for number in (0, 1, 5):
        corpus.add(number, {f"story{number}": story(number)})
    corpus.build(0, 1, 5)
    assert corpus.stale() == set()
    corpus.add(0, {"story0": story(0), "more": story(9)})
    assert corpus.stale() == {day(0)}
    corpus.build(0)
    assert corpus.stale() == {day(1)}
    corpus.build(1)
    assert corpus.stale() == set()
    again = corpus.rows(1)
    corpus.build(1)
    assert corpus.rows(1).equals(again)


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


def test_days_that_are_built_newest_first_end_like_those_in_order(
    corpus: Corpus, tmp_path: Path, local_store: ObjectStore
) -> None:
    other = Corpus(open_store(str(tmp_path / "other")), tmp_path)
    for each in (corpus, other):
        for number in range(4):
            each.add(number, {f"copy{number}": variant(1, changed=number + 1)})
    corpus.build(*range(4))
    other.build(*reversed(range(4)))
    assert len(set(other.clusters(*range(4)).values())) > 1
    # What a day gives to the days after it changed, so they are out of date.
    while stale := sorted(other.stale()):
        other.build(*(int(one[-2:]) - 1 for one in stale))
    for number in range(4):
        assert other.rows(number).equals(corpus.rows(number))


def test_a_day_whose_result_stays_the_same_makes_nothing_stale(corpus: Corpus) -> None:
    corpus.add(0, {"first": story(1)})
    corpus.add(1, {"second": story(2)})
    corpus.build(0, 1)
    write_marker(corpus.store, "crawl_articles", day(0), inputs="extracted again", report={})
    assert corpus.stale() == {day(0)}
    corpus.build(0)
    assert corpus.stale() == set()


def test_a_day_that_is_built_again_is_not_led_by_what_it_joined_before(corpus: Corpus) -> None:
    corpus.add(0, {"left": LEFT, "right": RIGHT})
    corpus.add(1, {"both": BOTH, "copy": RIGHT})
    corpus.build(0, 1)
    assert len(set(corpus.clusters(0, 1).values())) == 1
    corpus.add(1, {"copy": RIGHT})
    corpus.build(1)
    found = corpus.clusters(0, 1)
    assert found["copy"] == found["right"] != found["left"]


def test_sizes_count_the_window_and_similar_articles_of_a_day_name_each_other(
    corpus: Corpus,
) -> None:
    corpus.add(0, {"first": story(1), "alone": story(2)})
    corpus.add(1, {"edited": variant(1, changed=4), "again": variant(1, changed=4)})
    corpus.add(2, {"left": story(3), "right": variant(3, changed=4)})
    corpus.build(0, 1, 2)
    assert corpus.rows(0)["cluster_size"].to_list() == [1, 1]
    assert corpus.rows(1)["cluster_size"].to_list() == [3, 3]
    assert corpus.rows(1)["jaccard"].to_list() == [1.0, 1.0]
    last = corpus.rows(2)
    assert last["cluster_size"].to_list() == [2, 2]
    assert last["jaccard"].n_unique() == 1 and 0.8 <= last["jaccard"][0] < 1
