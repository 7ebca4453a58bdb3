"""The news crawl in Dagster: the listing, one partition of pages per day, and the sensor."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import date
from functools import partial
from threading import Lock

import dagster as dg
import polars as pl

from news_platform.ccnews.listing import (
    FollowReport,
    FollowState,
    Listing,
    check_listings,
    first_answering,
)
from news_platform.ccnews.pipeline import CollectReport, collect_day
from news_platform.ccnews.pool import CollectFailure, CollectListener, Estimate, WarcProgress
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.captures import CAPTURES, FEED_CANDIDATES
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import RAW_NEWS, raw_news_day_prefix
from news_platform.datasets.table import Table
from news_platform.datasets.warc_paths import FIRST_DAY, WARC_PATHS
from news_platform.defs.ccnews_checks import CHECKED_DAYS, CHECKS
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partitions import DAYS, ONE_A_RUN
from news_platform.defs.plots import languages_plot
from news_platform.defs.reconcile import (
    PAUSED,
    Limits,
    dump_cursor,
    load_cursor,
    plan_requests,
    run_request,
    runs_of,
)
from news_platform.defs.staleness import Fingerprints, Staleness
from news_platform.resources import Clock, Crawl, DataRoot, Resources, collect_options
from news_platform.storage.commit.collected import newest_collected_days, read_collected
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table

GROUP = "ccnews"
OWNERS = ["team:ccnews"]
_LOG_EVERY_SECONDS = 15.0
_PREVIEW_ROWS = 5

warc_paths = dg.AssetSpec(
    "warc_paths",
    description=WARC_PATHS.description,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"s3"},
    metadata=table_metadata(WARC_PATHS),
)


def _side_table(table: Table, description: str) -> dg.AssetSpec:
    """Describe a table that a run of raw_news writes besides its own.

    It is an asset of its own, so that analysts find it and the lineage of feeds shows where its
    candidates come from.
    """
    return dg.AssetSpec(
        table.name,
        deps=["raw_news"],
        description=description,
        partitions_def=DAYS,
        group_name=GROUP,
        owners=OWNERS,
        kinds={"parquet"},
        metadata=table_metadata(table),
    )


captures = _side_table(
    CAPTURES,
    "The position of every page in its WARC, and the title, date and author that it states: "
    "a link back to the source, and a narrow table for scans. Written by the run of raw_news.",
)
feed_candidates = _side_table(
    FEED_CANDIDATES,
    "Feeds that crawled pages link to, per host; feed discovery reads them every morning. "
    "Written by the run of raw_news.",
)


@dg.asset(
    partitions_def=DAYS,
    deps=[warc_paths],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet", "python"},
    backfill_policy=ONE_A_RUN,
    pool="crawl",
    metadata=table_metadata(RAW_NEWS),
)
def raw_news(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    crawl: dg.ResourceParam[Crawl],
    clock: dg.ResourceParam[Clock],
) -> dg.MaterializeResult[None]:
    """HTML pages of one day of the news crawl: source, main text, languages and provenance.

    A run collects the WARCs of its day that have no marker yet: a day that grew is completed, and a
    complete day costs nothing. One file per language and WARC.
    """
    day = date.fromisoformat(context.partition_key)
    store = data_root.store
    started = time.monotonic()
    report = collect_day(
        day,
        crawl=crawl.sources,
        root=store,
        options=collect_options(data_root.settings.ccnews),
        now=clock.now(),
        attempt=context.run.run_id,
        listener=ProgressLogger(context),
    )
    # Only now, after the other WARCs are published: the next run collects just the failed ones.
    if report.failed:
        raise dg.Failure(_failures(report), metadata=_failure_metadata(report))
    for event in side_tables(store, day):
        context.log_event(event)
    seconds = time.monotonic() - started
    return dg.MaterializeResult(metadata=_metadata(store, day, report, seconds))


class ProgressLogger(CollectListener):
    """Log the progress of a run and report it as observations, at most every 15 seconds."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._lock = Lock()
        self._total = 0
        self._done = 0
        self._rows: dict[str, int] = {}
        self._logged_at = time.monotonic()

    def start(self, estimate: Estimate) -> None:
        """Log the estimate."""
        self._total = estimate.warcs
        self._context.log.info("%s: %s", self._context.partition_key, estimate)

    def advance(self, warc_name: str, progress: WarcProgress) -> None:
        """Note how far a WARC is."""
        with self._lock:
            self._rows[warc_name] = progress.rows
            if time.monotonic() - self._logged_at >= _LOG_EVERY_SECONDS:
                self._observe()

    def finish(self, outcome: Collected | CollectFailure) -> None:
        """Log the outcome of a WARC."""
        with self._lock:
            self._done += 1
            if isinstance(outcome, Collected):
                self._rows[outcome.warc] = outcome.rows
                self._context.log.info("%s: %s rows", outcome.warc, outcome.rows)
            else:
                self._context.log.error("%s: %s", outcome.warc, outcome.reason)
            self._observe()

    def _observe(self) -> None:
        self._logged_at = time.monotonic()
        rows = sum(self._rows.values())
        self._context.log.info("%s of %s WARCs done, %s rows so far", self._done, self._total, rows)
        self._context.log_event(
            dg.AssetObservation(
                "raw_news",
                partition=self._context.partition_key,
                metadata={
                    "rows_so_far": rows,
                    "warcs_done": self._done,
                    "warcs_to_do": self._total,
                },
            )
        )


def _failures(report: CollectReport) -> str:
    reasons = "; ".join(failure.reason for failure in report.failed)
    return f"{len(report.failed)} WARCs failed, {len(report.collected)} collected: {reasons}"


def _failure_metadata(report: CollectReport) -> Mapping[str, dg.MetadataValue]:
    rows = [(failure.warc, failure.reason) for failure in report.failed]
    return {"failed": markdown_table(["warc", "reason"], rows)}


def _metadata(
    store: ObjectStore, day: date, report: CollectReport, seconds: float
) -> Mapping[str, dg.MetadataValue | int | float | str]:
    """Describe the stored day and what this run added."""
    markers = read_collected(store, [day])
    added = sum(marker.rows for marker in report.collected)
    return {
        "dagster/partition_row_count": sum(marker.rows for marker in markers),
        "dagster/uri": store.uri(raw_news_day_prefix(day)),
        "bytes": sum(marker.bytes for marker in markers),
        "source_bytes": sum(marker.source_bytes for marker in markers),
        "warcs": len(markers),
        "warcs_listed": report.listed,
        "rows_added": added,
        "pages_per_second": round(added / seconds, 1) if seconds else 0.0,
        "languages": _counts("language", (marker.languages for marker in markers)),
        "languages_per_day": _languages_per_day(store),
        "dropped": _counts("reason", (marker.dropped for marker in markers)),
        "preview": _preview(store, day),
    }


def _counts(name: str, parts: Iterable[Mapping[str, int]]) -> dg.MarkdownMetadataValue:
    totals: dict[str, int] = {}
    for part in parts:
        for key, count in part.items():
            totals[key] = totals.get(key, 0) + count
    rows = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return markdown_table([name, "pages"], rows)


def _languages_per_day(store: ObjectStore) -> dg.MarkdownMetadataValue:
    days: dict[date, dict[str, int]] = {}
    for day in sorted(newest_collected_days(store, count=CHECKED_DAYS)):
        counts = days.setdefault(day, {})
        for marker in read_collected(store, [day]):
            for language, pages in marker.languages.items():
                counts[language] = counts.get(language, 0) + pages
    return languages_plot(days)


def _preview(store: ObjectStore, day: date) -> dg.MarkdownMetadataValue:
    columns = ["uri", "main_lang", "http_date", "host", "text"]
    try:
        rows = scan_news(store, [day], columns=columns).head(_PREVIEW_ROWS).collect()
    except pl.exceptions.PolarsError as error:
        # The run goes on to the checks, which name the file.
        return dg.MetadataValue.md(f"unreadable: {error}")
    return markdown_table(columns, rows.iter_rows())


def side_tables(store: ObjectStore, day: date) -> Iterator[dg.AssetMaterialization]:
    """Yield a materialisation for each side table that has files of the day."""
    for table in (CAPTURES, FEED_CANDIDATES):
        folder = f"news/{table.name}/year={day:%Y}/month={day:%m}/day={day:%d}"
        paths = [info.path for info in store.list(folder) if info.path.endswith(".parquet")]
        if paths:
            yield dg.AssetMaterialization(
                table.name,
                partition=day.isoformat(),
                metadata={
                    **_described(scan_table(store, paths, table)),
                    **column_lineage(table.name),
                    "dagster/uri": store.uri(folder),
                },
            )


def _described(rows: pl.LazyFrame) -> Mapping[str, dg.MetadataValue]:
    preview = rows.head(_PREVIEW_ROWS).collect()
    return {
        "dagster/partition_row_count": dg.MetadataValue.int(rows.select(pl.len()).collect().item()),
        "preview": markdown_table(preview.columns, preview.iter_rows()),
    }


def listing_sensor(*, interval_seconds: int = 60) -> dg.SensorDefinition:
    """Build the sensor that follows the crawl's listing."""

    @dg.sensor(
        name="new_warc_paths",
        description="Requests the days whose listed WARCs are not all collected, newest first.",
        target=dg.AssetSelection.assets("raw_news"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def follow(
        context: dg.SensorEvaluationContext,
        data_root: dg.ResourceParam[DataRoot],
        crawl: dg.ResourceParam[Crawl],
        clock: dg.ResourceParam[Clock],
    ) -> dg.SensorResult | dg.SkipReason:
        """Requests the days whose listed WARCs are not all collected, newest first."""
        if is_paused(data_root.store):
            return PAUSED
        cursor = json.loads(context.cursor or "{}")
        today = clock.now().date()
        seen = check_listings(
            first_answering(crawl.sources, month=today),
            data_root.store,
            today=today,
            state=FollowState(**cursor.get("memory", {})),
            materialized=context.instance.get_materialized_partitions(dg.AssetKey("raw_news")),
            max_warcs=data_root.settings.ccnews.max_warcs,
        )
        plan = plan_requests(
            seen.stale,
            pending=load_cursor(json.dumps(cursor.get("pending", {}))),
            runs_of=partial(runs_of, context.instance, "raw_news"),
            now=time.time(),
            limits=Limits(outstanding=data_root.settings.ccnews.max_days),
        )
        return dg.SensorResult(
            run_requests=[
                run_request("raw_news", key, plan.requests[key]) for key in plan.requests
            ],
            asset_events=[_observation(listing) for listing in seen.changed],
            cursor=_cursor(seen, dump_cursor(plan.pending)),
        )

    return follow


new_warc_paths = listing_sensor()


def _cursor(seen: FollowReport, pending: str) -> str:
    # The keys are those of version 0.1.0: a running sensor keeps its cursor.
    return json.dumps({"memory": asdict(seen.state), "pending": json.loads(pending)})


def _observation(listing: Listing) -> dg.AssetObservation:
    days = listing.days()
    return dg.AssetObservation(
        "warc_paths",
        metadata={
            "month": f"{listing.month:%Y-%m}",
            "etag": listing.etag,
            "warcs": len(listing.warcs),
            "days": len(days),
            "newest_day": max(days).isoformat() if days else "",
            "foreign_lines": listing.foreign,
        },
    )


def _stale(resources: Resources) -> Fingerprints:
    """Return every listed day of the last two months that lacks a WARC."""
    now = resources.clock.now()
    seen = check_listings(
        resources.crawl.store,
        resources.data_root.store,
        today=now.date(),
        state=FollowState(since=FIRST_DAY.isoformat()),
        materialized=(),
        max_warcs=resources.settings.ccnews.max_warcs,
    )
    return seen.stale


STALENESS = (Staleness("raw_news", _stale),)
defs = dg.Definitions(
    assets=[warc_paths, raw_news, captures, feed_candidates],
    asset_checks=CHECKS,
    sensors=[new_warc_paths],
)
