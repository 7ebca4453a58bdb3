"""The asset of near-duplicates: its description, its checks, and what it waits for."""

from pathlib import Path

import polars as pl

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.defs.near_duplicates import (
    every_article_has_one_cluster,
    every_member_has_a_twin,
)
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform_tests.near_duplicates.days import Corpus, day
from news_platform_tests.near_duplicates.stories import story, variant


def test_clusters_that_were_changed_by_hand_are_red(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    corpus = Corpus(local_store, tmp_path)
    corpus.add(0, {"a": story(1), "b": variant(1, changed=4), "c": story(2)})
    corpus.build(0)
    resources = Resources(Settings(root=local_store.url))
    checks = (every_article_has_one_cluster, every_member_has_a_twin)
    assert all(check.evaluate(resources, day(0)).passed for check in checks)
    # A removed day has nothing at all.
    assert all(check.evaluate(resources, day(9)).passed for check in checks)
    rows = corpus.rows(0)
    damages = {
        every_article_has_one_cluster: (
            {"cluster_id": pl.lit(None, dtype=pl.String)},
            {"url_hash": pl.col("url_hash").first()},
            {"first_seen_at": pl.col("seen_at").dt.offset_by("1h")},
        ),
        every_member_has_a_twin: (
            {"cluster_size": pl.lit(1)},
            {"jaccard": pl.lit(0.5)},
            {"cluster_id": pl.lit("one")},
        ),
    }
    for check, changes in damages.items():
        for change in changes:
            damaged = rows.with_columns(**change)
            write_table(
                local_store, NEAR_DUPLICATES.place.path(date=day(0)), damaged, NEAR_DUPLICATES
            )
            assert not check.evaluate(resources, day(0)).passed, change
