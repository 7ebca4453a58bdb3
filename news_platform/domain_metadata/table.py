"""Build the daily tables of the survey: its facts, the statements about use, and what changed.

The changes of a day compare each domain with its last survey on any earlier day: a query over the
tables of all days up to it. The table of an old day may be built again, because an unfinished batch
was tried once more. If what later days read of it is then different, their changes are stale.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

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
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.policy_changes import (
    policy_changes,
    usage_changes,
    with_robots_diff,
)
from news_platform.domain_metadata.results import read_facts_file
from news_platform.storage.commit.markers import (
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table, write_table
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import cleaned_later

TABLE_DATASET = DOMAIN_SURVEYS.name
USAGE_DATASET = USAGE_SIGNALS.name
CHANGES_DATASET = AI_POLICY_CHANGES.name

# Threads that read facts files: each mostly waits for one small object.
_READERS = 16
# What later days read of an earlier one, apart from the statements about use.
_COMPARED = (
    "domain",
    "country",
    "category",
    "robots_bytes",
    "ai_list_version",
    "ai_policies",
    "usage_statements",
)


@dataclass(frozen=True, slots=True)
class TableReport:
    """The number of rows written for one day of a table."""

    date: str
    rows: int


def tabled_days(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of what the changes of each day are computed from.

    Of the day itself the names of the markers count, of earlier days only their scopes, which tell
    what later days read: a table that is written again with the same content makes nothing stale.
    """
    surveys, stated = read_markers(store, TABLE_DATASET), read_markers(store, USAGE_DATASET)
    found: dict[str, str] = {}
    before = ""
    for day in sorted(surveys):
        markers = [table[day] for table in (surveys, stated) if day in table]
        found[day] = fingerprint([before, *(marker.path for marker in markers)])
        before = fingerprint([before, day, *(marker.scope for marker in markers)])
    return found


def build_table(day: str, *, store: ObjectStore) -> TableReport:
    """Build and write the table of a day from the facts of all its batches."""
    inputs = wanted_inputs(store, DOMAIN_SURVEYS).get(day, fingerprint([]))
    with cleaned_later(store, {TABLE_DATASET: [day]}):
        frame = facts_frame(read_day_facts(store, day))
        # A survey that got no answer is not compared with.
        is_read = pl.col("ai_policies").is_not_null() | pl.col("usage_statements").is_not_null()
        compared = frame.filter(is_read).select(_COMPARED)
        scope = _content(compared)
        return _write(store, day, frame, table=DOMAIN_SURVEYS, inputs=inputs, scope=scope)


def build_usage_signals(day: str, *, store: ObjectStore) -> TableReport:
    """Build and write the statements about use of a day from the facts of all its batches."""
    inputs = wanted_inputs(store, USAGE_SIGNALS).get(day, fingerprint([]))
    with cleaned_later(store, {USAGE_DATASET: [day]}):
        frame = usage_frame(read_day_facts(store, day))
        scope = _content(frame.drop("collected_at"))
        return _write(store, day, frame, table=USAGE_SIGNALS, inputs=inputs, scope=scope)


def _content(compared: pl.DataFrame) -> str:
    """Return a digest of what later days read; of an empty table it is empty."""
    return fingerprint(compared.write_ndjson().splitlines()) if compared.height else ""


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
    frame = pl.concat([with_robots_diff(store, policies, today, earlier), stated])
    return frame.sort("domain", "signal", "bot", "label", nulls_last=True)


def facts_frame(facts: Sequence[DomainMetadata]) -> pl.DataFrame:
    """Return facts as table rows, sorted by domain."""
    rows = [_row(one) for one in facts]
    return pl.DataFrame(rows, schema=dict(DOMAIN_SURVEYS.schema), orient="row").sort(
        "domain", "country", "category"
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
        "news_sitemaps": sitemap.news_sitemaps or None,
        **_usage_columns(facts.usage),
    }


def _usage_columns(usage: UsageFacts | None) -> dict[str, object]:
    if usage is None:
        return {}
    llms = [file for file in usage.files if file.name == "llms.txt"]
    return {
        "usage_statements": len(usage.statements),
        **{f"usage_{purpose}": verdict for purpose, verdict in usage.verdicts.items()},
        "llms_txt": llms[0].exists if llms else None,
        "managed_robots": usage.managed_robots,
    }


def _policy_rows(facts: AiPolicyFacts | None) -> list[Mapping[str, object]] | None:
    if facts is None:
        return None
    own = set(facts.own)
    return [{"bot": b, "policy": p, "own": b in own} for b, p in facts.policies.items()]


def usage_frame(facts: Sequence[DomainMetadata]) -> pl.DataFrame:
    """Return the statements of surveys as table rows, sorted by domain."""
    rows = [
        {
            "domain": one.registrable_domain,
            "country": one.country,
            "category": one.category,
            "collected_at": one.collected_at,
            **statement.model_dump(),
        }
        for one in facts
        for statement in (one.usage.statements if one.usage else ())
    ]
    frame = pl.DataFrame(rows, schema=dict(USAGE_SIGNALS.schema), orient="row")
    order = ("domain", "country", "category", "system", "label", "path")
    return frame.sort(order, maintain_order=True)


def read_facts(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the table of a day."""
    return read_table(store, table_path(DOMAIN_SURVEYS, day), DOMAIN_SURVEYS)


def read_usage_signals(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the statements about use of a day; none before they are built."""
    path = table_path(USAGE_SIGNALS, day)
    if not store.exists(path):
        return usage_frame([]).with_columns(date=pl.lit(day))
    return read_table(store, path, USAGE_SIGNALS)


def read_changes(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the AI policy changes of a day."""
    return read_table(store, table_path(AI_POLICY_CHANGES, day), AI_POLICY_CHANGES)


def table_path(table: Dataset, day: str) -> str:
    """Return the file of a day."""
    return f"{table.name}/date={day}/part-0.parquet"


def _write(
    store: ObjectStore,
    day: str,
    frame: pl.DataFrame,
    *,
    table: Dataset,
    inputs: str,
    scope: str = "",
) -> TableReport:
    write_table(store, table_path(table, day), frame, table)
    report = TableReport(day, frame.height)
    write_marker(store, table.name, day, inputs=inputs, report=asdict(report), scope=scope)
    return report
