"""Compare the surveys of a day with earlier ones: which policies and statements changed.

A file is compared with its own last reading, however long ago that was. What was not read in
between says nothing, and the first reading of a file is not a change.
"""

import difflib

import polars as pl

from news_platform.datasets.domain_surveys import AI_POLICY_CHANGES
from news_platform.domain_metadata.signals.statements import EFFECTS
from news_platform.web.robots import AI_BOTS

# A rewritten robots.txt may differ in thousands of lines; both files are stored whole.
_MAX_DIFF_CHARS = 4000
# What makes two statements of different days the same one.
_KEY = ["domain", "file", "system", "label", "agents", "path"]
POLICY_WORDS = {"disallow_all": "refuse"}
"""Policies of robots.txt in the words of verdicts, where they differ."""
_BATCH = ["domain", "country", "category"]
_TIMES = ["before_date", "read_at", "before_read_at"]


def compared_files(today: pl.DataFrame, earlier: pl.DataFrame) -> pl.DataFrame:
    """Return the files of today's domains that were read before too, with both times.

    `before_country` and `before_category` tell the batch of the earlier survey.
    """
    then = readings_of(earlier).sort("date", maintain_order=True)
    last = then.unique(["domain", "file"], keep="last", maintain_order=True)
    before = last.rename({name: f"before_{name}" for name in (*_BATCH[1:], "date", "read_at")})
    return readings_of(today).join(before, on=["domain", "file"])


def readings_of(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row per day, domain and file; a domain in two batches of a day counts once."""
    once = frame.unique(["date", "domain"], keep="first", maintain_order=True)
    rows = once.select(*_BATCH, "date", "readings").explode("readings").drop_nulls("readings")
    return rows.unnest("readings").drop("unread")


def policies_of(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row per day, domain and crawler; a domain in two batches counts once."""
    return (
        frame.select("domain", "country", "date", "ai_list_version", "ai_policies", "^rules_file$")
        .explode("ai_policies")
        .drop_nulls("ai_policies")
        .unnest("ai_policies")
        .unique(["date", "domain", "bot"], keep="first", maintain_order=True)
    )


def policy_changes(today: pl.DataFrame, earlier: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """Return the policies that differ from the last survey with the same crawler list version.

    A change for all crawlers without a group of their own is one row, of the crawler `*`.
    """
    # A new version of the crawler list may give another policy for the same robots.txt.
    same = ["domain", "ai_list_version", "rules_file"]
    last = (
        earlier.drop_nulls("ai_policies")
        # A domain in two batches of a day counts once, as in `policies_of`.
        .unique(["date", *same], keep="first", maintain_order=True)
        .sort("date", maintain_order=True)
        .unique(same, keep="last", maintain_order=True)
    )
    operators = pl.DataFrame(
        {"bot": [bot.name for bot in AI_BOTS], "operator": [bot.operator for bot in AI_BOTS]}
    )
    before = policies_of(last).select(*same, "bot", "date", "policy", "own")
    joined = (
        policies_of(today)
        .join(before, on=[*same, "bot"], suffix="_before")
        .filter(pl.col("policy") != pl.col("policy_before"))
        .with_columns(
            bot=pl.when(pl.col("own") | pl.col("own_before")).then("bot").otherwise(pl.lit("*"))
        )
        .unique(["domain", "bot"], keep="first", maintain_order=True)
        .join(operators, on="bot", how="left")
        .join(
            files.select("domain", "read_at", "before_read_at", rules_file="file"),
            on=["domain", "rules_file"],
            how="left",
        )
    )
    return joined.select(
        "domain",
        "country",
        "bot",
        "operator",
        before=pl.col("policy_before").replace(POLICY_WORDS),
        after=pl.col("policy").replace(POLICY_WORDS),
        change=_change(_closes("policy"), _closes("policy_before")),
        before_date=pl.col("date_before"),
        signal=pl.lit("robots"),
        label=pl.lit(None, dtype=pl.String),
        file=pl.col("rules_file"),
        read_at=pl.col("read_at"),
        before_read_at=pl.col("before_read_at"),
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


def text_diff(old: bytes, new: bytes) -> str | None:
    """Return the lines that disappeared (-) and appeared (+)."""
    before, after = (body.decode("utf-8", "replace").splitlines() for body in (old, new))
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    # The first two lines name the files, and `@@` lines give positions.
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]
    return "\n".join(changed)[:_MAX_DIFF_CHARS] or None


def usage_changes(signals: pl.DataFrame, files: pl.DataFrame, *, day: str) -> pl.DataFrame:
    """Return the statements of a day that differ from what their files stated before.

    `signals` are the rows of usage_signals of the day and of earlier ones, `files` those of
    `compared_files`.
    """
    now = signals.filter(pl.col("date") == day).join(files, on=[*_BATCH, "file"], how="semi")
    place = ["domain", "before_country", "before_category", "before_date", "file"]
    then = signals.join(files, left_on=[*_BATCH, "date", "file"], right_on=place, how="semi")
    joined = _values(now).join(
        _values(then), on=_KEY, how="full", coalesce=True, nulls_equal=True, suffix="_before"
    )
    changed = joined.filter(~pl.col("value").eq_missing(pl.col("value_before")))
    rows = changed.join(files.select("domain", "file", "country", *_TIMES), on=["domain", "file"])
    return rows.select(
        "domain",
        "country",
        pl.col("agents").replace("", "*").alias("bot"),
        pl.lit(None, dtype=pl.String).alias("operator"),
        pl.col("value_before").alias("before"),
        pl.col("value").alias("after"),
        _change(_refuses("refusal"), _refuses("refusal_before")).alias("change"),
        pl.col("system").alias("signal"),
        "label",
        "file",
        *_TIMES,
        _raw_diff().alias("raw_diff"),
    ).select(pl.col(name).cast(kind) for name, kind in AI_POLICY_CHANGES.schema.items())


def _values(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per statement; what is stated more than once counts with all its values."""
    joined = pl.col("agents").list.sort().list.join(",")
    stated = pl.struct("system", "label", "value")
    effects = stated.map_elements(_is_refusal, return_dtype=pl.Boolean)
    return (
        rows.filter(pl.col("value").is_not_null())
        .with_columns(agents=joined, refusal=effects)
        .group_by(_KEY, maintain_order=True)
        .agg(
            pl.col("value").unique().sort().str.join(", "),
            pl.col("raw").unique().sort().str.join("\n"),
            pl.col("refusal").any(),
        )
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
