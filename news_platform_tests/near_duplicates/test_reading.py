"""Clusters as SQL and Python read them: under today's names, and under the old relations."""

from pathlib import Path

import polars as pl
import pytest

import news_platform
from news_platform.api import NewsData
from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    OLD_ARTICLE_CLUSTERS,
    TEXT_CLUSTERS,
    near_duplicates_path,
)
from news_platform.near_duplicates.pipeline import delete_replaced
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import write_table
from news_platform_tests.near_duplicates.days import Corpus, day
from news_platform_tests.near_duplicates.stories import story, variant

HALVES = story(1, words=600).split()
LEFT = " ".join([*HALVES[:540], *story(7, words=60).split()])
RIGHT = " ".join([*story(8, words=60).split(), *HALVES[60:]])


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(open_store(str(tmp_path / "root")), tmp_path)


@pytest.fixture
def news(corpus: Corpus) -> NewsData:
    opened: NewsData = news_platform.open(corpus.store.url)
    return opened


def store_old_pages(store: ObjectStore, on: str) -> None:
    """Store a day of pages as release 0.1 did."""
    pages = {
        "cluster_id": ["old", "old"],
        "uri": ["https://a.example/", "https://b.example/"],
        "jaccard": [0.9, 0.9],
        "cluster_size": [2, 2],
    }
    body = pl.DataFrame(pages)
    path = Path(store.url.removeprefix("file://")) / near_duplicates_path(on)
    path.parent.mkdir(parents=True)
    body.write_parquet(path)
    write_marker(store, NEAR_DUPLICATES.name, on, inputs="0123456789abcdef", report={})


def store_old_articles(store: ObjectStore, *hashes: str) -> None:
    """Store the clusters of articles as release 0.1 did."""
    count = len(hashes)
    rows = {
        "url_hash": hashes,
        "cluster_id": ["old"] * count,
        "jaccard": [None] * count,
        "cluster_size": [count] * count,
    }
    frame = pl.DataFrame(rows, schema=dict(ARTICLE_CLUSTERS.schema))
    write_table(store, OLD_ARTICLE_CLUSTERS, frame, ARTICLE_CLUSTERS)
    write_marker(store, ARTICLE_CLUSTERS.name, "all", inputs="0123456789abcdef", report={})


def test_all_relations_show_the_names_of_today(corpus: Corpus, news: NewsData) -> None:
    corpus.add(0, {"left": LEFT})
    corpus.add(1, {"right": RIGHT}, is_feed=True)
    corpus.add(2, {"both": " ".join(HALVES)}, is_feed=True)
    corpus.build(0, 1, 2)
    name = corpus.rows(0)["cluster_id"][0]
    assert corpus.rows(1)["cluster_id"][0] != name
    found = news.sql("select distinct cluster_id, count(*) over () from near_duplicates")
    assert found.rows() == [(name, 3)]
    texts = news["text_clusters"].collect()
    assert texts.columns == list(TEXT_CLUSTERS.full_schema)
    assert texts["cluster_id"].unique().to_list() == [name]
    articles = news["article_clusters"].collect()
    assert articles.columns == list(ARTICLE_CLUSTERS.schema)
    assert articles["cluster_id"].to_list() == [name, name]
    assert articles["cluster_size"].to_list() == [2, 2]


def test_what_release_0_1_wrote_stays_readable_until_its_day_is_built(
    corpus: Corpus, news: NewsData
) -> None:
    store_old_pages(corpus.store, day(0))
    assert corpus.stale() == set()
    corpus.build(0)
    assert news["near_duplicates"].collect()["url_hash"].to_list() == [None, None]
    assert news["text_clusters"].collect().is_empty()
    # A later day is not compared with pages.
    corpus.add(1, {"copy": story(1)})
    corpus.build(1)
    assert corpus.rows(1)["cluster_size"].to_list() == [1]
    corpus.add(0, {"first": story(1)})
    assert corpus.stale() == {day(0)}
    corpus.build(0)
    assert corpus.stale() == {day(1)}
    corpus.build(1)
    assert len(set(corpus.clusters(0, 1).values())) == 1


def test_old_clusters_of_articles_are_read_until_every_day_has_its_own(
    corpus: Corpus, news: NewsData
) -> None:
    corpus.add(0, {"first": story(1), "edited": variant(1, changed=4)}, is_feed=True)
    corpus.build(0)
    (known, other) = corpus.rows(0)["url_hash"]
    store_old_articles(corpus.store, known, "earlier")
    corpus.store.put(f"articles/date={day(0)}/part-0.parquet", b"")
    corpus.store.put(f"articles/date={day(1)}/part-0.parquet", b"")
    found = news["article_clusters"].collect()
    assert found["url_hash"].to_list() == ["earlier", known, other]
    assert found["cluster_size"].to_list() == [1, 2, 2]
    assert delete_replaced(corpus.store) == 0
    corpus.add(1, {"last": story(5)}, is_feed=True)
    corpus.build(1)
    assert delete_replaced(corpus.store) == 2  # the file and its marker
    assert delete_replaced(corpus.store) == 0
    assert news["article_clusters"].collect().height == 3
    assert list(corpus.store.list("markers/article_clusters")) == []
