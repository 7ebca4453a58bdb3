"""The Dagster assets of the domain survey: research files, queue, survey results and tables."""

from collections.abc import Iterable, Mapping

import dagster as dg
import polars as pl

from news_platform.composition.survey_stages import resurvey_plan, survey
from news_platform.datasets.domain_metadata import DOMAIN_METADATA
from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.datasets.research_datasets import DOMAIN_QUEUE, RESEARCH_DATASETS, PartitionInfo
from news_platform.defs.assets import (
    Metadata,
    PartitionMetadata,
    asset_spec,
    dataset_asset,
    rebuild_rule,
)
from news_platform.defs.checks import check
from news_platform.defs.metadata import (
    changes_plot,
    markdown_table,
    policy_plot,
    preview,
    trend_plot,
)
from news_platform.defs.rebuild_rules import Platform
from news_platform.domain_metadata.history import (
    by_country,
    newly_refusing,
    read_surveys,
    shares,
    standing,
    trend,
)
from news_platform.domain_metadata.pipeline import (
    failed_files,
    queue_batch,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import raw_batches, read_raw_metadata
from news_platform.domain_metadata.results import iter_broken
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
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
from news_platform.resources import Resources, resurvey_options
from news_platform.storage.objects.store import ObjectStore

_SHOWN_ROWS = 30
# A few hosts are always late: those that do not answer are tried every night.
_LEAST_IN_TIME = 0.95
_SHOWN_FACTS = ("domain", "country", "outcome", "robots_status", "sitemap_kind", "sitemap_urls")

research_datasets = asset_spec(RESEARCH_DATASETS)


@check(DOMAIN_QUEUE)
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


@check(DOMAIN_METADATA)
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


@check(DOMAIN_METADATA)
def success_means_complete(resources: Resources, key: str) -> Iterable[str]:
    """Every domain with a .success marker has all its files, with the recorded sha256.

    If red: files under prod/ were changed or deleted while the batch was surveyed; materialize it
    again: only the listed domains are surveyed again.
    """
    return iter_broken(resources.data_root.store, PartitionInfo.parse(key))


@check(DOMAIN_METADATA, is_whole=True)
def domains_are_surveyed_in_time(resources: Resources, _key: str) -> dg.AssetCheckResult:
    """At least 95 % of all domains were surveyed within their interval and a day.

    If red: the schedule `resurvey_due_domains` is off, its runs fail, or the budget of a day
    (NEWS_PLATFORM_RESURVEYS_PER_DAY) is too small for the number of domains.
    """
    options = resurvey_options(resources.settings.domain_metadata)
    if options.interval_days <= 0:
        return dg.AssetCheckResult(passed=True, metadata={"disabled": "no resurveys are planned"})
    plan = resurvey_plan(resources)
    return dg.AssetCheckResult(
        passed=plan.share_in_time >= _LEAST_IN_TIME,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "share_in_time": plan.share_in_time,
            "domains": plan.domains,
            "due": plan.due,
            "late": plan.late,
            # What the budget would have to be so that every domain has its turn.
            "needed_per_day": round(plan.domains / options.interval_days),
            "budget_per_day": options.per_day,
        },
    )


@dataset_asset(DOMAIN_QUEUE)
def domain_queue(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Queue the domains of batches."""
    store, queue = platform.data_root.store, DomainQueue(platform.ledger.engine)
    for key in context.partition_keys:
        batch = PartitionInfo.parse(key)
        report = queue_batch(batch, store=store, queue=queue, now=platform.clock.now())
        notes = read_raw_metadata(store, batch)
        yield (
            key,
            {
                "dagster/partition_row_count": len(queue.messages(key)),
                "new_domains": report.new_domains,
                "files": report.files,
                "records": report.records,
                "dropped": markdown_table(("reason", "records"), report.dropped.items()),
                **({"raw_metadata": dg.MetadataValue.json(notes)} if notes is not None else {}),
            },
        )


@dataset_asset(DOMAIN_METADATA)
def domain_metadata(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Fetch the robots.txt and sitemap of every domain of batches."""
    for key in context.partition_keys:
        report = survey(platform, key, worker=context.run.run_id)
        yield (
            key,
            {
                "dagster/uri": platform.data_root.store.uri(
                    f"prod/{PartitionInfo.parse(key).folder}"
                ),
                "dagster/partition_row_count": sum(report.outcomes.values()),
                "surveyed": report.surveyed,
                "finished_before": report.finished_before,
                "retries": report.retries,
                "outcomes": markdown_table(("outcome", "domains"), report.outcomes.items()),
                "slowest_hosts": markdown_table(("domain", "seconds"), report.slowest),
                **{f"outcome_{name}": count for name, count in report.outcomes.items()},
            },
        )


@dataset_asset(DOMAIN_SURVEYS)
def domain_surveys(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Write the survey results of a day as one table."""
    day, store = context.partition_key, platform.data_root.store
    rows = build_table(day, store=store)
    facts = read_facts(store, day)
    counts = policy_counts(facts)
    outcomes = facts.group_by("outcome").len().sort("len", descending=True)
    return {
        "dagster/partition_row_count": rows,
        "outcomes": markdown_table(outcomes.columns, outcomes.iter_rows()),
        "ai_policies": markdown_table(counts.columns, counts.iter_rows()),
        "dagster/uri": store.uri(f"{TABLE_DATASET}/date={day}"),
        "ai_policies_plot": policy_plot(counts),
        **trend_metadata(store, day),
        "preview": preview(DOMAIN_SURVEYS, facts, columns=_SHOWN_FACTS),
    }


def trend_metadata(store: ObjectStore, day: str) -> Mapping[str, dg.MetadataValue]:
    """Return refusals by purpose and crawler over time, by country, and adoption of llms.txt."""
    surveys = read_surveys(store, day)
    if not surveys.height:
        return {}
    found, now = trend(surveys), by_country(standing(surveys, day))
    newest = {**found.purposes, **found.bots, "llms.txt": found.llms_txt}
    return {
        "refusals_by_purpose": trend_plot(found.days, found.purposes, "domains that refuse"),
        "refusals_by_bot": trend_plot(found.days, found.bots, "domains that refuse"),
        "llms_txt": trend_plot(found.days, {"llms.txt": found.llms_txt}, "domains with llms.txt"),
        "by_country": _table(now),
        "shares_now": markdown_table(
            ("what", "share"), zip(newest, shares(row[-1] for row in newest.values()), strict=True)
        ),
        "domains_standing": dg.MetadataValue.int(int(now.get_column("domains").sum())),
        "llms_txt_share": dg.MetadataValue.float(float(found.llms_txt[-1])),
        **{
            f"refuse_{name}_share": dg.MetadataValue.float(float(row[-1]))
            for name, row in found.purposes.items()
        },
    }


def _table(rows: pl.DataFrame) -> dg.MarkdownMetadataValue:
    return markdown_table(rows.columns, rows.head(_SHOWN_ROWS).iter_rows())


@dataset_asset(USAGE_SIGNALS)
def usage_signals(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Write what the domains surveyed on a day state about use."""
    day, store = context.partition_key, platform.data_root.store
    count = build_usage_signals(day, store=store)
    rows = read_usage_signals(store, day)
    counts = rows.group_by("system", "label", "value").agg(domains=pl.col("domain").n_unique())
    ranked = counts.sort("domains", "system", "label", descending=[True, False, False])
    return {
        "dagster/partition_row_count": count,
        "dagster/uri": store.uri(f"{USAGE_DATASET}/date={day}"),
        "statements": preview(USAGE_SIGNALS, ranked),
        "preview": preview(USAGE_SIGNALS, rows, columns=("domain", "system", "label", "value")),
    }


@dataset_asset(AI_POLICY_CHANGES)
def ai_policy_changes(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Compare a day with each domain's last survey."""
    day, store = context.partition_key, platform.data_root.store
    rows = build_changes(day, store=store)
    changes = read_changes(store, day)
    newly = newly_refusing(changes)
    return {
        "dagster/partition_row_count": rows,
        "dagster/uri": store.uri(f"{CHANGES_DATASET}/date={day}"),
        "changes": preview(AI_POLICY_CHANGES, changes),
        "changes_plot": changes_plot(changes),
        "newly_refusing": _table(newly),
        "newly_refusing_domains": newly.get_column("domain").n_unique(),
    }


QUEUE_RULE = rebuild_rule(DOMAIN_QUEUE, wanted=lambda it: raw_batches(it.data_root.store))
METADATA_RULE = rebuild_rule(DOMAIN_METADATA)
SURVEYS_RULE = rebuild_rule(DOMAIN_SURVEYS)
SIGNALS_RULE = rebuild_rule(USAGE_SIGNALS)
CHANGES_RULE = rebuild_rule(AI_POLICY_CHANGES, wanted=lambda it: tabled_days(it.data_root.store))
