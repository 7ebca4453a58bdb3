"""The asset and schedule that show the ledger to editors, in a Google Sheet or a workbook."""

import time
from typing import TYPE_CHECKING, Any

import dagster as dg

from news_platform.datasets.feeds import ARTICLE_SHEETS
from news_platform.defs.assets import dataset_asset
from news_platform.defs.metadata import markdown_table, run_metadata
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.runs import run_under_way, scheduled_run
from news_platform.defs.sensors import skip_reason
from news_platform.resources import (
    Clock,
    DataRoot,
    Ledger,
    Resources,
    Web,
    analysis_options,
    discovery_options,
    sheets_access,
    sync_options,
    workbook_options,
)
from news_platform.rss import pipeline
from news_platform.rss.analyses import (
    AnalysisReport,
    analyse_articles,
    has_unanalysed,
)
from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.rss.sheets.outbox import is_behind
from news_platform.rss.sheets.workbook import WorkbookReport, is_stale, write_workbook
from news_platform.takedowns.build_filters import obeying

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


@dataset_asset(ARTICLE_SHEETS, pool="sheets")
def article_sheets(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
) -> dg.MaterializeResult[None]:
    """Bring the Google Sheet or the workbook up to date."""
    access = _access(data_root)
    analysed = _analyse(ledger, data_root, clock)
    if access is None:
        report = write_workbook(
            ledger.engine, data_root.store, workbook_options(data_root.settings)
        )
        metadata = _workbook_metadata(data_root, report)
        return dg.MaterializeResult(
            metadata=run_metadata(ARTICLE_SHEETS, metadata | _analysis_metadata(analysed))
        )
    # Imported here because gspread costs every process 0.2 s, and only this run needs it.
    from news_platform.rss.sheets.sync import run_sync

    calls = data_root.settings.sheets.calls_per_minute
    done = run_sync(
        ledger.engine,
        access,
        owner=context.run.run_id,
        timing=CallTiming(time.monotonic, time.sleep, calls=calls),
        clock=clock.now,
        discover=lambda urls: pipeline.run_discovery(
            ledger.engine,
            urls,
            fetch=web.fetch_options,
            options=obeying(
                discovery_options(data_root.settings.rss), data_root.store, now=clock.now()
            ),
            now=clock.now(),
        ),
        options=sync_options(data_root.settings),
    )
    return dg.MaterializeResult(
        metadata=run_metadata(ARTICLE_SHEETS, _sync_metadata(done) | _analysis_metadata(analysed))
    )


def _analyse(ledger: Ledger, data_root: DataRoot, clock: Clock) -> AnalysisReport:
    """Analyse new articles first, so that their analyses are in the same sync."""
    options = analysis_options(data_root.settings)
    if options is None:
        return AnalysisReport()
    return analyse_articles(ledger.engine, options=options, clock=clock.now)


def _analysis_metadata(report: AnalysisReport) -> dict[str, Any]:
    return {"analysed": report.analysed, "model_failures": report.model_failures}


def _access(data_root: DataRoot) -> SheetAccess | None:
    return sheets_access(data_root.settings.sheets)


def _workbook_metadata(data_root: DataRoot, report: WorkbookReport) -> dict[str, Any]:
    return {
        "dagster/row_count": sum(report.rows.values()),
        "dagster/uri": data_root.store.uri(report.path),
        "rows": markdown_table(("tab", "rows"), report.rows.items()),
        "rows_left_out": sum(report.left_out.values()),
        "monthly_books_written": len(report.books),
        "monthly_books_left": report.books_left,
    }


def _sync_metadata(done: "SyncReport") -> dict[str, Any]:
    return {
        "dagster/uri": done.url,
        "sheet": dg.MetadataValue.url(done.url),
        "continued_from": done.continued_from,
        **done.counters,
    }


def _lacks_rows(resources: Resources) -> bool:
    if resources.settings.newsroom.analyses and has_unanalysed(resources.ledger.engine):
        return True
    access = _access(resources.data_root)
    if access is not None:
        return is_behind(resources.ledger.engine, access.name)
    options = workbook_options(resources.settings)
    return is_stale(resources.ledger.engine, resources.data_root.store, options)


SHEETS_RULE = RebuildRule.when("article_sheets", _lacks_rows)
RULES = (SHEETS_RULE,)


@dg.schedule(
    target=dg.AssetSelection.assets("article_sheets"),
    cron_schedule="*/10 * * * *",
    description="Writes new rows every ten minutes; reads admins' edits of a Google Sheet.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def run_article_sheets(
    context: dg.ScheduleEvaluationContext, platform: dg.ResourceParam[Resources]
) -> dg.RunRequest | dg.SkipReason:
    """Request a sync, or skip it if the workbook is up to date.

    A Google Sheet is always synced: only a call to Google shows whether an admin edited it.
    """
    if reason := skip_reason(platform.data_root.store):
        return reason
    if running := run_under_way(context.instance, "article_sheets"):
        return dg.SkipReason(f"run {running} has not finished")
    if _access(platform.data_root) is None and not SHEETS_RULE.stale(platform):
        return dg.SkipReason("the workbook is up to date with the ledger")
    return scheduled_run("article_sheets")


defs = dg.Definitions(assets=[article_sheets], schedules=[run_article_sheets])
