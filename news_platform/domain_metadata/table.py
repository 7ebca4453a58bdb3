"""Build the daily tables of survey facts, and from two of them the changes of AI policies."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import get_args

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    AiPolicyFacts,
    DomainMetadata,
    UsageFacts,
)
from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.change_inputs import record_correction, table_path, tabled_days
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.results import read_facts_file, read_robots
from news_platform.domain_metadata.usage_table import USAGE_DATASET, usage_changes, usage_frame
from news_platform.storage.commit.markers import (
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table, write_table
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.web.ai_bots import AI_BOTS
from news_platform.web.robots import Policy

TABLE_DATASET = DOMAIN_SURVEYS.name
CHANGES_DATASET = AI_POLICY_CHANGES.name
POLICIES: tuple[str, ...] = get_args(Policy)

# Threads that read facts files: each mostly waits for one small object.
_READERS = 16
# A rewritten robots.txt may differ in thousands of lines; both files are stored whole.
_MAX_DIFF_CHARS = 4000


@dataclass(frozen=True, slots=True)
class TableReport:
    """The number of rows written for one day of a table."""

    date: str
    rows: int


def build_table(day: str, *, store: ObjectStore) -> TableReport:
    """Build and write the table of a day from the facts of all its batches."""
    inputs = wanted_inputs(store, DOMAIN_SURVEYS).get(day, fingerprint([]))
    with cleaned_later(store, {TABLE_DATASET: [day]}):
        frame = facts_frame(read_day_facts(store, day))
        record_correction(store, day, frame, DOMAIN_SURVEYS, inputs=inputs)
        return _write(store, day, frame, table=DOMAIN_SURVEYS, inputs=inputs)


def build_usage_signals(day: str, *, store: ObjectStore) -> TableReport:
    """Build and write the statements about use of a day from the facts of all its batches."""
    inputs = wanted_inputs(store, USAGE_SIGNALS).get(day, fingerprint([]))
    with cleaned_later(store, {USAGE_DATASET: [day]}):
        frame = usage_frame(read_day_facts(store, day))
        record_correction(store, day, frame, USAGE_SIGNALS, inputs=inputs)
        return _write(store, day, frame, table=USAGE_SIGNALS, inputs=inputs)


def read_day_facts(store: ObjectStore, day: str) -> list[DomainMetadata]:
    """Return the facts of all batches of a day."""
    keys = read_markers(store, METADATA_DATASET)
    batches = [batch for batch in map(PartitionInfo.parse, sorted(keys)) if str(batch.date) == day]
    paths = [
        info.path
        for batch in batches
        for info in store.list(f"{PROD_FOLDER}/{batch.folder}")
        if info.path.endswith(f"/{METADATA_FILE}")
    ]
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(partial(read_facts_file, store), paths))


def build_changes(day: str, *, store: ObjectStore) -> TableReport:
    """Build and write the AI policy changes of a day, compared with each domain's last survey."""
    days = tabled_days(store)
    inputs = days.get(day, fingerprint([]))
    with cleaned_later(store, {CHANGES_DATASET: [day]}):
        rows = _changes_of(store, day, days)
        return _write(store, day, rows, table=AI_POLICY_CHANGES, inputs=inputs)


def _changes_of(store: ObjectStore, day: str, days: Collection[str]) -> pl.DataFrame:
    is_tabled = day in days
    today = read_facts(store, day) if is_tabled else facts_frame([]).with_columns(date=pl.lit(day))
    # Only today's domains: a year of surveys has millions of rows with hundreds of policies each.
    ours = pl.col("domain").is_in(today.get_column("domain").unique().implode())
    before = [one for one in sorted(days) if one < day]
    # The empty frame gives the schema when there is no earlier day.
    earlier = pl.concat([*(read_facts(store, one).filter(ours) for one in before), today.clear()])
    policies = policy_changes(today, earlier)
    stated = usage_changes(
        read_usage_signals(store, day),
        pl.concat([read_usage_signals(store, one).filter(ours) for one in [*before, day]]),
        surveys=today,
        before=earlier.filter(pl.col("date") != day),
    )
    frame = pl.concat([_with_robots_diff(store, policies, today, earlier), stated])
    return frame.sort("domain", "signal", "bot", "label", nulls_last=True)


def read_usage_signals(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the statements about use of a day; a day before version 0.2 has none."""
    path = table_path(USAGE_SIGNALS, day)
    if not store.exists(path):
        return usage_frame([]).with_columns(date=pl.lit(day))
    return read_table(store, path, USAGE_SIGNALS)


def _with_robots_diff(
    store: ObjectStore, changes: pl.DataFrame, today: pl.DataFrame, earlier: pl.DataFrame
) -> pl.DataFrame:
    """Add the lines of robots.txt that differ; only changed domains are read."""
    day_of = {row["domain"]: row["before_date"] for row in changes.iter_rows(named=True)}
    places = pl.concat([earlier, today]).filter(pl.col("domain").is_in(list(day_of)))
    batch = {
        (row["domain"], row["date"]): PartitionInfo.of(row["country"], row["category"], row["date"])
        for row in places.iter_rows(named=True)
    }
    newest = today.get_column("date").first()
    diffs = {
        domain: _robots_diff(store, domain, batch.get((domain, day)), batch.get((domain, newest)))
        for domain, day in day_of.items()
    }
    return changes.with_columns(
        signal=pl.lit("robots"),
        label=pl.lit(None, dtype=pl.String),
        raw_diff=pl.col("domain").replace_strict(diffs, default=None, return_dtype=pl.String),
    )


def _robots_diff(
    store: ObjectStore, domain: str, before: PartitionInfo | None, after: PartitionInfo | None
) -> str | None:
    if before is None or after is None:
        return None
    old, new = (read_robots(store, batch, domain) for batch in (before, after))
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    # The first two lines name the files, and `@@` lines give positions.
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]
    return "\n".join(changed)[:_MAX_DIFF_CHARS] or None


def facts_frame(facts: Sequence[DomainMetadata]) -> pl.DataFrame:
    """Return facts as table rows, sorted by domain."""
    rows = [_row(one) for one in facts]
    return pl.DataFrame(rows, schema=dict(DOMAIN_SURVEYS.schema), orient="row").sort(
        "domain", "country", "category"
    )


def policy_changes(today: pl.DataFrame, earlier: pl.DataFrame) -> pl.DataFrame:
    """Return the policies that differ from the last survey with the same crawler list version."""
    # A new version of the crawler list may give another policy for the same robots.txt.
    last = (
        earlier.drop_nulls("ai_policies")
        # A domain in two batches of a day counts once, as in `_policies`.
        .unique(["date", "domain", "ai_list_version"], keep="first", maintain_order=True)
        .sort("date", maintain_order=True)
        .unique(["domain", "ai_list_version"], keep="last", maintain_order=True)
    )
    before = _policies(last).select("date", "domain", "bot", "ai_list_version", "policy")
    operators = pl.DataFrame(
        {"bot": [bot.name for bot in AI_BOTS], "operator": [bot.operator for bot in AI_BOTS]}
    )
    joined = (
        _policies(today)
        .join(before, on=["domain", "bot", "ai_list_version"], suffix="_before")
        .join(operators, on="bot", how="left")
        .filter(pl.col("policy") != pl.col("policy_before"))
    )
    return joined.select(
        "domain",
        "country",
        "bot",
        "operator",
        before=pl.col("policy_before"),
        after=pl.col("policy"),
        change=_change(),
        before_date=pl.col("date_before"),
    ).sort("domain", "bot")


def policy_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the domains of a table by crawler and policy."""
    counts = [(pl.col("policy") == name).sum().alias(name) for name in POLICIES]
    rows = _policies(frame).group_by("bot").agg(counts)
    return rows.sort("disallow_all", "bot", descending=[True, False])


def _change() -> pl.Expr:
    blocked = pl.col("policy") == "disallow_all"
    opened = pl.col("policy_before") == "disallow_all"
    return (
        pl.when(blocked)
        .then(pl.lit("blocked"))
        .when(opened)
        .then(pl.lit("opened"))
        .otherwise(pl.lit("changed"))
    )


def _policies(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row per day, domain and crawler; a domain in two batches counts once."""
    return (
        frame.select("domain", "country", "date", "ai_list_version", "ai_policies")
        .explode("ai_policies")
        .drop_nulls("ai_policies")
        .unnest("ai_policies")
        .unique(["date", "domain", "bot"], keep="first", maintain_order=True)
    )


def _row(facts: DomainMetadata) -> dict[str, object]:
    robots, sitemap = facts.robots, facts.sitemap
    return {
        "domain": facts.registrable_domain,
        "domain_id": facts.domain_id,
        "country": facts.country,
        "category": facts.category,
        "authority": facts.source.authority,
        "collected_at": facts.collected_at,
        "outcome": facts.outcome,
        "final": facts.final,
        "final_origin": facts.final_origin,
        "robots_status": robots.status_code,
        "robots_exists": robots.exists,
        "robots_bytes": robots.content_length,
        "robots_is_html": robots.is_html,
        "tls_failed": robots.tls_failed,
        "crawl_delay_seconds": robots.crawl_delay_seconds,
        "sitemap_url": sitemap.url,
        "sitemap_status": sitemap.status_code,
        "sitemap_kind": sitemap.kind,
        "sitemap_urls": sitemap.url_count,
        "sitemap_children": sitemap.child_count,
        "sitemap_problems": sitemap.problems,
        "elapsed_seconds": robots.elapsed_seconds + sitemap.elapsed_seconds,
        "ai_list_version": facts.ai_policy.list_version if facts.ai_policy else None,
        "ai_policies": _policy_rows(facts.ai_policy),
        "raw_file_path": facts.source.raw_file_path,
        # Null, as in tables that were written before this column.
        "news_sitemaps": sitemap.news_sitemaps or None,
        **_usage_columns(facts.usage),
    }


def _usage_columns(usage: UsageFacts | None) -> dict[str, object]:
    if usage is None:
        return {}
    asked = [file for file in usage.files if file.name == "llms.txt"]
    return {
        "usage_statements": len(usage.statements),
        **{f"usage_{purpose}": verdict for purpose, verdict in usage.verdicts.items()},
        "llms_txt": asked[0].exists if asked else None,
        "managed_robots": usage.managed_robots,
    }


def _policy_rows(facts: AiPolicyFacts | None) -> list[Mapping[str, object]] | None:
    if facts is None:
        return None
    own = set(facts.own)
    return [{"bot": b, "policy": p, "own": b in own} for b, p in facts.policies.items()]


def read_facts(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the table of a day."""
    return read_table(store, table_path(DOMAIN_SURVEYS, day), DOMAIN_SURVEYS)


def read_changes(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the AI policy changes of a day."""
    return read_table(store, table_path(AI_POLICY_CHANGES, day), AI_POLICY_CHANGES)


def _write(
    store: ObjectStore, day: str, frame: pl.DataFrame, *, table: Dataset, inputs: str
) -> TableReport:
    write_table(store, table_path(table, day), frame, table)
    report = TableReport(day, frame.height)
    write_marker(store, table.name, day, inputs=inputs, report=asdict(report))
    return report
