"""Dagster assets of near-identical texts: the pages of each crawl day, and all articles."""

from collections.abc import Mapping
from dataclasses import asdict

import dagster as dg
import polars as pl

from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    near_duplicates_path,
)
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partitions import DAYS, SEVEN_A_RUN
from news_platform.defs.reconcile import reconciling_sensor
from news_platform.defs.staleness import Staleness
from news_platform.near_duplicates.pipeline import (
    built_articles,
    built_days,
    cluster_articles,
    cluster_day,
    day_problems,
    wanted_articles,
    wanted_days,
)
from news_platform.resources import DataRoot, Ledger
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table

GROUP = "near_duplicates"
OWNERS = ["team:near_duplicates"]
# Articles arrive every five minutes; their clusters may be an hour behind.
_ARTICLES_INTERVAL_SECONDS = 3600
_SHOWN_CLUSTERS = 10


@dg.asset(
    partitions_def=DAYS,
    deps=["raw_news"],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet"},
    backfill_policy=SEVEN_A_RUN,
    metadata=table_metadata(NEAR_DUPLICATES),
)
def near_duplicates(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """Pages of a day with near-identical texts: agency copies, syndication, updates.

    Candidate pairs share MinHash bands. A page belongs to a cluster if it shares at least four
    fifths of its three-word runs with a member.
    """
    store = data_root.store
    for day in context.partition_keys:
        report = cluster_day(store, day)
        if report is not None:
            metadata = {**_counts(asdict(report)), **_shown(store, day)}
            context.add_asset_metadata(metadata, partition_key=day)


def _counts(report: Mapping[str, int]) -> Mapping[str, int]:
    return {"dagster/partition_row_count": report["members"], **report}


def _shown(store: ObjectStore, day: str) -> Mapping[str, object]:
    frame = read_table(store, near_duplicates_path(day), NEAR_DUPLICATES)
    largest = (
        frame.group_by("cluster_id")
        .agg(pl.len().alias("pages"), pl.col("jaccard").mean().round(3), pl.col("uri").min())
        .sort(["pages", "cluster_id"], descending=[True, False])
        .head(_SHOWN_CLUSTERS)
    )
    return {
        "dagster/uri": store.uri(near_duplicates_path(day)),
        **column_lineage("near_duplicates"),
        "largest_clusters": markdown_table(largest.columns, largest.iter_rows()),
    }


@dg.asset_check(asset=near_duplicates)
def every_member_has_a_twin(
    context: dg.AssetCheckExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.AssetCheckResult:
    """Every page is in one cluster, with at least one other page that is near-identical to it.

    If red: the file was changed manually or by another version; materialize the day again.
    """
    store = data_root.store
    days = context.partition_keys if context.has_partition_key else sorted(built_days(store))[-1:]
    problems = [text for day in days for text in day_problems(store, day)]
    return dg.AssetCheckResult(
        passed=not problems, metadata={"problems": len(problems), "first": "\n".join(problems[:5])}
    )


@dg.asset(
    deps=["articles"],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"sql", "parquet"},
    metadata=table_metadata(ARTICLE_CLUSTERS),
)
def article_clusters(
    data_root: dg.ResourceParam[DataRoot], ledger: dg.ResourceParam[Ledger]
) -> dg.MaterializeResult[None]:
    """Every stored article with its cluster of near-identical articles, over all days.

    A new article is compared with all earlier ones through the band table in the ledger. A cluster
    keeps the name of its first article.
    """
    store = data_root.store
    report = cluster_articles(store, engine=ledger.engine)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": report.articles,
            "dagster/uri": store.uri(ARTICLE_CLUSTERS.path),
            **column_lineage("article_clusters"),
            "largest_clusters": _largest_articles(store),
            **asdict(report),
        }
    )


def _largest_articles(store: ObjectStore) -> dg.MarkdownMetadataValue:
    frame = read_table(store, ARTICLE_CLUSTERS.path, ARTICLE_CLUSTERS)
    largest = (
        frame.unique("cluster_id")
        .sort(["cluster_size", "cluster_id"], descending=[True, False])
        .select("cluster_id", "cluster_size")
        .head(_SHOWN_CLUSTERS)
    )
    return markdown_table(largest.columns, largest.iter_rows())


PAGES_STALENESS = Staleness.by_fingerprint("near_duplicates", wanted_days, built_days)
ARTICLES_STALENESS = Staleness.by_fingerprint("article_clusters", wanted_articles, built_articles)
STALENESS = (PAGES_STALENESS, ARTICLES_STALENESS)

defs = dg.Definitions(
    assets=[near_duplicates, article_clusters],
    asset_checks=[every_member_has_a_twin],
    sensors=[
        reconciling_sensor(PAGES_STALENESS),
        reconciling_sensor(ARTICLES_STALENESS, interval_seconds=_ARTICLES_INTERVAL_SECONDS),
    ],
)
