"""Build the daily tables of the survey: its facts, the statements about use, and what changed.

The changes of a day compare each domain with its last survey on any earlier day: a query over the
tables of all days up to it. The table of an old day may be built again, because an unfinished batch
was tried once more. If what later days read of it is then different, their changes are stale.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import get_args

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    AiPolicyFacts,
    DomainMetadata,
    RobotsFacts,
    UsageFacts,
)
from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    SURVEY_VERDICTS,
    USAGE_SIGNALS,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.changes import (
    compared_files,
    policies_of,
    policy_changes,
    readings_of,
    text_diff,
    usage_changes,
)
from news_platform.domain_metadata.fetchers import file_key, stating_robots, stored_files
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.results import read_facts_file, read_stored
from news_platform.domain_metadata.verdicts import verdict_frame
from news_platform.storage.commit.markers import (
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table, write_table
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.web.robots import AI_BOTS, Policy

TABLE_DATASET = DOMAIN_SURVEYS.name
USAGE_DATASET = USAGE_SIGNALS.name
CHANGES_DATASET = AI_POLICY_CHANGES.name

POLICIES: tuple[str, ...] = get_args(Policy)

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
    "rules_file",
    "readings",
)


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


def build_table(day: str, *, store: ObjectStore) -> int:
    """Build and write the table of a day from the facts of all its batches; return its rows."""

    def scope(frame: pl.DataFrame) -> str:
        # A survey that never read anything is not compared with.
        return _content(frame.filter(pl.col("readings").list.len() > 0).select(_COMPARED))

    return _build(day, DOMAIN_SURVEYS, facts_frame, scope, store=store)


def build_usage_signals(day: str, *, store: ObjectStore) -> int:
    """Build and write the statements and verdicts of a day; return the number of statements."""

    def scope(frame: pl.DataFrame) -> str:
        return _content(frame.drop("collected_at"))

    def frame_of(facts: Sequence[DomainMetadata]) -> pl.DataFrame:
        verdicts = verdict_frame(store, facts)
        write_table(store, table_path(SURVEY_VERDICTS, day), verdicts, SURVEY_VERDICTS)
        return usage_frame(facts)

    return _build(day, USAGE_SIGNALS, frame_of, scope, store=store)


def _build(
    day: str,
    table: Dataset,
    frame_of: Callable[[Sequence[DomainMetadata]], pl.DataFrame],
    scope: Callable[[pl.DataFrame], str],
    *,
    store: ObjectStore,
) -> int:
    inputs = wanted_inputs(store, table).get(day, fingerprint([]))
    with cleaned_later(store, {table.name: [day]}):
        frame = frame_of(read_day_facts(store, day))
        return _write(store, day, frame, table=table, inputs=inputs, scope=scope(frame))


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


def build_changes(day: str, *, store: ObjectStore) -> int:
    """Build and write how a day differs from each domain's last survey; return the changes."""
    days = tabled_days(store)
    inputs = days.get(day, fingerprint([]))
    with cleaned_later(store, {CHANGES_DATASET: [day]}):
        rows = _changes_of(store, day, days)
        return _write(store, day, rows, table=AI_POLICY_CHANGES, inputs=inputs)


def _last_facts(store: ObjectStore, today: pl.DataFrame, before: Sequence[str]) -> pl.DataFrame:
    """Read earlier days, newest first, until each file and policy of today's domains was met."""
    # The empty frame gives the schema when there is no earlier day.
    found, ours = [today.clear()], today.get_column("domain").unique().implode()
    wanted = _compared_keys(today)
    for one in reversed(before):
        if not wanted:
            break
        # Only today's domains: a year of surveys has millions of rows, each with many policies.
        found.append(read_facts(store, one).filter(pl.col("domain").is_in(ours)))
        wanted -= _compared_keys(found[-1])
    return pl.concat(reversed(found))


def _compared_keys(rows: pl.DataFrame) -> set[tuple[str, ...]]:
    """Return what later days are compared with: files that were read, and policies."""
    policies = rows.drop_nulls("ai_policies").select("domain", "ai_list_version", "rules_file")
    return {*readings_of(rows).select("domain", "file").rows(), *policies.rows()}


def _changes_of(store: ObjectStore, day: str, days: Collection[str]) -> pl.DataFrame:
    is_tabled = day in days
    today = read_facts(store, day) if is_tabled else facts_frame([]).with_columns(date=pl.lit(day))
    ours = pl.col("domain").is_in(today.get_column("domain").unique().implode())
    earlier = _last_facts(store, today, [one for one in sorted(days) if one < day])
    files = compared_files(today, earlier)
    read = sorted({*files["before_date"], day})
    signals = pl.concat([read_usage_signals(store, one).filter(ours) for one in read])
    policies = policy_changes(today, earlier, files)
    frame = pl.concat(
        [
            policies.with_columns(raw_diff=_robots_diffs(store, policies, today, earlier)).select(
                pl.col(name).cast(kind) for name, kind in AI_POLICY_CHANGES.schema.items()
            ),
            usage_changes(signals, files, day=day),
        ]
    )
    return frame.sort("domain", "signal", "bot", "label", nulls_last=True)


def _robots_diffs(
    store: ObjectStore, changes: pl.DataFrame, today: pl.DataFrame, earlier: pl.DataFrame
) -> pl.Series:
    """Return the lines of robots.txt that differ for each change; only changed domains are read."""
    surveys = pl.concat([earlier, today]).filter(
        pl.col("domain").is_in(changes["domain"].implode())
    )
    batches = {
        (row["domain"], row["date"]): PartitionInfo.of(row["country"], row["category"], row["date"])
        # Of two batches of a day, the first one counts.
        for row in surveys.reverse().iter_rows(named=True)
    }
    day, diffs = today.get_column("date").first(), dict[tuple[str, str], str | None]()
    for row in changes.iter_rows(named=True):
        domain, before = row["domain"], row["before_date"]
        if (domain, before) not in diffs:
            stored = (
                read_stored(store, batches[domain, one], domain, row["file"])
                for one in (before, day)
            )
            diffs[domain, before] = text_diff(*stored)
    found = [diffs[row[0], row[1]] for row in changes.select("domain", "before_date").iter_rows()]
    return pl.Series(found, dtype=pl.String)


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
        **_reading_columns(facts),
        **_usage_columns(facts.usage),
    }


def _reading_columns(facts: DomainMetadata) -> dict[str, object]:
    """Return what was read of which file, and when; what was never read is left out."""
    robots = {name: one for name, one in stored_files(facts) if isinstance(one, RobotsFacts)}
    speaks = stating_robots(robots.values(), at=facts.collected_at)
    usage = {file_key(one.name, one.url): one for one in (facts.usage.files if facts.usage else ())}
    # Only the robots.txt that speaks for the domain has statements to compare.
    stating = {name: one for name, one in robots.items() if one is speaks}
    unread = {one.unread for files in (robots, usage) for one in files.values()}
    return {
        "rules_file": next(iter(stating), None),
        "readings": [
            {"file": name, "read_at": one.read_at, "unread": one.unread}
            for files in (stating, usage)
            for name, one in files.items()
            if one.read_at
        ],
        "challenged": "challenge" in unread,
        "payment_required": "payment_required" in unread,
    }


def _usage_columns(usage: UsageFacts | None) -> dict[str, object]:
    if usage is None:
        return {}
    llms = [file for file in usage.files if file.name == "llms.txt"]
    return {
        "usage_statements": len(usage.statements),
        **{f"usage_{purpose}": verdict for purpose, verdict in usage.verdicts.items()},
        "llms_txt": llms[0].exists if llms and llms[0].read_at else None,
        "managed_robots": usage.managed_robots,
        "usage_stale": usage.stale,
    }


def _policy_rows(facts: AiPolicyFacts | None) -> list[Mapping[str, object]] | None:
    if facts is None:
        return None
    own = facts.own
    return [
        {"bot": bot.name, "policy": own.get(bot.name, facts.everyone), "own": bot.name in own}
        for bot in AI_BOTS
    ]


def usage_frame(facts: Sequence[DomainMetadata]) -> pl.DataFrame:
    """Return the statements of surveys as table rows, sorted by domain."""
    rows = [
        {
            "domain": one.registrable_domain,
            "country": one.country,
            "category": one.category,
            "collected_at": one.collected_at,
            **asdict(statement),
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
) -> int:
    write_table(store, table_path(table, day), frame, table)
    report = {"date": day, "rows": frame.height}
    write_marker(store, table.name, day, inputs=inputs, report=report, scope=scope)
    return frame.height


def policy_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the domains of a table by crawler and policy."""
    counts = [(pl.col("policy") == name).sum().alias(name) for name in POLICIES]
    rows = policies_of(frame).group_by("bot").agg(counts)
    return rows.sort("disallow_all", "bot", descending=[True, False])
