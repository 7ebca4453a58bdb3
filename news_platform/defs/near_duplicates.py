"""Dagster assets of near-identical texts: the pages of each crawl day, and all articles."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial

import dagster as dg
import polars as pl

from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    near_duplicates_path,
)
from news_platform.defs import ccnews_checks
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partition_checks import check, red_reasons, require_green, verdict
from news_platform.defs.partitions import DAYS, SEVEN_A_RUN
from news_platform.defs.planning import Hold
from news_platform.defs.reconcile import reconciling_sensor
from news_platform.defs.settled import unsettled
from news_platform.defs.staleness import Fingerprints, Parent, Staleness, same_partition
from news_platform.domain_store.reading.batches import iter_warc_frames
from news_platform.near_duplicates.pipeline import (
    built_articles,
    built_days,
    cluster_articles,
    cluster_day,
    day_problems,
    wanted_articles,
    wanted_days,
)
from news_platform.resources import DataRoot, Ledger, Resources
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
    require_green(context.instance, ccnews_checks.CHECKS, context.partition_keys)
    store = data_root.store
    for day in context.partition_keys:
        report = cluster_day(store, day, expired_rows=partial(iter_warc_frames, store))
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


@check(
    "near_duplicates",
    built=lambda resources: built_days(resources.data_root.store),
    partitions_def=DAYS,
)
def every_member_has_a_twin(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Every page is in one cluster, with at least one other page that is near-identical to it.

    If red: the file was changed manually or by another version; materialize the day again.
    """
    store = resources.data_root.store
    # A day whose pages are gone has no clusters, and nothing that could be wrong.
    return verdict(list(day_problems(store, key)) if key in built_days(store) else [])


CHECKS = (every_member_has_a_twin,)


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


def _unsettled(resources: Resources, stale: Fingerprints, now: datetime) -> Mapping[str, Hold]:
    return unsettled(resources, stale, built_days(resources.data_root.store), now)


PAGES_STALENESS = Staleness.by_fingerprint(
    "near_duplicates",
    wanted_days,
    built_days,
    parents=(Parent("raw_news", same_partition, red=red_reasons(ccnews_checks.CHECKS)),),
    partitions=DAYS,
    per_run=7,
    holds=_unsettled,
)
ARTICLES_STALENESS = Staleness.by_fingerprint(
    "article_clusters", wanted_articles, built_articles, parents=(Parent("articles"),)
)
STALENESS = (PAGES_STALENESS, ARTICLES_STALENESS)

PAGES_SENSOR = reconciling_sensor(PAGES_STALENESS)

defs = dg.Definitions(
    assets=[near_duplicates, article_clusters],
    asset_checks=[one.definition for one in CHECKS],
    sensors=[
        PAGES_SENSOR,
        reconciling_sensor(ARTICLES_STALENESS, interval_seconds=_ARTICLES_INTERVAL_SECONDS),
    ],
)
