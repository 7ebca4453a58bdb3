"""The Dagster asset of the search: one index per day over both article tables."""

from collections.abc import Iterable
from datetime import UTC, datetime

import dagster as dg

from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.defs.assets import PartitionMetadata, dataset_asset, rebuild_rule
from news_platform.defs.checks import check
from news_platform.defs.metadata import markdown_table
from news_platform.defs.rebuild_rules import Platform
from news_platform.defs.sensors import nightly_job
from news_platform.resources import Resources
from news_platform.search.pipeline import build_day, index_facets, index_problems, join_months
from news_platform.search.publish import index_folder

_SHOWN_DOMAINS = 20


@dataset_asset(SEARCH_INDEX)
def search_index(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Build the indexes of days."""
    store = platform.data_root.store
    for day in context.partition_keys:
        report = build_day(store, day, now=datetime.now(UTC))
        if report is not None:
            domains = list(index_facets(store, day, "domain").items())[:_SHOWN_DOMAINS]
            yield (
                day,
                {
                    "dagster/partition_row_count": report.articles,
                    "dagster/uri": store.uri(index_folder(day)),
                    "files": report.files,
                    "bytes": report.size_bytes,
                    "top_domains": markdown_table(("domain", "articles"), domains),
                },
            )


@check(SEARCH_INDEX)
def every_article_is_indexed(resources: Resources, key: str) -> Iterable[str]:
    """The index of a day holds as many articles as both tables have, each address once.

    If red: files of the index were deleted or changed manually; materialize the day again.
    """
    return index_problems(resources.data_root.store, key)


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Builds one index for each month that ended seven days "
    "before the newest day, and deletes indexes that no day names any more.",
)
def join_search_months(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Join the indexes of old days, month by month."""
    after_days = platform.settings.search.months_after_days
    joined = join_months(platform.data_root.store, after_days=after_days, now=datetime.now(UTC))
    articles = [report.articles if report is not None else 0 for _, report in joined]
    context.add_output_metadata({"months": len(articles), "articles": sum(articles)})


maintain_search, maintain_search_every_night = nightly_job(
    join_search_months,
    name="maintain_search",
    cron="40 3 * * *",
    description="Join the search indexes of old days into months.",
)

SEARCH_RULE = rebuild_rule(SEARCH_INDEX)
