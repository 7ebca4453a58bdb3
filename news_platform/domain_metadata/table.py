"""Build the daily tables of the survey: its facts, the statements about use, and what changed.

The changes of a day compare each domain with its last survey on any earlier day: a query over the
tables of all days up to it. The table of an old day may be built again, because an unfinished batch
was tried once more. If what later days read of it is then different, their changes are stale.
"""

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
    ROBOTS_FILE,
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
from news_platform.domain_metadata.results import read_facts_file, read_stored
from news_platform.domain_metadata.signals.statements import EFFECTS
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

# A rewritten robots.txt may differ in thousands of lines; both files are stored whole.
_MAX_DIFF_CHARS = 4000
# What makes two statements of different days the same one. The URL of the source is left out: a
# file that moved states the same.
_KEY = ["domain", "system", "label", "agents", "path"]
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
) -> TableReport:
    write_table(store, table_path(table, day), frame, table)
    report = TableReport(day, frame.height)
    write_marker(store, table.name, day, inputs=inputs, report=asdict(report), scope=scope)
    return report


def policy_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the domains of a table by crawler and policy."""
    counts = [(pl.col("policy") == name).sum().alias(name) for name in POLICIES]
    rows = _policies(frame).group_by("bot").agg(counts)
    return rows.sort("disallow_all", "bot", descending=[True, False])


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
        change=_change(_closes("policy"), _closes("policy_before")),
        before_date=pl.col("date_before"),
    ).sort("domain", "bot")


def _closes(column: str) -> pl.Expr:
    return pl.col(column) == "disallow_all"


def _change(now: pl.Expr, then: pl.Expr) -> pl.Expr:
    """Name a change by whether the site refuses now, and whether it did then."""
    return (
        pl.when(now & ~then)
        .then(pl.lit("blocked"))
        .when(then & ~now)
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


def with_robots_diff(
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
    stored = (read_stored(store, batch, domain, ROBOTS_FILE) for batch in (before, after))
    old, new = (body.decode("utf-8", "replace").splitlines() for body in stored)
    lines = difflib.unified_diff(old, new, lineterm="", n=0)
    # The first two lines name the files, and `@@` lines give positions.
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]
    return "\n".join(changed)[:_MAX_DIFF_CHARS] or None


def usage_changes(
    today: pl.DataFrame, earlier: pl.DataFrame, *, surveys: pl.DataFrame, before: pl.DataFrame
) -> pl.DataFrame:
    """Return the statements that differ from each domain's previous survey.

    `today` and `earlier` are rows of usage_signals, `surveys` and `before` the rows of
    domain_surveys of the same days. Only domains whose statements were read both times are
    compared, so that a new kind of statement is not reported as a change of the site.
    """
    compared = _compared(surveys, before)
    now = _values(today.join(compared, on="domain", how="semi"))
    then = _values(
        earlier.join(compared, left_on=["domain", "date"], right_on=["domain", "before_date"])
    )
    joined = now.join(then, on=_KEY, how="full", coalesce=True, nulls_equal=True, suffix="_before")
    changed = joined.filter(~pl.col("value").eq_missing(pl.col("value_before")))
    rows = changed.join(compared, on="domain")
    return rows.select(
        "domain",
        "country",
        pl.col("agents").replace("", "*").alias("bot"),
        pl.lit(None, dtype=pl.String).alias("operator"),
        pl.col("value_before").alias("before"),
        pl.col("value").alias("after"),
        _change(_refuses("refusal"), _refuses("refusal_before")).alias("change"),
        "before_date",
        pl.col("system").alias("signal"),
        "label",
        _raw_diff().alias("raw_diff"),
    ).cast(dict(AI_POLICY_CHANGES.schema))  # type: ignore[arg-type]  # names and types


def _compared(surveys: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return the domains whose statements were read in both surveys, with the earlier day."""
    read = pl.col("usage_statements").is_not_null()
    days = before.filter(read).group_by("domain").agg(before_date=pl.col("date").max())
    now = surveys.filter(read).unique("domain", keep="first", maintain_order=True)
    return now.select("domain", "country").join(days, on="domain")


def _values(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per statement; a statement made twice counts once, the refusal first."""
    joined = pl.col("agents").list.sort().list.join(",")
    stated = pl.struct("system", "label", "value")
    effects = stated.map_elements(_is_refusal, return_dtype=pl.Boolean)
    return (
        rows.filter(pl.col("value").is_not_null())
        .with_columns(agents=joined, refusal=effects)
        .sort(*_KEY, "refusal", descending=[*[False] * len(_KEY), True])
        .unique(_KEY, keep="first", maintain_order=True)
        .select(*_KEY, "value", "raw", "refusal")
    )


def _refuses(column: str) -> pl.Expr:
    return pl.col(column).fill_null(False)


def _is_refusal(row: dict[str, str | None]) -> bool:
    effects = EFFECTS.get((str(row["system"]), str(row["label"]), str(row["value"])), {})
    return "refuse" in effects.values()


def _raw_diff() -> pl.Expr:
    gone = pl.when(pl.col("raw_before").is_not_null()).then(pl.lit("- ") + pl.col("raw_before"))
    new = pl.when(pl.col("raw").is_not_null()).then(pl.lit("+ ") + pl.col("raw"))
    return pl.concat_str(gone, new, separator="\n", ignore_nulls=True)
