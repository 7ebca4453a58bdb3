"""Clusters as SQL and Python read them: under today's names, and under the old relations."""

from pathlib import Path

import pytest

import news_platform
from news_platform.api import NewsData
from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    TEXT_CLUSTERS,
)
from news_platform.storage.objects.store import open_store
from news_platform_tests.near_duplicates.days import Corpus
from news_platform_tests.near_duplicates.stories import BOTH, LEFT, RIGHT


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(open_store(str(tmp_path / "root")), tmp_path)


@pytest.fixture
def news(corpus: Corpus) -> NewsData:
    opened: NewsData = news_platform.open(corpus.store.url)
    return opened


def test_all_relations_show_the_names_of_today(corpus: Corpus, news: NewsData) -> None:
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
