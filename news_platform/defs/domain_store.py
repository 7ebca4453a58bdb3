"""The assets of the domain store: staged days, the store by bucket range, and the catalog."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import dagster as dg

from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import DOMAIN_CATALOG, DOMAIN_STORE
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partitions import DAYS, FOUR_A_RUN, SEVEN_A_RUN
from news_platform.defs.plots import growth_plot
from news_platform.defs.reconcile import reconciling_sensor
from news_platform.defs.staleness import WHOLE, Staleness
from news_platform.domain_store.building.verify import (
    iter_count_problems,
    iter_orphan_problems,
    iter_read_problems,
)
from news_platform.domain_store.catalog import StoreStats, catalog_inputs, read_stats, write_catalog
from news_platform.domain_store.layout import range_buckets
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.pipeline import BuildReport, build_range
from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.domain_store.staging.inputs import day_input, staged_days, wanted_days
from news_platform.domain_store.staging.stage import (
    StageReport,
    built_ranges,
    stage_input,
    wanted_ranges,
)
from news_platform.resources import Clock, DataRoot, build_options
from news_platform.storage.commit.markers import read_inputs, read_markers, read_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table

GROUP = "domain_store"
OWNERS = ["team:domain_store"]
# Batches in the plot of the store's growth.
_SHOWN_BATCHES = 30
_SHOWN_BUCKETS = 10
# The number of ranges depends on the store's number of buckets, so the first build adds the keys.
RANGES = dg.DynamicPartitionsDefinition(name="domain_store_ranges")


def _options(data_root: DataRoot) -> BuildOptions:
    return build_options(data_root.settings.domain_store, data_root.store)


@dg.asset(
    partitions_def=DAYS,
    deps=["raw_news"],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"json", "gzip"},
    backfill_policy=SEVEN_A_RUN,
    metadata=table_metadata(DOMAIN_BUCKETS),
)
def domain_buckets(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """The pages of a day, staged by hash bucket and sorted by domain.

    The bucket is xxh64 of the domain modulo the number of buckets. Staging a day again replaces it;
    a day whose pages are gone is removed.
    """
    store, options = data_root.store, _options(data_root)
    for day in context.partition_keys:
        report = stage_input(day_input(store, day), store=store, batch=day, options=options)
        metadata = {
            **_stage_metadata(report),
            **column_lineage("domain_buckets"),
            "dagster/uri": store.uri(DOMAIN_BUCKETS.name),
        }
        context.add_asset_metadata(metadata, partition_key=day)


def _stage_metadata(report: StageReport) -> Mapping[str, object]:
    largest = _largest(report)
    return {
        "dagster/partition_row_count": report.records,
        "domains": report.domains,
        "bytes": report.bytes,
        "buckets": len(report.cells),
        "spilled_runs": report.spilled_runs,
        "largest_buckets": markdown_table(("bucket", "files", "records", "bytes"), largest),
    }


def _largest(report: StageReport) -> Sequence[Sequence[object]]:
    """Return the largest buckets with their files, records and bytes, largest first."""
    rows = [(bucket, *cell) for bucket, cell in report.cells.items()]
    return sorted(rows, key=lambda row: (-row[-1], row[0]))[:_SHOWN_BUCKETS]


CHECKS = {
    "counts_equal_stage_1": "Each bucket has as many records of the newest batches as were staged. "
    "If red: materialize the range again, which also rebuilds missing files; if it stays red, "
    "`store verify` names the file.",
    "index_readable": "Every fragment of a sample of domains exists and holds that domain. "
    "If red: data files were changed or deleted outside the platform; `store verify` lists them. "
    "Delete the changed ones and run `store repair`, which rebuilds them from the staged batches.",
    "no_orphans": "No file is older than the grace period without belonging to a generation. "
    "If red: a builder was killed and left files. Readers are not affected; `store compact` "
    "deletes the files.",
}


@dg.asset(
    partitions_def=RANGES,
    deps=[dg.AssetDep(domain_buckets, partition_mapping=dg.AllPartitionMapping())],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"json", "gzip"},
    backfill_policy=FOUR_A_RUN,
    metadata=table_metadata(DOMAIN_STORE),
    check_specs=[
        dg.AssetCheckSpec(name, asset="domain_store", description=text)
        for name, text in CHECKS.items()
    ],
)
def domain_store(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    clock: dg.ResourceParam[Clock],
) -> dg.MaterializeResult:  # type: ignore[type-arg] # with checks Dagster knows only the bare name
    """All records by domain, for sixteen buckets; one range read returns a domain.

    Data files hold the records sorted by domain; `metadata/BUCKET.jsonl` has the byte range of each
    domain. New batches are merged in and changed ones replaced. Readers see either the old or the
    new generation of a bucket.
    """
    store, options, now = data_root.store, _options(data_root), clock.now()
    numbers: list[int] = []
    for key in context.partition_keys:
        report = build_range(key, store=store, options=options, now=now)
        buckets = range_buckets(key, options.buckets)
        stats = read_stats(DomainStore(store), buckets)
        metadata = {
            **_range_metadata(report, stats),
            **column_lineage("domain_store"),
            "dagster/uri": store.uri(DOMAIN_STORE.name),
        }
        context.add_asset_metadata(metadata, partition_key=key)
        numbers.extend(buckets)
    return dg.MaterializeResult(check_results=_checks(store, numbers, options=options, now=now))


def _checks(
    store: ObjectStore, buckets: Sequence[int], *, options: BuildOptions, now: datetime
) -> list[dg.AssetCheckResult]:
    seed = int(now.timestamp())
    oldest = now - options.grace - timedelta(days=1)
    return [
        _check("counts_equal_stage_1", iter_count_problems(store, buckets)),
        _check("index_readable", iter_read_problems(store, buckets, seed=seed)),
        _check("no_orphans", iter_orphan_problems(store, buckets, before=oldest)),
    ]


def _range_metadata(report: BuildReport, stats: StoreStats) -> Mapping[str, object]:
    return {
        "dagster/partition_row_count": stats.records,
        "domains": stats.domains,
        "bytes": stats.bytes,
        "fragments_per_domain": stats.fragments_per_domain,
        "bytes_written": report.total("bytes_written"),
        "batches_added": report.total("batches_added"),
        "batches_removed": report.total("batches_removed"),
        "top_domains": markdown_table(["domain", "records", "bytes"], stats.top),
        "records_per_domain": markdown_table(["records", "domains"], stats.histogram),
    }


def _check(name: str, problems: Iterable[str]) -> dg.AssetCheckResult:
    found = list(problems)
    return dg.AssetCheckResult(
        check_name=name,
        asset_key="domain_store",
        passed=not found,
        metadata={"problems": len(found), "first": "\n".join(found[:5])},
    )


@dg.asset(
    deps=[dg.AssetDep(domain_store, partition_mapping=dg.AllPartitionMapping())],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet"},
    metadata=table_metadata(DOMAIN_CATALOG),
)
def domain_catalog(data_root: dg.ResourceParam[DataRoot]) -> dg.MaterializeResult[None]:
    """Every domain of the crawl: number of records, languages, first and last day."""
    store = data_root.store
    report = write_catalog(store, inputs=catalog_inputs(store) or "")
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": report.domains,
            "dagster/uri": store.uri(DOMAIN_CATALOG.path),
            "records": report.records,
            "bytes": report.bytes,
            "top_domains": markdown_table(["domain", "records"], report.top),
            "growth": _growth(store),
            **column_lineage("domain_catalog"),
        }
    )


def _growth(store: ObjectStore) -> dg.MarkdownMetadataValue:
    catalog = read_table(store, DOMAIN_CATALOG.path, DOMAIN_CATALOG)
    staged = read_markers(store, DOMAIN_BUCKETS.name)
    newest = {key: read_report(store, staged[key]) for key in sorted(staged)[-_SHOWN_BATCHES:]}
    records = {key: int(str(report["records"])) for key, report in newest.items()}
    return growth_plot(catalog["first_seen"].drop_nulls().to_list(), records)


def wanted_catalog(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint to build the catalog from; none while the ranges differ."""
    inputs = catalog_inputs(store)
    return {} if inputs is None else {WHOLE: inputs}


def built_catalog(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that the catalog was built from."""
    return read_inputs(store, DOMAIN_CATALOG.name)


BUCKETS_STALENESS = Staleness.by_fingerprint("domain_buckets", wanted_days, staged_days)
STORE_STALENESS = Staleness.by_fingerprint("domain_store", wanted_ranges, built_ranges)
CATALOG_STALENESS = Staleness.by_fingerprint("domain_catalog", wanted_catalog, built_catalog)
STALENESS = (BUCKETS_STALENESS, STORE_STALENESS, CATALOG_STALENESS)

defs = dg.Definitions(
    assets=[domain_buckets, domain_store, domain_catalog],
    sensors=[
        reconciling_sensor(BUCKETS_STALENESS),
        reconciling_sensor(STORE_STALENESS, dynamic_partitions=RANGES),
        reconciling_sensor(CATALOG_STALENESS),
    ],
)
