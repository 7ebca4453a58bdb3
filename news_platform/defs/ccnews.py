"""The news crawl in Dagster: the listing, one partition of pages per day, and the sensor."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import date
from threading import Lock

import dagster as dg
import polars as pl
from pydantic import Field, TypeAdapter, ValidationError

from news_platform.ccnews import maintenance
from news_platform.ccnews.listing import (
    FollowState,
    Listing,
    check_listings,
    first_answering,
    record_arrivals,
)
from news_platform.ccnews.maintenance import list_republished
from news_platform.ccnews.pipeline import (
    CollectReport,
    RebuildMode,
    collect_day,
    outdated_days,
    outdated_names,
)
from news_platform.ccnews.pool import (
    CollectFailure,
    CollectListener,
    CollectOptions,
    Estimate,
    WarcProgress,
)
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.captures import CAPTURE_INDEX
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import FIRST_DAY, RAW_NEWS, WARC_PATHS, raw_news_day_prefix
from news_platform.datasets.registry import DATASETS
from news_platform.defs.assets import (
    PartitionMetadata,
    asset_spec,
    backfill_policy,
    data_version,
    dataset_asset,
    rebuild_rule,
)
from news_platform.defs.metadata import languages_plot, markdown_table, preview, run_metadata
from news_platform.defs.partitions import DAYS
from news_platform.defs.planning import Limits
from news_platform.defs.rebuild_rules import Fingerprints, Platform, Seen, unsettled
from news_platform.defs.runs import CRAWL_OUTPUTS
from news_platform.defs.sensor_state import SensorState
from news_platform.defs.sensors import nightly_job
from news_platform.errors import FetchError, InputError, hide_addresses, hiding_addresses
from news_platform.resources import Resources, collect_options
from news_platform.storage.commit.collected import (
    collected_days,
    followed_days,
    list_collected_day,
    newest_collected_days,
    read_collected,
)
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.storage.units import unit_files

_PREVIEW_ROWS = 5
_LOG_EVERY_SECONDS = 15.0
# Days in the plot of languages.
_PLOTTED_DAYS = 7
# A run of raw_news writes them beside its own; each can be switched off.
SIDE_TABLES = tuple(DATASETS[name] for name in CRAWL_OUTPUTS if name != RAW_NEWS.name)
warc_paths = asset_spec(WARC_PATHS)


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
                reason = hide_addresses(outcome.reason)
                self._context.log.error("%s: %s", outcome.warc, reason)
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


class RawNewsConfig(dg.Config):
    """What a run of raw_news collects."""

    redo: RebuildMode = Field(
        default=RebuildMode.outdated,
        description="missing: WARCs that are not collected, or not as their source is now. "
        "outdated: also those that another version of the extractor or other options gave. "
        "all: every listed WARC of the day.",
    )


@dg.multi_asset(
    name="raw_news",
    specs=[asset_spec(RAW_NEWS), *(asset_spec(one, skippable=True) for one in SIDE_TABLES)],
    partitions_def=DAYS,
    backfill_policy=backfill_policy(RAW_NEWS),
    pool="crawl",
    can_subset=True,
)
def raw_news(
    context: dg.AssetExecutionContext, config: RawNewsConfig, platform: Platform
) -> Iterator[dg.MaterializeResult[None]]:
    """HTML pages of one day of the news crawl, and the tables that are written beside them."""
    day = date.fromisoformat(context.partition_key)
    store, options = platform.data_root.store, collect_options(platform.settings.ccnews)
    started = time.monotonic()
    with hiding_addresses():
        report = collect_day(
            day,
            crawl=platform.crawl.sources,
            root=store,
            options=options,
            now=platform.clock.now(),
            attempt=context.run.run_id,
            redo=config.redo,
            listener=ProgressLogger(context),
        )
    # Only now, after the other WARCs are published: the next run collects just the failed ones.
    if report.failed:
        cause = _cause(report)
        raise dg.Failure(str(cause), metadata=_failure_metadata(report)) from cause
    seconds = time.monotonic() - started
    metadata = {
        **_metadata(store, day, report, seconds),
        **_outdated_metadata(store, day, options),
    }
    selected = {key.to_user_string() for key in context.selected_asset_keys}
    version = data_version(platform, RAW_NEWS, str(day))
    if "raw_news" in selected:
        shown = run_metadata(RAW_NEWS, metadata)
        yield dg.MaterializeResult(asset_key="raw_news", metadata=shown, data_version=version)
    for event in side_table_events(store, day):
        if event.asset_key.to_user_string() in selected:
            yield dg.MaterializeResult(
                asset_key=event.asset_key, metadata=event.metadata, data_version=version
            )
        else:
            # It was written all the same.
            context.log_event(event)


def _cause(report: CollectReport) -> FetchError | InputError:
    """Return the error of a run: a retry may help while it may help one of its WARCs."""
    is_hopeless = all(failure.is_final for failure in report.failed)
    text = hide_addresses(_failures(report))
    return InputError(text) if is_hopeless else FetchError(text)


def _failures(report: CollectReport) -> str:
    reasons = "; ".join(failure.reason for failure in report.failed)
    return f"{len(report.failed)} WARCs failed, {len(report.collected)} collected: {reasons}"


def _failure_metadata(report: CollectReport) -> Mapping[str, dg.MetadataValue]:
    rows = [(failure.warc, failure.reason) for failure in report.failed]
    return {"failed": markdown_table(["warc", "reason"], rows)}


def _metadata(
    store: ObjectStore, day: date, report: CollectReport, seconds: float
) -> dict[str, dg.MetadataValue | int | float | str]:
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
        "warcs_redone": report.redone,
        "pages_per_second": round(added / seconds, 1) if seconds else 0.0,
        "languages": _counts("language", (marker.languages for marker in markers)),
        "languages_per_day": _languages_per_day(store),
        "dropped": _counts("reason", (marker.dropped for marker in markers)),
        "preview": _preview(store, day),
    }


def _outdated_metadata(
    store: ObjectStore, day: date, options: CollectOptions
) -> Mapping[str, dg.MetadataValue | int | float | str]:
    """Count what another version, other options or a broken source make different."""
    units = list_collected_day(store, day)
    markers = read_collected(store, [day])
    return {
        "warcs_outdated": len(outdated_names(units, options)),
        "warcs_expired": sum(marker.is_expired for marker in markers),
        "warcs_truncated": sum(marker.truncated_at is not None for marker in markers),
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
    for day in sorted(newest_collected_days(store, count=_PLOTTED_DAYS)):
        counts = days.setdefault(day, {})
        for marker in read_collected(store, [day]):
            for language, pages in marker.languages.items():
                counts[language] = counts.get(language, 0) + pages
    return languages_plot(days)


def _preview(store: ObjectStore, day: date) -> dg.MarkdownMetadataValue:
    shown = [column.name for column in RAW_NEWS.all_columns if column.is_shown]
    try:
        rows = scan_news(store, [day], columns=shown).head(_PREVIEW_ROWS).collect()
    except pl.exceptions.PolarsError as error:
        # The run goes on to the checks, which name the file.
        return markdown_table(["unreadable"], [(error,)])
    return preview(RAW_NEWS, rows)


def side_table_events(store: ObjectStore, day: date) -> Iterator[dg.AssetMaterialization]:
    """Yield a materialization for each side table that has files of the day."""
    for dataset in SIDE_TABLES:
        key = day.isoformat()
        paths = [info.path for info in unit_files(store, dataset, [key]).get(key, ())]
        if paths:
            rows = scan_table(store, paths, dataset)
            values = {
                "dagster/partition_row_count": rows.select(pl.len()).collect().item(),
                "dagster/uri": store.uri(dataset.unit_folder(key)),
                "preview": preview(dataset, rows.head(_PREVIEW_ROWS).collect()),
            }
            metadata = run_metadata(dataset, values)
            yield dg.AssetMaterialization(dataset.name, partition=key, metadata=metadata)


def _days_to_redo(resources: Resources) -> Fingerprints:
    """Return the outdated days that the settings let a sensor collect again."""
    settings = resources.settings.ccnews
    if settings.redo_newest_days <= 0:
        return {}
    options = collect_options(settings)
    days = outdated_days(resources.data_root.store, options, newest=settings.redo_newest_days)
    return dict.fromkeys(days, options.recipe)


def run_config(redo: RebuildMode) -> dict[str, object]:
    """Return the run configuration that chooses what a run of raw_news collects."""
    # A late WARC must not make a sensor collect a whole day again: only a person, or the setting
    # NEWS_PLATFORM_REDO_NEWEST_DAYS, does.
    return {"ops": {"raw_news": {"config": {"redo": redo.name}}}}


def _look(resources: Resources, state: SensorState) -> Seen:
    """Compare the listings with the markers, from where the sensor's last tick ended."""
    now, root = resources.clock.now(), resources.data_root.store
    today = now.date()
    found = check_listings(
        first_answering(resources.crawl.sources, month=today),
        root,
        today=today,
        state=_follow_state(state.listings),
        followed=followed_days(root),
        republished=[name for names in list_republished(root).values() for name in names],
        max_warcs=resources.settings.ccnews.max_warcs,
        keep=resources.access is not RootAccess.READ,
    )
    redone = _days_to_redo(resources)
    return Seen(
        {**redone, **found.stale},
        observations=[_observation(listing) for listing in found.changed],
        listings=asdict(found.state),
        record=lambda: record_arrivals(root, found.changed, now=now),
        run_config=lambda day: run_config(
            RebuildMode.outdated if day in redone else RebuildMode.missing
        ),
    )


def _follow_state(listings: Mapping[str, object]) -> FollowState:
    """Return what the last tick left; what cannot be read counts as nothing."""
    try:
        return TypeAdapter(FollowState).validate_python(listings)
    except ValidationError:
        return FollowState()


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
        followed=(),
        max_warcs=resources.settings.ccnews.max_warcs,
        keep=resources.access is not RootAccess.READ,
    )
    return seen.stale


def _limits(resources: Resources) -> Limits:
    given = resources.settings.ccnews
    # Never longer than it takes to settle: then the last WARCs of a day are collected before.
    hours = min(given.collect_hours, given.settled_hours)
    return Limits(runs=given.max_days, spacing_seconds=hours * 3600)


NEWS_RULE = rebuild_rule(
    RAW_NEWS,
    stale=_stale,
    built=lambda resources: collected_days(resources.data_root.store),
    limits=_limits,
    sensor="new_warc_paths",
    outputs=CRAWL_OUTPUTS,
    look=_look,
    outdated=lambda resources: len(
        outdated_days(resources.data_root.store, collect_options(resources.settings.ccnews))
    ),
)


@dataset_asset(CAPTURE_INDEX)
def capture_index(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Merge the runs of captures of settled days."""
    # Only a run pays for loading the readers of WARCs.
    from news_platform.ccnews.capture_index import build_index

    store = platform.data_root.store
    for day in context.partition_keys:
        rows = build_index(store, day)
        if rows is not None:
            path = CAPTURE_INDEX.place.path(date=day)
            shown = scan_table(store, [path], CAPTURE_INDEX).head(_PREVIEW_ROWS).collect()
            yield (
                day,
                {
                    "dagster/partition_row_count": rows,
                    "dagster/uri": store.uri(path),
                    "preview": preview(CAPTURE_INDEX, shown),
                },
            )


CAPTURE_INDEX_RULE = rebuild_rule(CAPTURE_INDEX, holds=unsettled(CAPTURE_INDEX))


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Finds WARCs of the newest days that were published again, which the sensor then "
    "collects again; combines the markers of old months; deletes expired dropped_responses.",
)
def recheck_crawl(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Run the maintenance once."""
    settings = platform.settings.ccnews
    report = maintenance.maintain_crawl(
        platform.data_root.store,
        crawl=platform.crawl.sources,
        now=platform.clock.now(),
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


maintain_crawl, maintain_crawl_every_night = nightly_job(
    recheck_crawl,
    name="maintain_crawl",
    cron="30 2 * * *",
    description="Detect WARCs that were published again, and combine the crawl's markers.",
)
