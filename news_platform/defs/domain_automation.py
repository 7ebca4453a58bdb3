"""What moves the survey of domains by itself: files that come, catalogs that grow, second tries."""

import json

import dagster as dg

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.defs.reconcile import PAUSED, new_partitions
from news_platform.domain_metadata.generated_research import (
    CATALOG_PATH,
    read_catalog,
    seed_from_catalog,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import raw_batches
from news_platform.resources import DataRoot, Ledger
from news_platform.storage.commit.root import is_paused

RESEARCH_BATCHES = dg.DynamicPartitionsDefinition(name="research_batches")

# Batches that one night asks again; older ones wait until somebody does it by hand.
_RETRIED_BATCHES = 50


@dg.sensor(
    name="watch_research_datasets",
    description="Adds a partition for every batch of research files, and tells when files come.",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def watch_research_datasets(
    context: dg.SensorEvaluationContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.SensorResult | dg.SkipReason:
    """Compare the research files with what the last tick saw."""
    if is_paused(data_root.store):
        return PAUSED
    known: dict[str, str] = json.loads(context.cursor or "{}")
    found = raw_batches(data_root.store)
    changed = [key for key in sorted(found) if known.get(key) != found[key]]
    return dg.SensorResult(
        asset_events=[_observation(key, found[key]) for key in changed],
        dynamic_partitions_requests=new_partitions(context.instance, RESEARCH_BATCHES, found),
        cursor=json.dumps(found, sort_keys=True),
    )


@dg.op
def seed_catalog(context: dg.OpExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """Offer newly seen domains of the crawl to the survey, as research files of our own."""
    per_day = data_root.settings.domain_metadata.catalog_domains_per_day
    catalog = read_catalog(data_root.store)
    report = seed_from_catalog(catalog, store=data_root.store, per_day=per_day)
    context.log.info("offered %d domains in %d files", report.domains, len(report.files))


@dg.job(executor_def=dg.in_process_executor)
def seed_catalog_domains() -> None:
    """Write research files for domains that the crawl has newly seen."""
    seed_catalog()


@dg.sensor(
    job_name="seed_catalog_domains",
    description="Offers the domains of a new catalog to the survey, when the settings ask for it.",
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def survey_catalog_domains(
    context: dg.SensorEvaluationContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.RunRequest | dg.SkipReason:
    """Offer the domains of a new catalog to the survey, when the settings ask for it."""
    if is_paused(data_root.store):
        return PAUSED
    if data_root.settings.domain_metadata.catalog_domains_per_day <= 0:
        return dg.SkipReason("NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY is 0")
    catalog = data_root.store.find(CATALOG_PATH)
    if catalog is None:
        return dg.SkipReason("no catalog yet")
    return dg.RunRequest(run_key=f"catalog@{catalog.etag}")


@dg.schedule(
    cron_schedule="30 3 * * *",
    description="Asks again, every night, the domains of recent batches that did not answer.",
    target=dg.AssetSelection.assets("domain_metadata"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def retry_unfinished_domains(
    context: dg.ScheduleEvaluationContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask again, once a day, the domains of recent batches that did not answer."""
    if is_paused(data_root.store):
        return PAUSED
    states = DomainQueue(ledger.engine).states()
    # A batch imported while the sensors were off is no partition yet, and would fail the tick.
    known = set(context.instance.get_dynamic_partitions(str(RESEARCH_BATCHES.name)))
    unfinished = [key for key, counts in states.items() if counts["unfinished"] and key in known]
    newest = sorted(unfinished, key=lambda key: PartitionInfo.parse(key).date, reverse=True)
    day = context.scheduled_execution_time.date()
    return [
        dg.RunRequest(run_key=f"{key}@{day}", partition_key=key)
        for key in newest[:_RETRIED_BATCHES]
    ]


def _observation(batch: str, fingerprint: str) -> dg.AssetObservation:
    return dg.AssetObservation(
        "research_datasets", partition=batch, metadata={"fingerprint": fingerprint}
    )
