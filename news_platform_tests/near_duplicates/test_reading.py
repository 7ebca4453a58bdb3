"""Clusters are found by hash and day, explained, and read under today's and old names."""

from pathlib import Path

import pytest

import news_platform
from news_platform.api import NewsData
from news_platform.datasets.near_duplicates import ARTICLE_CLUSTERS, TEXT_CLUSTERS
from news_platform.near_duplicates.pipeline import build_day
from news_platform.near_duplicates.reading import cluster_names, explain_clusters
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.web.urls import url_hash
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.near_duplicates.days import Corpus
from news_platform_tests.near_duplicates.stories import BOTH, LEFT, RIGHT, story

DAYS = ("2025-11-01", "2025-11-02")
FIRST, COPY, OTHER = (f"https://{name}.example/" for name in ("first", "copy", "other"))


@pytest.fixture
def store(local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    """Return a root with a copy of the first day's article on the second day."""
    store_articles(local_store, DAYS[0], [article(FIRST, story(1))], tmp_path)
    later = [article(COPY, story(1)), article(OTHER, story(2))]
    store_articles(local_store, DAYS[1], later, tmp_path)
    for day in DAYS:
        build_day(local_store, day, days=14)
    return local_store


def test_an_article_is_explained_with_the_other_members(store: ObjectStore) -> None:
    keys = [(DAYS[0], FIRST), (DAYS[1], COPY), (DAYS[1], OTHER), (DAYS[0], OTHER)]
    names = cluster_names(store, [(day, "crawl", url_hash(url)) for day, url in keys])
    assert names[0] == names[1] != names[2] and names[3] is None
    whole, member = explain_clusters(store, [DAYS[0]], [url_hash(FIRST)])
    assert (whole.state, whole.details["members"]) == ("clustered", "2")
    assert (member.state, member.details["url"]) == ("duplicate", COPY)
    (single,) = explain_clusters(store, [DAYS[1]], [url_hash(OTHER)])
    assert single.state == "single" and single.text.startswith("No other article")
    (absent,) = explain_clusters(store, [DAYS[1]], ["0" * 64])
    assert absent.state == "absent" and not absent.is_known


def test_all_relations_show_the_names_of_today(tmp_path: Path) -> None:
    corpus = Corpus(open_store(str(tmp_path / "root")), tmp_path)
    news: NewsData = news_platform.open(corpus.store.url)
    corpus.add(0, {"left": LEFT})
    corpus.add(1, {"right": RIGHT}, is_feed=True)
    corpus.add(2, {"both": BOTH}, is_feed=True)
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
