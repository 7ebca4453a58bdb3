"""The Dagster assets of the domain survey: research files, queue, survey results and tables."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import le

import dagster as dg
import polars as pl

from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.defs.checks import Check, Reporter, check, evaluate_keys, verdict
from news_platform.defs.domain_automation import (
    RESEARCH_BATCHES,
    plan_domain_resurveys,
    resurvey_due_domains,
    retry_unfinished_domains,
    seed_catalog_domains,
    survey_catalog_domains,
    watch_research_datasets,
)
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.plots import changes_plot, policy_plot
from news_platform.defs.rebuild_rules import Parent, RebuildRule, same_partition
from news_platform.defs.sensors import reconciling_sensor
from news_platform.defs.survey_trends import (
    domains_are_surveyed_in_time,
    newly_refusing_metadata,
    trend_metadata,
)
from news_platform.domain_metadata.change_inputs import tabled_days
from news_platform.domain_metadata.pipeline import (
    METADATA_DATASET,
    QUEUE_DATASET,
    failed_files,
    queue_batch,
    queued_inputs,
    survey_over_web,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import raw_batches, read_raw_metadata
from news_platform.domain_metadata.results import iter_broken
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    POLICIES,
    TABLE_DATASET,
    build_changes,
    build_table,
    build_usage_signals,
    policy_counts,
    read_changes,
    read_facts,
    read_usage_signals,
    surveyed_days,
)
from news_platform.domain_metadata.usage_table import USAGE_DATASET
from news_platform.resources import Clock, DataRoot, Ledger, Resources, Web, survey_options
from news_platform.storage.commit.markers import read_inputs
from news_platform.storage.objects.store import ObjectStore

GROUP = "domain_metadata"
OWNERS = [f"team:{GROUP}"]
SURVEY_DAYS = dg.DynamicPartitionsDefinition(name="survey_days")

_SHOWN_ROWS = 20
_SHOWN_FACTS = ("domain", "country", "outcome", "robots_status", "sitemap_kind", "sitemap_urls")


research_datasets = dg.AssetSpec(
    "research_datasets",
    description=(
        "Research files as uploaded, never changed: "
        "`raw/country=CC/category=CAT/date=D/raw_NNNN.json`. A batch is one country, one category "
        "and one day."
    ),
    partitions_def=RESEARCH_BATCHES,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"json"},
    metadata={"path": "raw/country={country}/category={category}/date={date}/raw_NNNN.json"},
)


@check(
    "domain_queue",
    built=lambda resources: read_inputs(resources.data_root.store, QUEUE_DATASET),
    partitions_def=RESEARCH_BATCHES,
)
def research_files_are_taken(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Every research file is readable and unchanged since it was accepted.

    If red: the table of failed files lists each with its reason; upload a corrected file under the
    next number, never over the old one.
    """
    queue = DomainQueue(resources.ledger.engine)
    failed = failed_files(PartitionInfo.parse(key), store=resources.data_root.store, queue=queue)
    return dg.AssetCheckResult(
        passed=not failed,
        metadata={"failed": markdown_table(("file", "reason"), failed.items())},
    )


def _surveyed(resources: Resources) -> Iterable[str]:
    return read_inputs(resources.data_root.store, METADATA_DATASET)


@check("domain_metadata", built=_surveyed, partitions_def=RESEARCH_BATCHES)
def every_message_has_an_outcome(resources: Resources, key: str) -> dg.AssetCheckResult:
    """No domain of the batch is still waiting for its survey.

    If red: hosts did not answer; `retry_unfinished_domains` tries them again every night.
    Materialize the batch to try now; `domains show DOMAIN` shows the last reason.
    """
    outcomes = DomainQueue(resources.ledger.engine).outcomes(key)
    waiting = outcomes.get("waiting", 0)
    return dg.AssetCheckResult(
        passed=waiting == 0, metadata={"waiting": waiting, "domains": sum(outcomes.values())}
    )


@check("domain_metadata", built=_surveyed, partitions_def=RESEARCH_BATCHES)
def success_means_complete(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Every domain with a .success marker has all its files, with the recorded sha256.

    If red: files under prod/ were changed or deleted while the batch was surveyed; materialize it
    again: only the listed domains are surveyed again.
    """
    return verdict(list(iter_broken(resources.data_root.store, PartitionInfo.parse(key))))


QUEUE_CHECKS = (research_files_are_taken,)
METADATA_CHECKS = (every_message_has_an_outcome, success_means_complete)
CHECKS = (*QUEUE_CHECKS, *METADATA_CHECKS, domains_are_surveyed_in_time)


def _verdicts(
    checks: Iterable[Check], context: dg.AssetExecutionContext, platform: Resources
) -> list[dg.AssetCheckResult]:
    keys = list(context.partition_keys)
    reporter = Reporter(context.instance, context.run.run_id)
    return [evaluate_keys(one, keys, platform, reporter) for one in checks]


@dg.asset(
    partitions_def=RESEARCH_BATCHES,
    deps=[research_datasets],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"sql"},
    check_specs=[one.spec for one in QUEUE_CHECKS],
)
def domain_queue(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    clock: dg.ResourceParam[Clock],
    platform: dg.ResourceParam[Resources],
) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it bare beside checks
    """One durable message for every domain in the research files of a batch."""
    batch = PartitionInfo.parse(context.partition_key)
    queue = DomainQueue(ledger.engine)
    report = queue_batch(batch, store=data_root.store, queue=queue, now=clock.now())
    notes = read_raw_metadata(data_root.store, batch)
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(queue.messages(batch.key)),
            "new_domains": report.new_domains,
            "files": report.files,
            "records": report.records,
            "dropped": markdown_table(("reason", "records"), report.dropped.items()),
            **column_lineage("domain_queue"),
            **({"raw_metadata": dg.MetadataValue.json(notes)} if notes is not None else {}),
        },
        check_results=_verdicts(QUEUE_CHECKS, context, platform),
    )


@dg.asset(
    partitions_def=RESEARCH_BATCHES,
    deps=[domain_queue, dg.AssetKey("domain_catalog")],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"json"},
    metadata={"path": "prod/country={country}/category={category}/date={date}/{sanitized_domain}/"},
    check_specs=[one.spec for one in METADATA_CHECKS],
)
def domain_metadata(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
    platform: dg.ResourceParam[Resources],
) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it bare beside checks
    """The robots.txt, sitemap and AI policies of every domain of a batch."""
    batch = PartitionInfo.parse(context.partition_key)
    report = survey_over_web(
        batch,
        web=web.fetch_options,
        queue=DomainQueue(ledger.engine),
        store=data_root.store,
        clock=clock.now,
        seconds=time.time,
        worker=context.run.run_id,
        options=survey_options(data_root.settings.domain_metadata, web),
    )
    return dg.MaterializeResult(
        metadata={
            "dagster/uri": data_root.store.uri(f"prod/{batch.folder}"),
            "dagster/partition_row_count": sum(report.outcomes.values()),
            "surveyed": report.surveyed,
            "finished_before": report.finished_before,
            "retries": report.retries,
            "outcomes": markdown_table(("outcome", "domains"), report.outcomes.items()),
            "ai_policies": _policy_table(report.ai_policies),
            "slowest_hosts": markdown_table(("domain", "seconds"), report.slowest),
            **column_lineage("domain_metadata"),
            **{f"outcome_{name}": count for name, count in report.outcomes.items()},
        },
        check_results=_verdicts(METADATA_CHECKS, context, platform),
    )


@dg.asset(
    partitions_def=SURVEY_DAYS,
    # A day consists of several batches; without this mapping a backfill would look for batches
    # whose keys are days.
    deps=[dg.AssetDep(domain_metadata, partition_mapping=dg.AllPartitionMapping())],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet"},
    metadata=table_metadata(DOMAIN_SURVEYS),
)
def domain_surveys(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """The survey results of a day as one Parquet table, for analysts."""
    report = build_table(context.partition_key, store=data_root.store)
    facts = read_facts(data_root.store, report.date)
    counts = policy_counts(facts)
    outcomes = facts.group_by("outcome").len().sort("len", descending=True)
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": report.rows,
            "outcomes": markdown_table(outcomes.columns, outcomes.iter_rows()),
            "ai_policies": markdown_table(counts.columns, counts.iter_rows()),
            "dagster/uri": data_root.store.uri(f"{TABLE_DATASET}/date={report.date}"),
            "ai_policies_plot": policy_plot(counts),
            **trend_metadata(data_root.store, report.date),
            "preview": _preview(facts.select(_SHOWN_FACTS)),
            **column_lineage("domain_surveys"),
        }
    )


@dg.asset(
    partitions_def=SURVEY_DAYS,
    deps=[dg.AssetDep(domain_metadata, partition_mapping=dg.AllPartitionMapping())],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet"},
    metadata=table_metadata(USAGE_SIGNALS),
)
def usage_signals(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """What the domains surveyed on a day state about crawling and AI use, beyond access rules."""
    report = build_usage_signals(context.partition_key, store=data_root.store)
    rows = read_usage_signals(data_root.store, report.date)
    counts = rows.group_by("system", "label", "value").agg(domains=pl.col("domain").n_unique())
    ranked = counts.sort("domains", "system", "label", descending=[True, False, False])
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": report.rows,
            "dagster/uri": data_root.store.uri(f"{USAGE_DATASET}/date={report.date}"),
            "statements": _preview(ranked),
            "preview": _preview(rows.select("domain", "system", "label", "value", "raw")),
            **column_lineage("usage_signals"),
        }
    )


@dg.asset(
    partitions_def=SURVEY_DAYS,
    deps=[domain_surveys, usage_signals],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"parquet"},
    metadata=table_metadata(AI_POLICY_CHANGES),
)
def ai_policy_changes(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """Policies and statements about AI use that changed since each domain's last survey."""
    report = build_changes(context.partition_key, store=data_root.store)
    changes = read_changes(data_root.store, report.date)
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": report.rows,
            "dagster/uri": data_root.store.uri(f"{CHANGES_DATASET}/date={report.date}"),
            "changes": _preview(changes),
            "changes_plot": changes_plot(changes),
            **newly_refusing_metadata(changes),
            **column_lineage("ai_policy_changes"),
        }
    )


def _preview(rows: pl.DataFrame) -> dg.MarkdownMetadataValue:
    return markdown_table(rows.columns, rows.head(_SHOWN_ROWS).iter_rows())


def _policy_table(counts: Mapping[str, Mapping[str, int]]) -> dg.MarkdownMetadataValue:
    ranked = sorted(counts, key=lambda bot: -counts[bot].get("disallow_all", 0))
    rows = [(bot, *(counts[bot].get(name, 0) for name in POLICIES)) for bot in ranked]
    return markdown_table(("bot", *POLICIES), rows)


def _is_of_day(batch: str, day: str) -> bool:
    """Return whether a batch of the survey belongs to a day."""
    return PartitionInfo.parse(batch).date == day


def _staleness(
    asset: str,
    wanted: Callable[[ObjectStore], Mapping[str, str]],
    dataset: str,
    *parents: Parent,
    partitions: dg.DynamicPartitionsDefinition,
) -> RebuildRule:
    return RebuildRule.by_fingerprint(
        asset,
        wanted=wanted,
        built=lambda store: read_inputs(store, dataset),
        parents=parents,
        partitions=partitions,
    )


RULES = (
    _staleness(
        "domain_queue",
        raw_batches,
        QUEUE_DATASET,
        Parent("research_datasets", same_partition),
        partitions=RESEARCH_BATCHES,
    ),
    _staleness(
        "domain_metadata",
        queued_inputs,
        METADATA_DATASET,
        Parent("domain_queue", same_partition),
        partitions=RESEARCH_BATCHES,
    ),
    _staleness(
        "domain_surveys",
        surveyed_days,
        TABLE_DATASET,
        Parent("domain_metadata", _is_of_day),
        partitions=SURVEY_DAYS,
    ),
    _staleness(
        "usage_signals",
        partial(surveyed_days, dataset=USAGE_DATASET),
        USAGE_DATASET,
        Parent("domain_metadata", _is_of_day),
        partitions=SURVEY_DAYS,
    ),
    _staleness(
        "ai_policy_changes",
        tabled_days,
        CHANGES_DATASET,
        *(Parent(name, le) for name in (TABLE_DATASET, USAGE_DATASET)),  # also of days before it
        partitions=SURVEY_DAYS,
    ),
)

defs = dg.Definitions(
    assets=[
        research_datasets,
        domain_queue,
        domain_metadata,
        domain_surveys,
        usage_signals,
        ai_policy_changes,
    ],
    asset_checks=[domains_are_surveyed_in_time.definition],
    jobs=[seed_catalog_domains, plan_domain_resurveys],
    schedules=[retry_unfinished_domains, resurvey_due_domains],
    sensors=[
        watch_research_datasets,
        survey_catalog_domains,
        *(reconciling_sensor(rule) for rule in RULES),
    ],
)
