"""The Dagster asset of clusters of near-identical articles over a sliding window of days."""

from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg
import polars as pl

from news_platform.datasets.text_clusters import TEXT_CLUSTERS, clusters_path
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partition_checks import check, verdict
from news_platform.defs.partitions import DAYS, SEVEN_A_RUN
from news_platform.defs.staleness import Fingerprints, Parent, Staleness, same_partition
from news_platform.near_duplicates.window import day_clusters, read_clusters, window_days
from news_platform.near_duplicates.window_days import (
    build_window_day,
    built_window_days,
    wanted_window_days,
)
from news_platform.resources import DataRoot, Resources
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore

GROUP = "near_duplicates"
OWNERS = ["team:near_duplicates"]
_SHOWN_CLUSTERS = 10
# The newest days that the nightly check reads again; older ones do not change.
_CHECKED_DAYS = 60


@dg.asset(
    partitions_def=DAYS,
    deps=["crawl_articles", "article_table"],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet", "duckdb"},
    backfill_policy=SEVEN_A_RUN,
    metadata=table_metadata(TEXT_CLUSTERS),
)
def text_clusters(context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """Articles of a day and their clusters among both sources, over a window of days.

    A cluster keeps the name of its oldest article; clusters that an article joins go on under the
    older name. Readers resolve names when they ask.
    """
    store, settings = data_root.store, data_root.settings.corpus
    # In order: a day takes over the names of the days before it.
    for day in sorted(context.partition_keys):
        report = build_window_day(store, day, days=settings.cluster_days, scratch=settings.scratch)
        if report is not None:
            shown = {
                "dagster/partition_row_count": report.articles,
                "dagster/uri": store.uri(clusters_path(day)),
                "largest_clusters": _largest(store, day, days=settings.cluster_days),
                **column_lineage(TEXT_CLUSTERS.name),
            }
            context.add_asset_metadata({**asdict(report), **shown}, partition_key=day)


def _largest(store: ObjectStore, day: str, *, days: int) -> dg.MarkdownMetadataValue:
    rows = read_clusters(store, [*window_days(day, days), day])
    largest = (
        rows.group_by("cluster_id")
        .agg(pl.col("members", "sources", "first_seen_at").first(), pl.col("url").min())
        .sort(["members", "cluster_id"], descending=[True, False])
        .head(_SHOWN_CLUSTERS)
    )
    return markdown_table(largest.columns, largest.iter_rows())


def _stale(resources: Resources) -> Fingerprints:
    store, days = resources.data_root.store, resources.settings.corpus.cluster_days
    return stale_partitions(wanted_window_days(store, days=days), built_window_days(store))


@check(
    TEXT_CLUSTERS.name,
    built=lambda resources: sorted(built_window_days(resources.data_root.store))[-_CHECKED_DAYS:],
    partitions_def=DAYS,
)
def every_article_has_one_cluster(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Every article of a day has one cluster, and no cluster begins after its articles.

    If red: the file was changed manually or by another version; materialize the day again.
    """
    store = resources.data_root.store
    return verdict(list(_problems(store, key)) if key in built_window_days(store) else [])


def _problems(store: ObjectStore, day: str) -> Iterator[str]:
    rows = day_clusters(store, day)
    wrong = {
        "has two clusters": pl.struct("url_hash", "source").is_duplicated(),
        "has no cluster": pl.col("cluster_id").is_null(),
        "is older than its cluster": pl.col("first_seen_at") > pl.col("seen_at"),
    }
    for text, rule in wrong.items():
        yield from (f"{day}: {url} {text}" for url in rows.filter(rule)["url"])


CHECKS = (every_article_has_one_cluster,)

STALENESS = Staleness(
    TEXT_CLUSTERS.name,
    _stale,
    parents=(Parent("crawl_articles", same_partition), Parent("article_table", same_partition)),
    partitions=DAYS,
    per_run=7,
    sensor=f"follow_{TEXT_CLUSTERS.name}",
)
