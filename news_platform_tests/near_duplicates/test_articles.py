"""Clusters of stored articles, over days and runs."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from news_platform.datasets.near_duplicates import ARTICLE_CLUSTERS
from news_platform.near_duplicates.bands import METADATA
from news_platform.near_duplicates.pipeline import (
    built_articles,
    cluster_articles,
    read_clusters,
    wanted_articles,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.sql.engine import open_engine
from news_platform_tests.near_duplicates.rows import export_articles
from news_platform_tests.near_duplicates.stories import story, variant


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    opened = open_engine(f"sqlite:///{tmp_path}/ledger.sqlite")
    METADATA.create_all(opened)
    yield opened
    opened.dispose()


def shown(store: ObjectStore) -> pl.DataFrame:
    return read_table(store, ARTICLE_CLUSTERS.path, ARTICLE_CLUSTERS)


def test_articles_of_different_days_share_a_cluster(
    local_store: ObjectStore, engine: sa.Engine
) -> None:
    export_articles(local_store, "2025-11-01", {"h1": story(1), "h2": story(2), "h3": "short"})
    export_articles(local_store, "2025-11-02", {"h4": variant(1, changed=4)})
    report = cluster_articles(local_store, engine=engine)
    assert (report.days, report.judged, report.joined) == (2, 3, 1)
    assert (report.articles, report.clusters, report.largest) == (3, 1, 2)
    found = shown(local_store)
    assert found["url_hash"].to_list() == ["h1", "h2", "h4"]
    assert found["cluster_size"].to_list() == [2, 1, 2]
    assert found["jaccard"].is_null().to_list() == [True, True, False]
    assert found.equals(read_clusters(engine))


def test_only_days_that_changed_are_judged_again(
    local_store: ObjectStore, engine: sa.Engine
) -> None:
    assert wanted_articles(local_store) == {}
    export_articles(local_store, "2025-11-01", {"h1": story(1)})
    cluster_articles(local_store, engine=engine)
    assert built_articles(local_store) == wanted_articles(local_store)
    export_articles(local_store, "2025-11-02", {"h2": story(1).upper()})
    assert built_articles(local_store) != wanted_articles(local_store)
    report = cluster_articles(local_store, engine=engine)
    assert (report.days, report.judged, report.joined) == (1, 1, 1)
    assert built_articles(local_store) == wanted_articles(local_store)


def test_a_second_run_changes_nothing(local_store: ObjectStore, engine: sa.Engine) -> None:
    export_articles(local_store, "2025-11-01", {"h1": story(1), "h2": story(1)})
    cluster_articles(local_store, engine=engine)
    before = local_store.read(ARTICLE_CLUSTERS.path)
    report = cluster_articles(local_store, engine=engine)
    assert (report.days, report.judged) == (0, 0)
    assert local_store.read(ARTICLE_CLUSTERS.path) == before


def test_a_revised_article_finds_its_new_cluster(
    local_store: ObjectStore, engine: sa.Engine
) -> None:
    export_articles(local_store, "2025-11-01", {"h1": story(1), "h2": story(2)})
    cluster_articles(local_store, engine=engine)
    export_articles(local_store, "2025-11-01", {"h1": story(1), "h2": variant(1, changed=3)})
    assert cluster_articles(local_store, engine=engine).joined == 1
    assert shown(local_store)["cluster_id"].n_unique() == 1


def test_no_articles_give_an_empty_table(local_store: ObjectStore, engine: sa.Engine) -> None:
    assert cluster_articles(local_store, engine=engine).articles == 0
    assert shown(local_store).is_empty()
