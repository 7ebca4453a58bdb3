"""The Dagster assets of source_records: stored page snapshots and the records made from them."""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from news_platform.ccnews.pipeline import RebuildMode
from news_platform.datasets.source_records import (
    PAGE_SNAPSHOTS,
    SOURCE_RECORDS,
    records_path,
    samples_path,
)
from news_platform.defs.assets import Metadata, asset_spec, dataset_asset, rebuild_rule
from news_platform.defs.checks import check
from news_platform.defs.metadata import markdown_table
from news_platform.defs.partitions import INSTITUTIONS
from news_platform.defs.rebuild_rules import Platform
from news_platform.defs.sensors import observe_changes, skip_reason
from news_platform.resources import Resources, records_options, segment_options
from news_platform.source_records.changes import tell_changes
from news_platform.source_records.pipeline import (
    DATASET,
    SEGMENTER_VERSION,
    RecordsReport,
    build_institution,
    declare_options,
    outdated_institutions,
    record_problems,
    wanted_institutions,
)
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs

page_snapshots = asset_spec(PAGE_SNAPSHOTS)


class RecordsConfig(dg.Config):
    """What a run of source_records segments."""

    redo: RebuildMode = Field(
        default=RebuildMode.outdated,
        description="missing: institutions whose snapshots or options changed, or whose file is "
        "damaged. outdated: also those that another version of the segmenter made. all: always.",
    )


@dataset_asset(SOURCE_RECORDS)
def source_records(
    context: dg.AssetExecutionContext, config: RecordsConfig, platform: Platform
) -> Metadata:
    """Segment the snapshots of an institution."""
    store, institution = platform.data_root.store, context.partition_key
    options = records_options(platform.settings.source_records)
    declare_options(store, options.segment)
    if not _is_due(store, institution, config.redo):
        context.log.info("%s is up to date; choose redo: all to segment it again", institution)
        return {"unchanged": True, **_placed(store, institution)}
    report = build_institution(institution, store=store, options=options)
    alerts = platform.settings.alerts
    problem = tell_changes(
        report.new_changes, institution, url=alerts.webhook_url, secret=alerts.webhook_secret
    )
    if problem:
        context.log.warning("%s", problem)
    return _shown(report) | _placed(store, institution)


def _is_due(store: ObjectStore, institution: str, redo: RebuildMode) -> bool:
    """Return whether a run segments an institution; `redo` is the choice of the run config."""
    wanted, built = wanted_institutions(store), built_inputs(store, SOURCE_RECORDS)
    if redo is RebuildMode.all or built.get(institution) != wanted.get(institution):
        return True
    if redo is RebuildMode.outdated and institution in outdated_institutions(store):
        return True
    is_whole = store.exists(records_path(institution))
    return not is_whole or any(record_problems(institution, store=store))


def _placed(store: ObjectStore, institution: str) -> dict[str, Any]:
    return {
        "dagster/uri": store.uri(records_path(institution)),
        # Of the whole dataset: institutions that another version of the segmenter made.
        "institutions_outdated": len(outdated_institutions(store)),
    }


def _shown(report: RecordsReport) -> dict[str, Any]:  # Dagster takes any of its metadata types
    return {
        "dagster/partition_row_count": report.blocks_kept,
        "pages_seen": report.pages_seen,
        "pages_failed": report.pages_failed,
        "pages_empty": report.pages_empty,
        "failed_share": report.failed_share,
        "blocks_total": report.blocks_total,
        "blocks_kept": report.blocks_kept,
        "blocks_deduped": report.blocks_deduped,
        "dropped": markdown_table(("reason", "blocks"), report.dropped.items()),
        "languages": markdown_table(("language", "blocks"), report.languages.items()),
        "changes": report.changes,
        "new_changes": report.new_changes.height,
        "samples_path": samples_path(report.institution),
        "failures": markdown_table(("snapshot", "error"), report.failures),
    }


@check(SOURCE_RECORDS)
def records_are_sound(resources: Resources, key: str) -> Iterable[str]:
    """Every record has text and a complete provenance, and the order increases within a page.

    If red: the file was changed manually or by another version; materialize the institution
    again.
    """
    store = resources.data_root.store
    return record_problems(key, store=store) if key in built_inputs(store, SOURCE_RECORDS) else ()


@check(SOURCE_RECORDS)
def few_pages_fail(resources: Resources, key: str) -> dg.AssetCheckResult:
    """The share of failed pages does not exceed a fifth.

    If red: the metadata of the last materialization lists failed snapshots with their errors;
    crawl those pages again and add the new files beside the old ones.
    """
    store = resources.data_root.store
    marker = read_markers(store, DATASET).get(key)
    found = read_report(store, marker) if marker else {"pages_seen": 0, "pages_failed": 0}
    allowed = resources.settings.source_records.failed_share
    share = int(str(found["pages_failed"])) / (int(str(found["pages_seen"])) or 1)
    return dg.AssetCheckResult(
        passed=share <= allowed, metadata={"failed_share": share, "allowed": allowed}
    )


@dg.sensor(
    description=(
        "Adds a partition for every institution with snapshots, observes changed files, and "
        "records the current segmentation options."
    ),
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def watch_page_snapshots(
    context: dg.SensorEvaluationContext, platform: Platform
) -> dg.SensorResult | dg.SkipReason:
    """Compare the snapshots with those of the last tick, and record the current options.

    A changed rule file or setting makes all institutions out of date.
    """
    store = platform.data_root.store
    if reason := skip_reason(store):
        return reason
    declare_options(store, segment_options(platform.settings.source_records))
    found = wanted_institutions(store)
    return observe_changes(context, store, "page_snapshots", found, INSTITUTIONS)


def _redone(resources: Resources) -> Mapping[str, str]:
    """Return the institutions that another version of the segmenter made, if the settings say so.

    The fingerprint is the version, so that each is requested once for it.
    """
    is_wanted = resources.settings.source_records.redo_outdated
    keys = outdated_institutions(resources.data_root.store) if is_wanted else ()
    return dict.fromkeys(keys, SEGMENTER_VERSION)


RECORDS_RULE = rebuild_rule(
    SOURCE_RECORDS,
    wanted=lambda resources: wanted_institutions(resources.data_root.store),
    redone=_redone,
    outdated=lambda resources: len(outdated_institutions(resources.data_root.store)),
)
