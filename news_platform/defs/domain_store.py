"""The assets of the domain store: staged days, the store by bucket range, and the catalog."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import dagster as dg

from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_store import DOMAIN_BUCKETS, DOMAIN_CATALOG, DOMAIN_STORE
from news_platform.defs.assets import (
    Metadata,
    PartitionMetadata,
    dataset_asset,
    may_remove,
    rebuild_rule,
)
from news_platform.defs.checks import check
from news_platform.defs.metadata import growth_plot, markdown_table
from news_platform.defs.rebuild_rules import Platform, unsettled
from news_platform.domain_store.building.builder import require_allowed, staging_removal
from news_platform.domain_store.building.verify import (
    iter_count_problems,
    iter_orphan_problems,
    iter_read_problems,
)
from news_platform.domain_store.catalog import StoreStats, read_stats, write_catalog
from news_platform.domain_store.layout import (
    STORE_FILE,
    BuildOptions,
    range_buckets,
    range_keys,
)
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import read_bucket_count
from news_platform.domain_store.pipeline import BuildReport, build_range
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import (
    StageReport,
    built_ranges,
    stage_input,
    wanted_ranges,
)
from news_platform.resources import Resources, build_options
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.units import wanted_inputs

# Batches in the plot of the store's growth.
_SHOWN_BATCHES = 30
_SHOWN_BUCKETS = 10


def _options(context: dg.AssetExecutionContext, platform: Resources) -> BuildOptions:
    options = build_options(platform.settings.domain_store, platform.data_root.store)
    return replace(options, allow_removal=may_remove(context))


@dataset_asset(DOMAIN_BUCKETS)
def domain_buckets(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Stage the pages of days by bucket."""
    store, options = platform.data_root.store, _options(context, platform)
    require_allowed(staging_removal(store, context.partition_keys), options)
    for day in context.partition_keys:
        now = platform.clock.now()
        report = stage_input(
            day_input(store, day), store=store, batch=day, options=options, now=now
        )
        yield day, {**_stage_metadata(report), "dagster/uri": store.uri(DOMAIN_BUCKETS.name)}


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


def _built_ranges(resources: Resources) -> list[str]:
    return sorted(built_ranges(resources.data_root.store))


def _range(resources: Resources, key: str) -> tuple[ObjectStore, Sequence[int]]:
    """Return the store and the buckets of a range; none for a range that is not built."""
    store = resources.data_root.store
    is_built = key in built_ranges(store)
    return store, range_buckets(key, read_bucket_count(store)) if is_built else ()


@check(DOMAIN_STORE, built=_built_ranges)
def counts_equal_stage_1(resources: Resources, key: str) -> Iterable[str]:
    """Each bucket has as many records of the newest batches as were staged.

    If red: materialize the range again, which also rebuilds missing files; if it stays red,
    `store verify` names the file.
    """
    return iter_count_problems(*_range(resources, key))


@check(DOMAIN_STORE, built=_built_ranges, blocking=True)
def index_readable(resources: Resources, key: str) -> Iterable[str]:
    """Every fragment of a sample of domains exists and holds that domain.

    If red: data files were changed or deleted outside the platform; `store verify` lists them.
    Delete the changed ones and run `store repair`, which rebuilds them from the staged batches.
    """
    seed = int(resources.clock.now().timestamp())
    store, buckets = _range(resources, key)
    return iter_read_problems(store, buckets, seed=seed) if buckets else ()


@check(DOMAIN_STORE, built=_built_ranges)
def no_orphans(resources: Resources, key: str) -> Iterable[str]:
    """No file is older than the grace period without belonging to a generation.

    If red: a builder was killed and left files. Readers are not affected; `store compact` deletes
    the files.
    """
    grace = timedelta(days=resources.settings.domain_store.grace_days + 1)
    oldest = resources.clock.now() - grace
    return iter_orphan_problems(*_range(resources, key), before=oldest)


@dataset_asset(DOMAIN_STORE)
def domain_store(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Merge new batches into ranges of buckets, and replace changed ones."""
    store, now = platform.data_root.store, platform.clock.now()
    options = _options(context, platform)
    for key in context.partition_keys:
        report = build_range(key, store=store, options=options, now=now)
        stats = read_stats(DomainStore(store), range_buckets(key, options.buckets))
        yield key, {**_range_metadata(report, stats), "dagster/uri": store.uri(DOMAIN_STORE.name)}


def _range_metadata(report: BuildReport, stats: StoreStats) -> Mapping[str, object]:
    return {
        "dagster/partition_row_count": stats.records,
        "domains": stats.domains,
        "bytes": stats.bytes,
        "fragments_per_domain": stats.fragments_per_domain,
        "bytes_written": report.total("bytes_written"),
        "bytes_added": report.total("bytes_added"),
        "batches_added": report.total("batches_added"),
        "batches_removed": report.total("batches_removed"),
        "top_domains": markdown_table(["domain", "records", "bytes"], stats.top),
        "records_per_domain": markdown_table(["records", "domains"], stats.histogram),
    }


@dataset_asset(DOMAIN_CATALOG)
def domain_catalog(platform: Platform) -> Metadata:
    """Write the catalog of all domains."""
    store = platform.data_root.store
    report = write_catalog(store, inputs=wanted_inputs(store, DOMAIN_CATALOG).get(WHOLE, ""))
    return {
        "dagster/row_count": report.domains,
        "dagster/uri": store.uri(DOMAIN_CATALOG.path),
        "records": report.records,
        "bytes": report.bytes,
        "top_domains": markdown_table(["domain", "records"], report.top),
        "growth": _growth(store),
    }


def _growth(store: ObjectStore) -> dg.MarkdownMetadataValue:
    catalog = read_table(store, DOMAIN_CATALOG.path, DOMAIN_CATALOG)
    staged = read_markers(store, DOMAIN_BUCKETS.name)
    newest = {key: read_report(store, staged[key]) for key in sorted(staged)[-_SHOWN_BATCHES:]}
    records = {key: int(str(report["records"])) for key, report in newest.items()}
    return growth_plot(catalog["first_seen"].drop_nulls().to_list(), records)


def _ranges(resources: Resources) -> Sequence[str]:
    """Return all ranges of the store; of a new one, those that the settings give it."""
    store = resources.data_root.store
    is_there = store.exists(STORE_FILE)
    wanted = resources.settings.domain_store.buckets
    return range_keys(read_bucket_count(store) if is_there else wanted)


BUCKETS_RULE = rebuild_rule(DOMAIN_BUCKETS, holds=unsettled(DOMAIN_BUCKETS))
STORE_RULE = rebuild_rule(
    DOMAIN_STORE,
    wanted=lambda resources: wanted_ranges(resources.data_root.store),
    built=lambda resources: built_ranges(resources.data_root.store),
    # Before the first day is staged: the catalog waits for every range that exists.
    keys=_ranges,
)
CATALOG_RULE = rebuild_rule(
    DOMAIN_CATALOG, is_behind=lambda resources: bool(STORE_RULE.stale(resources))
)
