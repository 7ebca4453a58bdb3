"""Compare the surveys of a day with earlier ones: which policies and statements changed."""

import difflib
from typing import get_args

import polars as pl

from news_platform.datasets.domain_surveys import AI_POLICY_CHANGES
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.results import read_robots
from news_platform.domain_metadata.signals.statements import EFFECTS
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.robots import AI_BOTS, Policy

POLICIES: tuple[str, ...] = get_args(Policy)

# A rewritten robots.txt may differ in thousands of lines; both files are stored whole.
_MAX_DIFF_CHARS = 4000
# What makes two statements of different days the same one. The URL of the source is left out: a
# file that moved states the same.
_KEY = ["domain", "system", "label", "agents", "path"]


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
    old, new = (read_robots(store, batch, domain) for batch in (before, after))
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
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
