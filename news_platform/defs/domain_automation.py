"""Sensors and schedules of the survey: new files, new catalogs, nightly retries, resurveys."""

import dagster as dg

from news_platform.composition.survey_stages import resurvey_plan
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.defs.partitions import RESEARCH_BATCHES
from news_platform.defs.rebuild_rules import Platform
from news_platform.defs.runs import Work
from news_platform.defs.sensors import observe_changes, skip_reason
from news_platform.domain_metadata.generated_research import (
    CATALOG_PATH,
    estimate_catalog,
    read_catalog,
    seed_from_catalog,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import raw_batches
from news_platform.domain_metadata.resurvey import (
    write_plan,
)

# At most this many batches per night, newest first; older ones must be materialized manually.
_RETRIED_BATCHES = 50


@dg.sensor(
    name="watch_research_datasets",
    description="Adds a partition for every batch of research files, and observes changed files.",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def watch_research_datasets(
    context: dg.SensorEvaluationContext, platform: Platform
) -> dg.SensorResult | dg.SkipReason:
    """Compare the research files with those of the last tick."""
    if reason := skip_reason(platform.data_root.store):
        return reason
    store = platform.data_root.store
    return observe_changes(
        context, store, "research_datasets", raw_batches(store), RESEARCH_BATCHES
    )


@dg.op
def seed_catalog(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Write research files for domains that the crawl has newly seen."""
    store, given = platform.data_root.store, platform.settings.domain_metadata
    per_day, catalog = given.catalog_domains_per_day, read_catalog(store)
    estimate = estimate_catalog(
        catalog, store=store, per_day=per_day, concurrency=given.survey_concurrency
    )
    context.log.info("estimate of the survey: %s", estimate)
    report = seed_from_catalog(catalog, store=store, per_day=per_day)
    context.log.info("wrote %d new domains to %d files", report.domains, len(report.files))


@dg.job(executor_def=dg.in_process_executor)
def seed_catalog_domains() -> None:
    """Write research files for domains that the crawl has newly seen."""
    seed_catalog()


@dg.sensor(
    job_name="seed_catalog_domains",
    description="Adds the domains of a new catalog to the survey, if the settings enable it.",
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def survey_catalog_domains(platform: Platform) -> dg.RunRequest | dg.SkipReason:
    """Request `seed_catalog_domains` for a new catalog, if the settings enable it."""
    if reason := skip_reason(platform.data_root.store):
        return reason
    if platform.settings.domain_metadata.catalog_domains_per_day <= 0:
        estimate = "`news-platform domains estimate --per-day N` says what it would take"
        return dg.SkipReason(f"disabled: NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY is 0; {estimate}")
    catalog = platform.data_root.store.find(CATALOG_PATH)
    if catalog is None:
        return dg.SkipReason("domain_catalog is not built yet")
    return dg.RunRequest(run_key=f"catalog@{catalog.etag}")


@dg.schedule(
    cron_schedule="30 3 * * *",
    description="Surveys the domains of recent batches that did not answer again, every night.",
    target=dg.AssetSelection.assets("domain_metadata"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def retry_unfinished_domains(
    context: dg.ScheduleEvaluationContext, platform: Platform
) -> list[dg.RunRequest] | dg.SkipReason:
    """Request the newest batches that have unfinished domains."""
    if reason := skip_reason(platform.data_root.store):
        return reason
    states = DomainQueue(platform.ledger.engine).states()
    # A batch imported while the sensors were off is not a partition yet and would fail the tick.
    known = set(context.instance.get_dynamic_partitions(str(RESEARCH_BATCHES.name)))
    unfinished = [key for key, counts in states.items() if counts["unfinished"] and key in known]
    newest = sorted(unfinished, key=lambda key: PartitionInfo.parse(key).date, reverse=True)
    day = context.scheduled_execution_time.date()
    building = Work.read(context.instance).builders("domain_metadata", newest, newest)
    return [
        dg.RunRequest(
            run_key=f"{key}@{day}",
            partition_key=key,
            asset_selection=[dg.AssetKey("domain_metadata")],
        )
        for key in newest[:_RETRIED_BATCHES]
        if key not in building
    ]


@dg.op
def write_resurvey_plan(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Write research files for the domains whose next survey is due."""
    plan, queue = resurvey_plan(platform), DomainQueue(platform.ledger.engine)
    files = write_plan(plan, store=platform.data_root.store, queue=queue)
    context.log.info("planned %d of %d due domains", len(plan.chosen), plan.due)
    context.add_output_metadata(
        {"due": plan.due, "planned": len(plan.chosen), "late": plan.late, "files": len(files)}
    )


@dg.job(executor_def=dg.in_process_executor)
def plan_domain_resurveys() -> None:
    """Write research files for the domains whose next survey is due."""
    write_resurvey_plan()


@dg.schedule(
    job=plan_domain_resurveys,
    # Every six hours: a domain is surveyed at most so much later than its interval.
    cron_schedule="40 */6 * * *",
    description="Surveys domains again: weekly, sooner after a change, fair across countries.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def resurvey_due_domains(platform: Platform) -> dg.RunRequest | dg.SkipReason:
    """Request a plan if domains are due and the budget of the day is not used up."""
    if reason := skip_reason(platform.data_root.store):
        return reason
    if platform.settings.domain_metadata.resurvey_days <= 0:
        return dg.SkipReason("disabled: NEWS_PLATFORM_RESURVEY_DAYS is 0")
    plan = resurvey_plan(platform)
    if plan.chosen:
        return dg.RunRequest(tags={"due": str(plan.due), "planned": str(len(plan.chosen))})
    if plan.due:
        return dg.SkipReason(
            f"{plan.due} domains are due, but {plan.planned_before} were planned today already: "
            "NEWS_PLATFORM_RESURVEYS_PER_DAY"
        )
    upcoming = f"the next one on {plan.next_due_at:%Y-%m-%d %H:%M}" if plan.next_due_at else "none"
    return dg.SkipReason(f"none of {plan.domains} domains is due; {upcoming}")
