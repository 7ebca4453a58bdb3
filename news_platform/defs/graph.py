"""The whole graph: every feature's definitions, jobs, the build order and Dagster resources.

A job builds its assets in the order of the graph for one set of partitions. Sensors do the same
automatically; jobs are for backfills, for builds that should not wait, and for a look at one part
of the graph.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import dagster as dg

from news_platform.defs import (
    alerts,
    ccnews,
    domain_metadata,
    domain_store,
    near_duplicates,
    rss,
    sheets,
    source_records,
)
from news_platform.defs.staleness import Staleness
from news_platform.resources import Resources

FEATURES = (
    ccnews.defs,
    domain_store.defs,
    domain_metadata.defs,
    rss.defs,
    sheets.defs,
    near_duplicates.defs,
    source_records.defs,
)


@dataclass(frozen=True, slots=True)
class Task:
    """The purpose of a job and the assets that it builds."""

    purpose: str
    assets: tuple[str, ...]


TASKS: Mapping[str, Task] = {
    "backfill_crawl_days": Task(
        "Collect days of the crawl; the sensors then build what depends on them.",
        ("raw_news",),
    ),
    "regroup_crawl_days": Task(
        "Stage collected days by domain again, and find their near-duplicates again.",
        ("domain_buckets", "near_duplicates"),
    ),
    "merge_days_into_store": Task(
        "Merge new batches into ranges of the domain store.", ("domain_store",)
    ),
    "list_known_domains": Task("Write the catalog of all domains again.", ("domain_catalog",)),
    "survey_research_batches": Task(
        "Queue the domains of research batches and fetch their robots.txt and sitemaps.",
        ("domain_queue", "domain_metadata"),
    ),
    "tabulate_surveys": Task(
        "Write the survey of a day as a table, and the changes of AI policies.",
        ("domain_metadata_table", "ai_policy_changes"),
    ),
    "read_feeds_now": Task(
        "Discover and poll feeds, fetch articles and update the sheet now.",
        ("feeds", "pending_articles", "articles", "article_clusters", "article_sheets"),
    ),
    "cut_institutions": Task(
        "Segment the page snapshots of institutions into records.", ("source_records",)
    ),
}

VIEWS: Mapping[str, str] = {
    "one feature": 'group:"ccnews"',
    "everything that depends on the crawl": 'key:"warc_paths"+',
    "sources of the editors' sheet": '+key:"article_sheets"',
    "neighbours of the robots survey": '1+key:"domain_metadata"+1',
    "tables for analysts": 'kind:"parquet"',
    "third-party texts, to be handled with care": 'tag:"sensitivity"="third-party-text"',
    "assets that cost hours or gigabytes": 'tag:"cost"="high"',
    "what one team is responsible for": 'owner:"team:rss"',
}
"""Selections for the filter field above the lineage graph and the catalog."""

CHECKING = "check_newest_data"


@dg.schedule(
    job_name=CHECKING,
    cron_schedule="15 4 * * *",
    description="Runs all checks on the newest days every night.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def check_every_night() -> dg.RunRequest:
    """Request one run of all checks."""
    return dg.RunRequest()


def job_definitions(checks: Iterable[dg.AssetChecksDefinition]) -> dg.Definitions:
    """Build one job per task, and one that runs all checks that can run without their asset."""
    keys = [key for check in checks for key in check.check_keys]
    checking = dg.define_asset_job(
        CHECKING,
        selection=dg.AssetSelection.checks(*keys),
        description="Run all checks on the newest days, without building anything.",
    )
    building = [
        dg.define_asset_job(
            name, selection=dg.AssetSelection.assets(*task.assets), description=task.purpose
        )
        for name, task in TASKS.items()
    ]
    return dg.Definitions(jobs=[*building, checking], schedules=[check_every_night])


AUTOMATION = (
    alerts.defs,
    job_definitions(
        check
        for feature in FEATURES
        for check in feature.asset_checks or ()
        if isinstance(check, dg.AssetChecksDefinition)
    ),
)

BUILD_ORDER: tuple[Staleness, ...] = (
    *ccnews.STALENESS,
    *domain_store.STALENESS,
    *domain_metadata.STALENESS,
    *rss.STALENESS,
    *near_duplicates.STALENESS,
    *sheets.STALENESS,
    *source_records.STALENESS,
)
"""Every asset that is built, with its staleness, parents before children."""


def dagster_resources(resources: Resources) -> Mapping[str, object]:
    """Return the resources by the parameter names of assets and sensors.

    `platform` is all of them, for sensors and schedules that compute staleness.
    """
    return {
        "platform": resources,
        "data_root": resources.data_root,
        "crawl": resources.crawl,
        "web": resources.web,
        "ledger": resources.ledger,
        "clock": resources.clock,
    }
