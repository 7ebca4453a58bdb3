"""The Dagster asset of the search: one index per day over both article tables."""

from datetime import UTC, datetime

import dagster as dg

from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.defs.assets import dataset_asset, rebuild_rule
from news_platform.defs.checks import check, verdict
from news_platform.defs.metadata import markdown_table, run_metadata
from news_platform.defs.partitions import DAYS
from news_platform.defs.sensors import reconciling_sensor
from news_platform.resources import DataRoot, Resources
from news_platform.search.pipeline import (
    build_day,
    index_facets,
    index_problems,
    join_months,
)
from news_platform.search.publish import DATASET, index_folder
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs

_SHOWN_DOMAINS = 20


@dataset_asset(SEARCH_INDEX)
def search_index(context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """Build the indexes of days."""
    store = data_root.store
    for day in context.partition_keys:
        report = build_day(store, day, now=datetime.now(UTC))
        if report is not None:
            values = {
                "dagster/partition_row_count": report.articles,
                "dagster/uri": store.uri(index_folder(day)),
                "files": report.files,
                "bytes": report.size_bytes,
                "top_domains": _top_domains(store, day),
            }
            metadata = run_metadata(SEARCH_INDEX, values)
            context.add_asset_metadata(metadata, partition_key=day)


def _top_domains(store: ObjectStore, day: str) -> dg.MarkdownMetadataValue:
    found = list(index_facets(store, day, "domain").items())
    return markdown_table(("domain", "articles"), found[:_SHOWN_DOMAINS])


@check(
    DATASET,
    built=lambda resources: built_inputs(resources.data_root.store, SEARCH_INDEX),
    partitions_def=DAYS,
)
def every_article_is_indexed(resources: Resources, key: str) -> dg.AssetCheckResult:
    """The index of a day holds as many articles as both tables have, each address once.

    If red: files of the index were deleted or changed manually; materialize the day again.
    """
    return verdict(list(index_problems(resources.data_root.store, key)))


CHECKS = (every_article_is_indexed,)


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Builds one index for each month that ended seven days "
    "before the newest day, and deletes indexes that no day names any more.",
)
def join_search_months(
    context: dg.OpExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """Join the indexes of old days, month by month."""
    after_days = data_root.settings.search.months_after_days
    done = {
        month: report.articles if report is not None else 0
        for month, report in join_months(
            data_root.store, after_days=after_days, now=datetime.now(UTC)
        )
    }
    context.add_output_metadata({"months": len(done), "articles": sum(done.values())})


@dg.job(
    description="Join the search indexes of old days into months.",
    executor_def=dg.in_process_executor,
)
def maintain_search() -> None:
    """Run the nightly maintenance of the search."""
    join_search_months()


@dg.schedule(
    job=maintain_search,
    cron_schedule="40 3 * * *",
    description="Joins the search indexes of old days into months every night.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def maintain_search_every_night(
    data_root: dg.ResourceParam[DataRoot],
) -> dg.RunRequest | dg.SkipReason:
    """Request one run of the maintenance."""
    if is_paused(data_root.store):
        return dg.SkipReason("paused: run `news-platform resume` to start all sensors again")
    return dg.RunRequest()


RULES = (rebuild_rule(SEARCH_INDEX),)

defs = dg.Definitions(
    assets=[search_index],
    asset_checks=[one.definition for one in CHECKS],
    sensors=[reconciling_sensor(rule) for rule in RULES],
    jobs=[maintain_search],
    schedules=[maintain_search_every_night],
)
