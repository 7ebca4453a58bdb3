"""Jobs and views named for what people do: backfill a day, survey a batch, read the feeds now.

A job runs its assets in the order of the graph over one set of partitions. The sensors do the same
by themselves; jobs are for backfills, for impatience and for looking at one part of the graph.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import dagster as dg


@dataclass(frozen=True, slots=True)
class Task:
    """What one job is for, and the assets it builds."""

    purpose: str
    assets: tuple[str, ...]


TASKS: Mapping[str, Task] = {
    "backfill_crawl_days": Task(
        "Collect days of the crawl; the sensors bring everything behind them.", ("raw_news",)
    ),
    "regroup_crawl_days": Task(
        "Cut collected days into buckets by domain again, and find their copies again.",
        ("domain_buckets", "near_duplicates"),
    ),
    "merge_days_into_store": Task(
        "Bring ranges of the domain store up to date.", ("domain_store",)
    ),
    "list_known_domains": Task("Write the catalog of all domains again.", ("domain_catalog",)),
    "survey_research_batches": Task(
        "Queue the domains of research batches and ask for their robots.txt and sitemaps.",
        ("domain_queue", "domain_metadata"),
    ),
    "tabulate_surveys": Task(
        "Write the survey of a day as a table, and what changed towards AI crawlers.",
        ("domain_metadata_table", "ai_policy_changes"),
    ),
    "read_feeds_now": Task(
        "Discover, poll, read and show articles, without waiting for the clock.",
        ("feeds", "pending_articles", "articles", "article_clusters", "article_sheets"),
    ),
    "cut_institutions": Task(
        "Cut the page snapshots of institutions into records.", ("source_records",)
    ),
}

VIEWS: Mapping[str, str] = {
    "one feature": 'group:"ccnews"',
    "everything that depends on the crawl": 'key:"warc_paths"+',
    "where the editors' sheet comes from": '+key:"article_sheets"',
    "neighbours of the robots survey": '1+key:"domain_metadata"+1',
    "what analysts read with Polars": 'kind:"parquet"',
    "third-party texts, to be handled with care": 'tag:"sensitivity"="third-party-text"',
    "what costs hours or gigabytes": 'tag:"cost"="high"',
    "what one team is responsible for": 'owner:"team:rss"',
}
"""Selections to type, or paste, above the lineage graph and the catalog."""

CHECKING = "check_newest_data"


@dg.schedule(
    job_name=CHECKING,
    cron_schedule="15 4 * * *",
    description="Runs all checks that read data again, over the newest days, every night.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def check_every_night() -> dg.RunRequest:
    """Ask for one run of all checks."""
    return dg.RunRequest()


def job_definitions(checks: Iterable[dg.AssetChecksDefinition]) -> dg.Definitions:
    """Build a job for every task, and one that runs all checks which need no run of their asset."""
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
