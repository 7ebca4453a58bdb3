"""Build the daily table of statements about use, and from two of them the changed statements."""

from collections.abc import Sequence

import polars as pl

from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.datasets.domain_surveys import AI_POLICY_CHANGES, USAGE_SIGNALS
from news_platform.domain_metadata.signals.statements import EFFECTS

USAGE_DATASET = USAGE_SIGNALS.name
# What makes two statements of different days the same one. The URL of the source is left out: a
# file that moved states the same.
_KEY = ["domain", "system", "label", "agents", "path"]


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
        _change().alias("change"),
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


def _is_refusal(row: dict[str, str | None]) -> bool:
    effects = EFFECTS.get((str(row["system"]), str(row["label"]), str(row["value"])), {})
    return "refuse" in effects.values()


def _change() -> pl.Expr:
    now, then = pl.col("refusal").fill_null(False), pl.col("refusal_before").fill_null(False)
    return (
        pl.when(now & ~then)
        .then(pl.lit("blocked"))
        .when(then & ~now)
        .then(pl.lit("opened"))
        .otherwise(pl.lit("changed"))
    )


def _raw_diff() -> pl.Expr:
    gone = pl.when(pl.col("raw_before").is_not_null()).then(pl.lit("- ") + pl.col("raw_before"))
    new = pl.when(pl.col("raw").is_not_null()).then(pl.lit("+ ") + pl.col("raw"))
    return pl.concat_str(gone, new, separator="\n", ignore_nulls=True)
