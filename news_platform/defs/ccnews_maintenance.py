"""The nightly maintenance of the crawl in Dagster: one job and its schedule."""

import dagster as dg

from news_platform.ccnews import maintenance
from news_platform.defs.metadata import markdown_table
from news_platform.defs.sensors import skip_reason
from news_platform.resources import Clock, Crawl, DataRoot


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Finds WARCs of the newest days that were published again, which the sensor then "
    "collects again; combines the markers of old months; deletes expired dropped_responses.",
)
def recheck_crawl(
    context: dg.OpExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    crawl: dg.ResourceParam[Crawl],
    clock: dg.ResourceParam[Clock],
) -> None:
    """Run the maintenance once."""
    settings = data_root.settings.ccnews
    report = maintenance.maintain_crawl(
        data_root.store,
        crawl=crawl.sources,
        now=clock.now(),
        recheck_days=settings.recheck_days,
        dropped_days=settings.dropped_days,
    )
    rows = [(one.day, one.warc, one.collected_bytes, one.source_bytes) for one in report.changed]
    context.add_output_metadata(
        {
            "days_checked": report.checked_days,
            "changed": markdown_table(["day", "WARC", "bytes before", "bytes now"], rows),
            "markers_combined": report.markers_combined,
            "dropped_files_deleted": report.dropped_files_deleted,
        }
    )


@dg.job(
    description="Detect WARCs that were published again, and combine the crawl's markers.",
    executor_def=dg.in_process_executor,
)
def maintain_crawl() -> None:
    """Run the nightly maintenance of the crawl."""
    recheck_crawl()


@dg.schedule(
    job=maintain_crawl,
    cron_schedule="30 2 * * *",
    description="Detects WARCs of the newest days that were published again, every night.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def maintain_crawl_every_night(
    data_root: dg.ResourceParam[DataRoot],
) -> dg.RunRequest | dg.SkipReason:
    """Request one run of the maintenance."""
    if reason := skip_reason(data_root.store):
        return reason
    return dg.RunRequest()
