"""The Dagster asset of the search: one index per day over both article tables."""

from datetime import UTC, datetime

import dagster as dg

from news_platform.datasets.corpus import ARTICLE_TABLE, CRAWL_ARTICLES
from news_platform.datasets.search_index import SEARCH_INDEX
from news_platform.defs.metadata import markdown_table, table_metadata
from news_platform.defs.partition_checks import check, verdict
from news_platform.defs.partitions import DAYS, SEVEN_A_RUN
from news_platform.defs.reconcile import reconciling_sensor
from news_platform.defs.staleness import Parent, Staleness, same_partition
from news_platform.resources import DataRoot, Resources
from news_platform.search.pipeline import (
    build_day,
    built_days,
    index_facets,
    index_problems,
    wanted_days,
)
from news_platform.search.stored import DATASET, index_folder
from news_platform.storage.objects.store import ObjectStore

GROUP = "search"
_SHOWN_DOMAINS = 20


@dg.asset(
    partitions_def=DAYS,
    deps=[CRAWL_ARTICLES.name, ARTICLE_TABLE.name],
    group_name=GROUP,
    owners=[f"team:{GROUP}"],
    kinds={"tantivy"},
    backfill_policy=SEVEN_A_RUN,
    metadata=table_metadata(SEARCH_INDEX),
)
def search_index(context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """Full-text index of the articles of one day: title, text, authors, section and facts.

    An index is never changed: a new build takes the place of the old one in one step.
    """
    store = data_root.store
    for day in context.partition_keys:
        report = build_day(store, day, now=datetime.now(UTC))
        if report is not None:
            metadata = {
                "dagster/partition_row_count": report.articles,
                "dagster/uri": store.uri(index_folder(day)),
                "files": report.files,
                "bytes": report.size_bytes,
                "top_domains": _top_domains(store, day),
            }
            context.add_asset_metadata(metadata, partition_key=day)


def _top_domains(store: ObjectStore, day: str) -> dg.MarkdownMetadataValue:
    found = list(index_facets(store, day, "domain").items())
    return markdown_table(("domain", "articles"), found[:_SHOWN_DOMAINS])


@check(DATASET, built=lambda resources: built_days(resources.data_root.store), partitions_def=DAYS)
def every_article_is_indexed(resources: Resources, key: str) -> dg.AssetCheckResult:
    """The index of a day holds as many articles as both tables have, each address once.

    If red: files of the index were deleted or changed manually; materialize the day again.
    """
    return verdict(list(index_problems(resources.data_root.store, key)))


CHECKS = (every_article_is_indexed,)

STALENESS = (
    Staleness.by_fingerprint(
        DATASET,
        wanted_days,
        built_days,
        parents=(
            Parent(CRAWL_ARTICLES.name, same_partition),
            Parent(ARTICLE_TABLE.name, same_partition),
        ),
        partitions=DAYS,
        per_run=7,
    ),
)

defs = dg.Definitions(
    assets=[search_index],
    asset_checks=[one.definition for one in CHECKS],
    sensors=[reconciling_sensor(staleness) for staleness in STALENESS],
)
