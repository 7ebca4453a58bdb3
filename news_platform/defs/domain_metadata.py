"""The Dagster assets of the domain survey: research files, queue, survey results and tables."""

import time
from collections.abc import Iterable, Mapping

import dagster as dg
import polars as pl

from news_platform.datasets.domain_metadata import DOMAIN_METADATA
from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.datasets.research_datasets import DOMAIN_QUEUE, RESEARCH_DATASETS, PartitionInfo
from news_platform.defs.assets import asset_spec, dataset_asset, rebuild_rule
from news_platform.defs.checks import Check, Reporter, check, evaluate_keys, verdict
from news_platform.defs.domain_automation import (
    plan_domain_resurveys,
    resurvey_due_domains,
    retry_unfinished_domains,
    seed_catalog_domains,
    survey_catalog_domains,
    watch_research_datasets,
)
from news_platform.defs.metadata import markdown_table, preview, run_metadata
from news_platform.defs.partitions import RESEARCH_BATCHES
from news_platform.defs.plots import changes_plot, policy_plot
from news_platform.defs.sensors import reconciling_sensor
from news_platform.defs.survey_trends import (
    domains_are_surveyed_in_time,
    newly_refusing_metadata,
    trend_metadata,
)
from news_platform.domain_metadata.pipeline import (
    failed_files,
    queue_batch,
    survey_over_web,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import raw_batches, read_raw_metadata
from news_platform.domain_metadata.results import iter_broken
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    POLICIES,
    TABLE_DATASET,
    USAGE_DATASET,
    build_changes,
    build_table,
    build_usage_signals,
    policy_counts,
    read_changes,
    read_facts,
    read_usage_signals,
    tabled_days,
)
from news_platform.resources import Clock, DataRoot, Ledger, Resources, Web, survey_options
from news_platform.storage.units import built_inputs

_SHOWN_FACTS = ("domain", "country", "outcome", "robots_status", "sitemap_kind", "sitemap_urls")


research_datasets = asset_spec(RESEARCH_DATASETS)


@check(
    "domain_queue",
    built=lambda resources: built_inputs(resources.data_root.store, DOMAIN_QUEUE),
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
    return built_inputs(resources.data_root.store, DOMAIN_METADATA)


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


@dataset_asset(DOMAIN_QUEUE, checks=QUEUE_CHECKS)
def domain_queue(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    clock: dg.ResourceParam[Clock],
    platform: dg.ResourceParam[Resources],
) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it bare beside checks
    """Queue the domains of a batch."""
    batch = PartitionInfo.parse(context.partition_key)
    queue = DomainQueue(ledger.engine)
    report = queue_batch(batch, store=data_root.store, queue=queue, now=clock.now())
    notes = read_raw_metadata(data_root.store, batch)
    return dg.MaterializeResult(
        metadata=run_metadata(
            DOMAIN_QUEUE,
            {
                "dagster/partition_row_count": len(queue.messages(batch.key)),
                "new_domains": report.new_domains,
                "files": report.files,
                "records": report.records,
                "dropped": markdown_table(("reason", "records"), report.dropped.items()),
                **({"raw_metadata": dg.MetadataValue.json(notes)} if notes is not None else {}),
            },
        ),
        check_results=_verdicts(QUEUE_CHECKS, context, platform),
    )


@dataset_asset(DOMAIN_METADATA, checks=METADATA_CHECKS)
def domain_metadata(
    context: dg.AssetExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
    platform: dg.ResourceParam[Resources],
) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it bare beside checks
    """Fetch the robots.txt and sitemap of every domain of a batch."""
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
        metadata=run_metadata(
            DOMAIN_METADATA,
            {
                "dagster/uri": data_root.store.uri(f"prod/{batch.folder}"),
                "dagster/partition_row_count": sum(report.outcomes.values()),
                "surveyed": report.surveyed,
                "finished_before": report.finished_before,
                "retries": report.retries,
                "outcomes": markdown_table(("outcome", "domains"), report.outcomes.items()),
                "ai_policies": _policy_table(report.ai_policies),
                "slowest_hosts": markdown_table(("domain", "seconds"), report.slowest),
                **{f"outcome_{name}": count for name, count in report.outcomes.items()},
            },
        ),
        check_results=_verdicts(METADATA_CHECKS, context, platform),
    )


@dataset_asset(DOMAIN_SURVEYS)
def domain_surveys(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """Write the survey results of a day as one table."""
    report = build_table(context.partition_key, store=data_root.store)
    facts = read_facts(data_root.store, report.date)
    counts = policy_counts(facts)
    outcomes = facts.group_by("outcome").len().sort("len", descending=True)
    return dg.MaterializeResult(
        metadata=run_metadata(
            DOMAIN_SURVEYS,
            {
                "dagster/partition_row_count": report.rows,
                "outcomes": markdown_table(outcomes.columns, outcomes.iter_rows()),
                "ai_policies": markdown_table(counts.columns, counts.iter_rows()),
                "dagster/uri": data_root.store.uri(f"{TABLE_DATASET}/date={report.date}"),
                "ai_policies_plot": policy_plot(counts),
                **trend_metadata(data_root.store, report.date),
                "preview": preview(DOMAIN_SURVEYS, facts, columns=_SHOWN_FACTS),
            },
        ),
    )


@dataset_asset(USAGE_SIGNALS)
def usage_signals(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """Write what the domains surveyed on a day state about use."""
    report = build_usage_signals(context.partition_key, store=data_root.store)
    rows = read_usage_signals(data_root.store, report.date)
    counts = rows.group_by("system", "label", "value").agg(domains=pl.col("domain").n_unique())
    ranked = counts.sort("domains", "system", "label", descending=[True, False, False])
    return dg.MaterializeResult(
        metadata=run_metadata(
            USAGE_SIGNALS,
            {
                "dagster/partition_row_count": report.rows,
                "dagster/uri": data_root.store.uri(f"{USAGE_DATASET}/date={report.date}"),
                "statements": preview(USAGE_SIGNALS, ranked),
                "preview": preview(
                    USAGE_SIGNALS, rows, columns=("domain", "system", "label", "value")
                ),
            },
        ),
    )


@dataset_asset(AI_POLICY_CHANGES)
def ai_policy_changes(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """Compare a day with each domain's last survey."""
    report = build_changes(context.partition_key, store=data_root.store)
    changes = read_changes(data_root.store, report.date)
    return dg.MaterializeResult(
        metadata=run_metadata(
            AI_POLICY_CHANGES,
            {
                "dagster/partition_row_count": report.rows,
                "dagster/uri": data_root.store.uri(f"{CHANGES_DATASET}/date={report.date}"),
                "changes": preview(AI_POLICY_CHANGES, changes),
                "changes_plot": changes_plot(changes),
                **newly_refusing_metadata(changes),
            },
        ),
    )


def _policy_table(counts: Mapping[str, Mapping[str, int]]) -> dg.MarkdownMetadataValue:
    ranked = sorted(counts, key=lambda bot: -counts[bot].get("disallow_all", 0))
    rows = [(bot, *(counts[bot].get(name, 0) for name in POLICIES)) for bot in ranked]
    return markdown_table(("bot", *POLICIES), rows)


RULES = (
    rebuild_rule(DOMAIN_QUEUE, wanted=lambda it: raw_batches(it.data_root.store)),
    rebuild_rule(DOMAIN_METADATA),
    rebuild_rule(DOMAIN_SURVEYS),
    rebuild_rule(USAGE_SIGNALS),
    rebuild_rule(AI_POLICY_CHANGES, wanted=lambda it: tabled_days(it.data_root.store)),
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
