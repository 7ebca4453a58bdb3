"""The asset and schedule that show the ledger to editors, in a Google Sheet or a workbook."""

import time
from typing import Any

import dagster as dg

from news_platform.datasets.feeds import ARTICLE_SHEETS
from news_platform.defs.assets import Metadata, dataset_asset
from news_platform.defs.metadata import markdown_table
from news_platform.defs.rebuild_rules import Platform, RebuildRule
from news_platform.defs.sensors import asset_schedule
from news_platform.resources import (
    Resources,
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
from news_platform.rss.sheets.books import CallTiming
from news_platform.rss.sheets.outbox import is_behind
from news_platform.rss.sheets.workbook import WorkbookReport, is_stale, write_workbook
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import obeying

_TICK_MINUTES = 10


@dataset_asset(ARTICLE_SHEETS, pool="sheets")
def article_sheets(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Bring the Google Sheet or the workbook up to date."""
    store, ledger, clock = platform.data_root.store, platform.ledger.engine, platform.clock
    access = sheets_access(platform.settings.sheets)
    # New articles are analysed first, so that their analyses are in the same sync.
    options = analysis_options(platform.settings)
    done = AnalysisReport()
    if options is not None:
        done = analyse_articles(ledger, options=options, clock=clock.now)
    analyses = {"analysed": done.analysed, "model_failures": done.model_failures}
    if access is None:
        report = write_workbook(ledger, store, workbook_options(platform.settings))
        return _workbook_metadata(store, report) | analyses
    # Imported here because gspread costs every process 0.2 s, and only this run needs it.
    from news_platform.rss.sheets.sync import run_sync

    calls = platform.settings.sheets.calls_per_minute
    synced = run_sync(
        ledger,
        access,
        owner=context.run.run_id,
        timing=CallTiming(time.monotonic, time.sleep, calls=calls),
        clock=clock.now,
        discover=lambda urls: pipeline.run_discovery(
            ledger,
            urls,
            fetch=platform.web.fetch_options,
            options=obeying(discovery_options(platform.settings.rss), store, now=clock.now()),
            now=clock.now(),
        ),
        options=sync_options(platform.settings),
    )
    return {
        "dagster/uri": synced.url,
        "sheet": dg.MetadataValue.url(synced.url),
        "continued_from": synced.continued_from,
        **synced.counters,
        **analyses,
    }


def _workbook_metadata(store: ObjectStore, report: WorkbookReport) -> dict[str, Any]:
    return {
        "dagster/row_count": sum(report.rows.values()),
        "dagster/uri": store.uri(report.path),
        "rows": markdown_table(("tab", "rows"), report.rows.items()),
        "rows_left_out": sum(report.left_out.values()),
    }


def _lacks_rows(resources: Resources) -> bool:
    if resources.settings.newsroom.analyses and has_unanalysed(resources.ledger.engine):
        return True
    access = sheets_access(resources.settings.sheets)
    if access is not None:
        return is_behind(resources.ledger.engine, access.name)
    options = workbook_options(resources.settings)
    return is_stale(resources.ledger.engine, resources.data_root.store, options)


def _is_due(resources: Resources) -> bool:
    # Only a call to Google shows whether an admin edited the sheet: once an hour, or with new rows.
    is_hour = resources.clock.now().minute < _TICK_MINUTES
    has_sheet = sheets_access(resources.settings.sheets) is not None
    return (has_sheet and is_hour) or _lacks_rows(resources)


SHEETS_RULE = RebuildRule.when("article_sheets", _lacks_rows)
run_article_sheets = asset_schedule(
    SHEETS_RULE,
    cron=f"*/{_TICK_MINUTES} * * * *",
    description="Writes new rows every ten minutes; reads admins' edits of a Google Sheet hourly.",
    is_due=_is_due,
)
