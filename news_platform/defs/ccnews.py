"""The news crawl in Dagster: the listing, one partition of pages per day, and the sensor."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import date

import dagster as dg
import polars as pl
from pydantic import Field

from news_platform.ccnews.listing import (
    FollowReport,
    FollowState,
    Listing,
    check_listings,
    first_answering,
    record_arrivals,
)
from news_platform.ccnews.maintenance import list_republished
from news_platform.ccnews.options import CollectOptions
from news_platform.ccnews.pipeline import (
    CollectReport,
    RebuildMode,
    collect_day,
    outdated_days,
    outdated_names,
)
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.raw_news import FIRST_DAY, RAW_NEWS, WARC_PATHS, raw_news_day_prefix
from news_platform.datasets.registry import DATASETS
from news_platform.defs.assets import asset_spec, backfill_policy, rebuild_rule
from news_platform.defs.ccnews_checks import CHECKED_DAYS, CHECKS
from news_platform.defs.ccnews_maintenance import (
    maintain_crawl,
    maintain_crawl_every_night,
)
from news_platform.defs.ccnews_progress import ProgressLogger
from news_platform.defs.metadata import markdown_table, preview, run_metadata
from news_platform.defs.partitions import DAYS
from news_platform.defs.planning import Limits
from news_platform.defs.plots import languages_plot
from news_platform.defs.rebuild_rules import Fingerprints
from news_platform.defs.runs import Work
from news_platform.defs.sensor_state import SensorState, dump_state, load_state
from news_platform.defs.sensors import (
    PAUSED,
    plan_of,
    report_plan,
    report_unreadable_inputs,
    run_requests,
)
from news_platform.defs.tasks import CRAWL_OUTPUTS
from news_platform.errors import (
    FetchError,
    InputError,
    NewsPlatformError,
    hide_addresses,
    hiding_addresses,
)
from news_platform.resources import Clock, Crawl, DataRoot, Resources, collect_options
from news_platform.storage.commit.collected import (
    followed_days,
    list_collected_day,
    newest_collected_days,
    read_collected,
)
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.storage.units import unit_files

_PREVIEW_ROWS = 5
# A run of raw_news writes them beside its own; each can be switched off.
SIDE_TABLES = tuple(DATASETS[name] for name in CRAWL_OUTPUTS if name != RAW_NEWS.name)
warc_paths = asset_spec(WARC_PATHS)


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
    context: dg.AssetExecutionContext,
    config: RawNewsConfig,
    data_root: dg.ResourceParam[DataRoot],
    crawl: dg.ResourceParam[Crawl],
    clock: dg.ResourceParam[Clock],
) -> Iterator[dg.MaterializeResult[None]]:
    """HTML pages of one day of the news crawl, and the tables that are written beside them."""
    day = date.fromisoformat(context.partition_key)
    store = data_root.store
    options = collect_options(data_root.settings.ccnews)
    started = time.monotonic()
    with hiding_addresses():
        report = collect_day(
            day,
            crawl=crawl.sources,
            root=store,
            options=options,
            now=clock.now(),
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
    if "raw_news" in selected:
        yield dg.MaterializeResult(asset_key="raw_news", metadata=run_metadata(RAW_NEWS, metadata))
    for event in side_table_events(store, day):
        if event.asset_key.to_user_string() in selected:
            yield dg.MaterializeResult(asset_key=event.asset_key, metadata=event.metadata)
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
    for day in sorted(newest_collected_days(store, count=CHECKED_DAYS)):
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
        return dg.MetadataValue.md(f"unreadable: {error}")
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


def listing_sensor(*, interval_seconds: int = 60) -> dg.SensorDefinition:
    """Build the sensor that follows the crawl's listing."""

    @dg.sensor(
        name="new_warc_paths",
        description="Requests the days whose listed WARCs are not all collected.",
        target=dg.AssetSelection.assets(*CRAWL_OUTPUTS),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def follow(
        context: dg.SensorEvaluationContext, platform: dg.ResourceParam[Resources]
    ) -> dg.SensorResult | dg.SkipReason:
        """Requests the days whose listed WARCs are not all collected."""
        state = load_state(context.cursor)
        try:
            if is_paused(platform.data_root.store):
                return PAUSED
            work = Work.read(context.instance)
            seen = _seen(platform, state)
            record_arrivals(platform.data_root.store, seen.changed, now=platform.clock.now())
            redone = _days_to_redo(platform.data_root)
            plan = plan_of(
                NEWS_RULE,
                platform,
                stale={**redone, **seen.stale},
                state=state,
                work=work,
                instance=context.instance,
            )
            report_plan(context, platform, plan)
        except NewsPlatformError as error:
            return report_unreadable_inputs(context, platform, "raw_news", error, state)
        return dg.SensorResult(
            run_requests=[
                one.with_replaced_attrs(
                    asset_selection=[dg.AssetKey(name) for name in CRAWL_OUTPUTS],
                    run_config=run_config(
                        RebuildMode.outdated if one.partition_key in redone else RebuildMode.missing
                    ),
                )
                for one in run_requests(plan)
            ],
            skip_reason=None if plan.requests else plan.text(),
            asset_events=[_observation(listing) for listing in seen.changed],
            cursor=dump_state(replace(plan.state, listings=asdict(seen.state))),
        )

    return follow


new_warc_paths = listing_sensor()


def _days_to_redo(data_root: DataRoot) -> Fingerprints:
    """Return the outdated days that the settings let a sensor collect again."""
    settings = data_root.settings.ccnews
    if settings.redo_newest_days <= 0:
        return {}
    options = collect_options(settings)
    days = outdated_days(data_root.store, options, newest=settings.redo_newest_days)
    return dict.fromkeys(days, options.recipe)


def run_config(redo: RebuildMode) -> dict[str, object]:
    """Return the run configuration that chooses what a run of raw_news collects."""
    # A late WARC must not make a sensor collect a whole day again: only a person, or the setting
    # NEWS_PLATFORM_REDO_NEWEST_DAYS, does.
    return {"ops": {"raw_news": {"config": {"redo": redo.name}}}}


def _seen(resources: Resources, state: SensorState) -> FollowReport:
    """Compare the listings with the markers, from where the sensor's last tick ended."""
    today = resources.clock.now().date()
    root = resources.data_root.store
    return check_listings(
        first_answering(resources.crawl.sources, month=today),
        root,
        today=today,
        state=FollowState(**state.listings),
        followed=followed_days(root),
        republished=[name for names in list_republished(root).values() for name in names],
        max_warcs=resources.settings.ccnews.max_warcs,
    )


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
    limits=_limits,
    sensor="new_warc_paths",
    stale_after=lambda resources, state: {
        **_days_to_redo(resources.data_root),
        **_seen(resources, state).stale,
    },
    outdated=lambda resources: len(
        outdated_days(resources.data_root.store, collect_options(resources.settings.ccnews))
    ),
)
RULES = (NEWS_RULE,)
defs = dg.Definitions(
    assets=[warc_paths, raw_news],
    asset_checks=[one.definition for one in CHECKS],
    sensors=[new_warc_paths],
    jobs=[maintain_crawl],
    schedules=[maintain_crawl_every_night],
)
