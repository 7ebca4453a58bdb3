"""Read the surveys over time: of one domain with their changes, and the standing of all domains.

A day's table has only the domains surveyed on that day. The standing of a day is the last survey of
every domain up to it, so that shares of different days speak about the same domains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_surveys import AI_POLICY_CHANGES, DOMAIN_SURVEYS, USAGE_SIGNALS
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    build_changes,
    build_table,
    build_usage_signals,
    tabled_days,
)
from news_platform.storage.commit.markers import read_inputs, stale_partitions
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import stale_units
from news_platform.takedowns.build_filters import read_hidden
from news_platform.text.readable import as_day

_SURVEY_COLUMNS = (
    "date",
    "outcome",
    "robots_status",
    "usage_statements",
    "usage_index",
    "usage_search",
    "usage_ai_input",
    "usage_ai_train",
    "llms_txt",
)


@dataclass(frozen=True, slots=True)
class DomainHistory:
    """The surveys of a domain and the changes between them, oldest first."""

    domain: str
    surveys: tuple[dict[str, object], ...]
    changes: tuple[dict[str, object], ...]


def build_stale_tables(store: ObjectStore) -> list[str]:
    """Build the daily tables that differ from their surveys; return the days."""
    days: set[str] = set()
    for dataset, build in ((DOMAIN_SURVEYS, build_table), (USAGE_SIGNALS, build_usage_signals)):
        for day in sorted(stale_units(store, dataset)):
            build(day, store=store)
            days.add(day)
    stale = stale_partitions(tabled_days(store), read_inputs(store, CHANGES_DATASET))
    for day in sorted(stale):
        build_changes(day, store=store)
    return sorted({*days, *stale})


def read_history(store: ObjectStore, domain: str) -> DomainHistory:
    """Return the surveys and changes of a domain from the daily tables, none if it is hidden."""
    if read_hidden(store).covers_domain(domain):
        return DomainHistory(domain, (), ())
    surveys = _rows_of(store, DOMAIN_SURVEYS, domain).select(_SURVEY_COLUMNS)
    changes = _rows_of(store, AI_POLICY_CHANGES, domain).drop("domain")
    return DomainHistory(domain, tuple(surveys.to_dicts()), tuple(changes.to_dicts()))


def _rows_of(store: ObjectStore, table: Dataset, domain: str) -> pl.DataFrame:
    rows = ParquetEngine(store, table).scan().filter(pl.col("domain") == domain)
    return rows.sort("date", maintain_order=True).collect()


# A quarter shows a trend; domains are surveyed weekly, so older tables add little.
TREND_DAYS = 90
_REFUSED = ("refuse", "conflicting")
_COLUMNS = (
    "domain",
    "country",
    "date",
    "ai_policies",
    "llms_txt",
    *(f"usage_{purpose}" for purpose in PURPOSES),
)


@dataclass(frozen=True, slots=True)
class Trend:
    """Shares of domains by day: those that refuse each purpose and crawler, those with llms.txt."""

    days: tuple[str, ...]
    purposes: Mapping[str, Sequence[float]]
    bots: Mapping[str, Sequence[float]]
    llms_txt: Sequence[float]


def read_surveys(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the surveys of the days up to `day` that had a conclusive answer."""
    since = str(as_day(day) - timedelta(days=TREND_DAYS))
    rows = ParquetEngine(store, DOMAIN_SURVEYS).scan().select(_COLUMNS)
    found = rows.filter(pl.col("date").is_between(pl.lit(since), pl.lit(day)))
    # A domain in two batches of a day counts once.
    once = found.unique(["date", "domain"], keep="first", maintain_order=True)
    return once.drop_nulls("ai_policies").collect()


def trend(surveys: pl.DataFrame, *, bots: int = 6) -> Trend:
    """Return the shares of each day; `bots` is the number of crawlers, the most refused ones."""
    days = sorted(surveys.get_column("date").unique()) if surveys.height else []
    standings = [standing(surveys, day) for day in days]
    refused = [refusals_by_bot(one) for one in standings]
    names = [name for name, _ in sorted(refused[-1].items(), key=_most)[:bots]] if refused else []
    return Trend(
        tuple(days),
        {name: [_share(one, _refuses(name)) for one in standings] for name in PURPOSES},
        {name: [shares.get(name, 0.0) for shares in refused] for name in names},
        [_share(one, pl.col("llms_txt").fill_null(False)) for one in standings],
    )


def standing(surveys: pl.DataFrame, day: str) -> pl.DataFrame:
    """Return the last survey of every domain up to a day."""
    until = surveys.filter(pl.col("date") <= day).sort("date", maintain_order=True)
    return until.unique("domain", keep="last", maintain_order=True)


def refusals_by_bot(surveys: pl.DataFrame) -> dict[str, float]:
    """Return the share of domains that close everything to each AI crawler."""
    rows = surveys.select("ai_policies").explode("ai_policies").unnest("ai_policies")
    closed = rows.filter(pl.col("policy") == "disallow_all").group_by("bot").len()
    return {bot: count / surveys.height for bot, count in closed.iter_rows()}


def by_country(surveys: pl.DataFrame) -> pl.DataFrame:
    """Return the number of domains per country, and how many refuse each purpose."""
    refusing = [_refuses(name).sum().alias(name) for name in PURPOSES]
    llms = pl.col("llms_txt").fill_null(False).sum().alias("llms_txt")
    rows = surveys.group_by("country").agg(pl.len().alias("domains"), *refusing, llms)
    return rows.sort("domains", "country", descending=[True, False])


def newly_refusing(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the domains that began to refuse, with the crawlers and statements concerned."""
    what = pl.coalesce(pl.col("label"), pl.col("bot"))
    rows = changes.filter(pl.col("change") == "blocked").group_by("domain", "country", "signal")
    return rows.agg(what.unique().sort().str.join(", ").alias("refused")).sort("domain", "signal")


def _refuses(purpose: str) -> pl.Expr:
    return pl.col(f"usage_{purpose}").is_in(_REFUSED).fill_null(False)


def _share(rows: pl.DataFrame, condition: pl.Expr) -> float:
    return float(rows.select(condition.mean()).item()) if rows.height else 0.0


def _most(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]


def shares(values: Iterable[float]) -> list[str]:
    """Return shares as people read them."""
    return [f"{value:.1%}" for value in values]
