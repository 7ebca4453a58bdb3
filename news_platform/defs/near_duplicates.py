"""The Dagster asset of near-identical articles of both sources, over a sliding window of days."""

from collections.abc import Iterable
from dataclasses import asdict

import dagster as dg
import polars as pl

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.defs.assets import PartitionMetadata, dataset_asset, rebuild_rule
from news_platform.defs.checks import check
from news_platform.defs.metadata import preview
from news_platform.defs.planning import Limits
from news_platform.defs.rebuild_rules import Platform
from news_platform.near_duplicates.candidates import THRESHOLD
from news_platform.near_duplicates.pipeline import (
    build_day,
    clustered_days,
    wanted_days,
)
from news_platform.resources import Resources
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table

_SHOWN_CLUSTERS = 10
# The newest days that the nightly checks read again; older ones do not change.
_CHECKED_DAYS = 60
# Articles of feeds arrive every few minutes; their clusters may be an hour behind. One run at a
# time, because a day is built from the results of the days before it.
_LIMITS = Limits(runs=1, per_run=NEAR_DUPLICATES.per_run, spacing_seconds=3600)


@dataset_asset(NEAR_DUPLICATES)
def near_duplicates(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Cluster the articles of days by their MinHash bands."""
    store, settings = platform.data_root.store, platform.settings.corpus
    # In order: a day takes over the names of the days before it.
    for day in sorted(context.partition_keys):
        report = build_day(store, day, days=settings.cluster_days, scratch=settings.scratch)
        if report is not None:
            yield (
                day,
                {
                    **asdict(report),
                    "dagster/partition_row_count": report.articles,
                    "dagster/uri": store.uri(NEAR_DUPLICATES.place.path(date=day)),
                    "largest_clusters": _largest(_rows(store, day)),
                },
            )


def _rows(store: ObjectStore, day: str) -> pl.DataFrame:
    return read_table(store, NEAR_DUPLICATES.place.path(date=day), NEAR_DUPLICATES)


def _largest(rows: pl.DataFrame) -> dg.MarkdownMetadataValue:
    largest = (
        rows.group_by("cluster_id")
        .agg(
            pl.col("cluster_size", "first_seen_at").first(),
            pl.col("jaccard").mean().round(3),
        )
        .sort(["cluster_size", "cluster_id"], descending=[True, False])
        .head(_SHOWN_CLUSTERS)
    )
    return preview(NEAR_DUPLICATES, largest)


@check(NEAR_DUPLICATES, newest=_CHECKED_DAYS)
def every_article_has_one_cluster(resources: Resources, key: str) -> Iterable[str]:
    """Every article of a day has one cluster, and no cluster begins after its articles.

    If red: the file was changed manually or by another version; materialize the day again.
    """
    wrong = {
        "in two clusters": pl.struct("url_hash", "source").is_duplicated(),
        "without a cluster": pl.col("cluster_id").is_null(),
        "older than their cluster": pl.col("first_seen_at") > pl.col("seen_at"),
    }
    return _problems(resources, key, wrong)


@check(NEAR_DUPLICATES, newest=_CHECKED_DAYS)
def every_member_has_a_twin(resources: Resources, key: str) -> Iterable[str]:
    """Every article with a near-duplicate is in a cluster of at least two, and similar enough.

    If red: the file was changed manually or by another version; materialize the day again.
    """
    size = pl.len().over("cluster_id")
    wrong = {
        "alone in their cluster": pl.col("jaccard").is_not_null() & (pl.col("cluster_size") < 2),
        "with a Jaccard below the threshold": pl.col("jaccard") < THRESHOLD,
        "with a wrong cluster size": size > pl.col("cluster_size"),
    }
    return _problems(resources, key, wrong)


def _problems(resources: Resources, day: str, wrong: dict[str, pl.Expr]) -> list[str]:
    store = resources.data_root.store
    # A day whose articles are gone has no clusters, and nothing that could be wrong.
    if day not in clustered_days(store):
        return []
    rows = _rows(store, day)
    counts = {text: rows.filter(rule).height for text, rule in wrong.items()}
    return [f"{day}: {count} articles: {text}" for text, count in counts.items() if count]


RULE = rebuild_rule(
    NEAR_DUPLICATES,
    wanted=lambda it: wanted_days(it.data_root.store, days=it.settings.corpus.cluster_days),
    limits=lambda _: _LIMITS,
)
