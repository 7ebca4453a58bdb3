"""Build the AI policy tracker of the last 90 days: who refuses whom, and since when."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import polars as pl

from news_platform.domain_metadata.history import read_surveys, refusals_by_bot, standing
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    POLICIES,
    TABLE_DATASET,
    policy_counts,
    read_changes,
)
from news_platform.errors import InputError
from news_platform.server.app_state import AppState
from news_platform.server.documents import (
    CrawlerDocument,
    PoliciesDocument,
    PolicyChangeDocument,
    PolicyDocument,
)
from news_platform.server.search_view import cursor_at
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import NotFound
from news_platform.web.robots import AI_BOTS

_BOTS = {bot.name: bot for bot in AI_BOTS}
_CHANGES = 50
CSV_COLUMNS = ("date", "domain", "country", "bot", "policy", "own")


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """Which policies to list; empty means all."""

    bot: str = ""
    domain: str = ""
    policy: str = ""
    limit: int = 100
    offset: int = 0

    def __post_init__(self) -> None:
        if self.policy and self.policy not in POLICIES:
            names = ", ".join(POLICIES)
            raise InputError(f"unknown policy {self.policy!r}: expected one of {names}")
        if self.bot and self.bot not in _BOTS:
            raise InputError(f"unknown crawler {self.bot[:80]!r}: see `crawlers` for all names")


def policies_document(state: AppState, choice: PolicyChoice) -> PoliciesDocument:
    """Return the tracker: all crawlers, one page of policies, and the newest changes."""
    surveys = _surveys(state)
    now = _standing(surveys)
    chosen = _chosen(_rows(now), choice)
    page = chosen.slice(choice.offset, choice.limit)
    end = choice.offset + choice.limit
    return PoliciesDocument(
        domains=now.height,
        days=tuple(_days(surveys)),
        crawlers=state.version.kept("crawlers", lambda: _crawlers(surveys)),
        policies=tuple(PolicyDocument(**row) for row in page.iter_rows(named=True)),
        changes=tuple(_changes(state, choice)),
        count=chosen.height,
        next_cursor=cursor_at(end) if end < chosen.height else None,
    )


def policies_csv(state: AppState, choice: PolicyChoice) -> bytes:
    """Return every survey's policies as CSV, oldest first, so that one sees them change."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    chosen = _chosen(_rows(_surveys(state)), choice).sort("date", "domain", "bot")
    writer.writerows(chosen.select(CSV_COLUMNS).iter_rows())
    return out.getvalue().encode()


def domain_policies(state: AppState, domain: str) -> tuple[PolicyDocument, ...]:
    """Return the policies of a domain's newest survey, refusals first."""
    rows = _rows(_standing(_surveys(state)).filter(pl.col("domain") == domain))
    order = {name: place for place, name in enumerate(("disallow_all", "partial", "allow"))}
    found = [PolicyDocument(**row) for row in rows.iter_rows(named=True)]
    return tuple(sorted(found, key=lambda one: (order.get(one.policy, 9), one.bot)))


def _surveys(state: AppState) -> pl.DataFrame:
    def read() -> pl.DataFrame:
        days = read_markers(state.store, TABLE_DATASET)
        surveys = read_surveys(state.store, max(days)) if days else pl.DataFrame()
        if surveys.is_empty():
            return surveys
        shown = [not state.takedowns.covers_domain(name) for name in surveys["domain"]]
        return surveys.filter(pl.Series(shown))

    return state.version.kept("surveys", read)


def _standing(surveys: pl.DataFrame) -> pl.DataFrame:
    days = _days(surveys)
    return standing(surveys, days[-1]) if days else pl.DataFrame(schema=_EMPTY)


_EMPTY = {"domain": pl.String, "country": pl.String, "date": pl.String, "ai_policies": pl.Null}


def _days(surveys: pl.DataFrame) -> list[str]:
    return sorted(surveys["date"].unique()) if surveys.height else []


def _rows(surveys: pl.DataFrame) -> pl.DataFrame:
    """Return one row per domain and crawler."""
    if surveys.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(CSV_COLUMNS, pl.String))
    rows = surveys.select("date", "domain", "country", "ai_policies").explode("ai_policies")
    return rows.drop_nulls("ai_policies").unnest("ai_policies").select(CSV_COLUMNS)


def _chosen(rows: pl.DataFrame, choice: PolicyChoice) -> pl.DataFrame:
    wanted = {"bot": choice.bot, "domain": choice.domain, "policy": choice.policy}
    for name, value in wanted.items():
        if value:
            rows = rows.filter(pl.col(name) == value)
    return rows.sort("domain", "bot")


def _crawlers(surveys: pl.DataFrame) -> tuple[CrawlerDocument, ...]:
    now = _standing(surveys)
    if now.is_empty():
        return ()
    shares = [refusals_by_bot(standing(surveys, day)) for day in _days(surveys)]
    columns = ("domain", "country", "date", "ai_policies")
    # The version of the list of crawlers does not matter for counts of one day.
    counts = policy_counts(now.select(columns).with_columns(ai_list_version=pl.lit("")))
    return tuple(
        CrawlerDocument(
            **row,
            operator=_BOTS[row["bot"]].operator if row["bot"] in _BOTS else None,
            purpose=_BOTS[row["bot"]].purpose if row["bot"] in _BOTS else None,
            share=shares[-1].get(row["bot"], 0.0),
            trend=tuple(share.get(row["bot"], 0.0) for share in shares),
        )
        for row in counts.iter_rows(named=True)
    )


def _changes(state: AppState, choice: PolicyChoice) -> Iterator[PolicyChangeDocument]:
    rows = state.version.kept("policy changes", lambda: _read_changes(state))
    chosen = (
        row
        for row in rows
        if choice.bot in ("", row["bot"]) and choice.domain in ("", row["domain"])
    )
    return map(PolicyChangeDocument.of, islice(chosen, _CHANGES))


def _read_changes(state: AppState) -> list[dict[str, object]]:
    """Return the changes of the last days that had some, newest first."""
    found: list[dict[str, object]] = []
    for day in sorted(read_markers(state.store, CHANGES_DATASET), reverse=True):
        if len(found) >= 20 * _CHANGES:
            break
        try:
            found += read_changes(state.store, day).to_dicts()
        except NotFound:
            continue  # the table is being rebuilt
    return [row for row in found if not state.takedowns.covers_domain(str(row["domain"]))]
