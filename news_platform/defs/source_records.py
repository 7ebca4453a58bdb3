"""The Dagster assets of source_records: stored page snapshots and the records made from them."""

from typing import Any

import dagster as dg

from news_platform.datasets.source_records import SNAPSHOTS_FOLDER, SOURCE_RECORDS, records_path
from news_platform.defs.metadata import markdown_table, table_metadata
from news_platform.defs.reconcile import PAUSED, observe_changes, reconciling_sensor
from news_platform.defs.staleness import Staleness
from news_platform.resources import DataRoot, records_options, segment_options
from news_platform.source_records.pipeline import (
    DATASET,
    RecordsReport,
    build_institution,
    built_institutions,
    declare_options,
    record_problems,
    wanted_institutions,
)
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.commit.root import is_paused

GROUP = "source_records"
OWNERS = [f"team:{GROUP}"]
INSTITUTIONS = dg.DynamicPartitionsDefinition(name="institutions")

page_snapshots = dg.AssetSpec(
    "page_snapshots",
    description=(
        "Pages of institutions as a crawler stored them: Firecrawl v2 JSON, HTML, Markdown or text "
        "under `snapshots/institution=ID/`. Nothing is fetched; a file in this folder is enough."
    ),
    partitions_def=INSTITUTIONS,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"json"},
    metadata={"path": f"{SNAPSHOTS_FOLDER}/institution={{institution}}/*.json"},
)


@dg.asset(
    partitions_def=INSTITUTIONS,
    deps=[page_snapshots],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet"},
    metadata=table_metadata(SOURCE_RECORDS),
)
def source_records(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """Clean, ordered blocks of an institution's pages, each with its section and its source.

    Menus, footers, other languages and duplicates are dropped; a page that cannot be read goes to
    quarantine with its error.
    """
    store, institution = data_root.store, context.partition_key
    options = records_options(data_root.settings.source_records)
    report = build_institution(institution, store=store, options=options)
    return dg.MaterializeResult(
        metadata=_shown(report) | {"dagster/uri": store.uri(records_path(institution))}
    )


def _shown(report: RecordsReport) -> dict[str, Any]:  # Dagster takes any of its metadata types
    return {
        "dagster/partition_row_count": report.blocks_kept,
        "pages_seen": report.pages_seen,
        "pages_failed": report.pages_failed,
        "failed_share": report.failed_share,
        "blocks_total": report.blocks_total,
        "blocks_kept": report.blocks_kept,
        "blocks_deduped": report.blocks_deduped,
        "dropped": markdown_table(("reason", "blocks"), report.dropped.items()),
        "languages": markdown_table(("language", "blocks"), report.languages.items()),
        "samples": markdown_table(("section", "text"), report.samples),
        "failures": markdown_table(("snapshot", "error"), report.failures),
    }


@dg.asset_check(asset=source_records)
def records_are_sound(
    context: dg.AssetCheckExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.AssetCheckResult:
    """Every record has text and a complete provenance, and the order increases within a page.

    If red: the file was changed manually or by another version; materialize the institution
    again.
    """
    keys = _institutions(context, data_root)
    problems = [text for key in keys for text in record_problems(key, store=data_root.store)]
    return dg.AssetCheckResult(
        passed=not problems, metadata={"problems": len(problems), "first": "\n".join(problems[:5])}
    )


@dg.asset_check(asset=source_records)
def few_pages_fail(
    context: dg.AssetCheckExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.AssetCheckResult:
    """The share of failed pages does not exceed NEWS_PLATFORM_RECORDS_FAILED_SHARE.

    If red: the metadata of the last materialization lists failed snapshots with their errors;
    crawl those pages again and add the new files beside the old ones, or increase the setting.
    """
    markers = read_markers(data_root.store, DATASET)
    allowed = data_root.settings.source_records.failed_share
    seen = failed = 0
    for key in _institutions(context, data_root):
        report = read_report(data_root.store, markers[key])
        seen += int(str(report["pages_seen"]))
        failed += int(str(report["pages_failed"]))
    share = failed / seen if seen else 0.0
    return dg.AssetCheckResult(
        passed=share <= allowed, metadata={"failed_share": share, "allowed": allowed}
    )


def _institutions(context: dg.AssetCheckExecutionContext, data_root: DataRoot) -> list[str]:
    if context.has_partition_key:
        return list(context.partition_keys)
    return sorted(built_institutions(data_root.store))


@dg.sensor(
    description=(
        "Adds a partition for every institution with snapshots, observes changed files, and "
        "records the current segmentation options."
    ),
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def watch_page_snapshots(
    context: dg.SensorEvaluationContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.SensorResult | dg.SkipReason:
    """Compare the snapshots with those of the last tick, and record the current options.

    A changed rule file or setting makes all institutions out of date.
    """
    if is_paused(data_root.store):
        return PAUSED
    options = segment_options(data_root.settings.source_records)
    declare_options(data_root.store, options)
    found = wanted_institutions(data_root.store)
    return observe_changes(context, "page_snapshots", found, INSTITUTIONS)


RECORDS_STALENESS = Staleness.by_fingerprint(
    "source_records", wanted_institutions, built_institutions
)
STALENESS = (RECORDS_STALENESS,)

defs = dg.Definitions(
    assets=[page_snapshots, source_records],
    asset_checks=[records_are_sound, few_pages_fail],
    sensors=[
        watch_page_snapshots,
        reconciling_sensor(RECORDS_STALENESS, dynamic_partitions=INSTITUTIONS),
    ],
)
