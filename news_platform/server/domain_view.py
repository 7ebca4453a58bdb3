"""Build the document of a domain, and the tracker of AI policies of the last 90 days."""

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import polars as pl

from news_platform.datasets.feeds import FEEDS, day_path
from news_platform.domain_metadata.history import (
    read_history,
    read_surveys,
    refusals_by_bot,
    standing,
)
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    TABLE_DATASET,
    policy_counts,
    read_changes,
)
from news_platform.domain_store.lookup import DomainStore
from news_platform.server.app_state import AppState, NothingHere, TakenDown
from news_platform.server.article_view import clusters_around, members_of
from news_platform.server.documents import (
    ArticleLinkDocument,
    ClusterMemberDocument,
    CrawlerDocument,
    DayCountDocument,
    DomainDocument,
    DuplicateDocument,
    FeedDocument,
    PoliciesDocument,
    PolicyChangeDocument,
    PolicyDocument,
    SurveyDocument,
)
from news_platform.server.parameters import BOTS, PolicyChoice, cursor_at
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import NotFound
from news_platform.storage.parquet import read_table
from news_platform.text.readable import spreadsheet_cell
from news_platform.web.urls import registrable_domain, url_host

_SHOWN_DAYS = 60
_SHOWN_ARTICLES = 20
_SHOWN_COPIES = 25
_SHOWN_SURVEYS = 30
_SHOWN_CHANGES = 40
_TRACKED_CHANGES = 50
CSV_COLUMNS = ("date", "domain", "country", "bot", "policy", "own")


def domain_document(state: AppState, name: str) -> DomainDocument:
    """Return what is known about a domain; raise NothingHere or TakenDown if nothing is to show."""
    domain = registrable_domain(name) if len(name) <= 253 else ""
    if not domain:
        raise NothingHere(f"invalid domain {name[:80]!r}: expected one such as bbc.co.uk")
    if state.takedowns.covers_domain(domain):
        raise TakenDown(f"the domain {domain} was taken down", thing=domain)
    pages = _pages(state, domain)
    articles = state.tables.days_of(domain)
    history = read_history(state.store, domain)
    feeds = tuple(_feeds(state, domain))
    if pages.is_empty() and not (articles or history.surveys or feeds):
        raise NothingHere(f"nothing is known about the domain {domain!r}", thing=domain)
    copied_from, copied_by = _copies(state, domain, articles)
    return DomainDocument(
        domain=domain,
        pages=int(pages["records"].sum()),
        first_day=pages["day"].min(),  # type: ignore[arg-type]  # its stub knows no type per column
        last_day=pages["day"].max(),  # type: ignore[arg-type]
        days=_days(pages, articles),
        languages=_languages(pages),
        feeds=feeds,
        surveys=tuple(map(SurveyDocument.of, list(reversed(history.surveys))[:_SHOWN_SURVEYS])),
        changes=tuple(
            PolicyChangeDocument.of({**row, "domain": domain})
            for row in list(reversed(history.changes))[:_SHOWN_CHANGES]
        ),
        policies=domain_policies(state, domain),
        articles=tuple(newest_articles(state, articles, domain=domain)),
        copied_from=copied_from,
        copied_by=copied_by,
    )


def newest_articles(
    state: AppState, days: Mapping[str, int], *, domain: str = "", limit: int = _SHOWN_ARTICLES
) -> Iterator[ArticleLinkDocument]:
    """Yield the newest articles, reading only as many days as needed."""
    wanted: list[str] = []
    count = 0
    for day in sorted(days, reverse=True):
        if count >= limit:
            break
        wanted.append(day)
        count += days[day]
    rows = state.tables.newest(limit=limit, days=wanted, domain=domain)
    for row in rows.iter_rows(named=True):
        if not state.takedowns.covers_url(row["url"]):
            yield ArticleLinkDocument.of(row)


def _pages(state: AppState, domain: str) -> pl.DataFrame:
    """Return the number of pages of the crawl per day and language."""
    try:
        rows = DomainStore(state.store).scan_records(domain)
        return rows.group_by("day", "language").agg(pl.len().alias("records")).collect()
    except NotFound:  # nothing was collected yet
        return pl.DataFrame(schema={"day": pl.Date, "language": pl.String, "records": pl.UInt32})


def _days(pages: pl.DataFrame, articles: Mapping[str, int]) -> tuple[DayCountDocument, ...]:
    by_day = pages.drop_nulls("day").group_by("day").agg(pl.col("records").sum())
    counts: dict[str, int] = {str(day): count for day, count in by_day.iter_rows()}
    return tuple(
        DayCountDocument(day=day, pages=counts.get(day, 0), articles=articles.get(day, 0))
        for day in sorted({*counts, *articles})[-_SHOWN_DAYS:]
    )


def _languages(pages: pl.DataFrame) -> Mapping[str, int]:
    rows = pages.group_by("language").agg(pl.col("records").sum())
    ordered = rows.sort("records", "language", descending=[True, False], nulls_last=True)
    return {language or "unknown": count for language, count in ordered.iter_rows()}


def _feeds(state: AppState, domain: str) -> Iterator[FeedDocument]:
    for row in state.version.kept("feeds", lambda: _read_feeds(state)):
        if row["domain"] == domain and not state.takedowns.covers_url(row["feed_url"]):
            yield FeedDocument.of(row)


def _read_feeds(state: AppState) -> list[dict[str, Any]]:
    """Return all feeds as the newest day of the dataset has them."""
    paths = sorted(info.path for info in state.store.list(FEEDS.name))
    days = [path.partition("date=")[2].partition("/")[0] for path in paths]
    if not days:
        return []
    try:
        rows = read_table(state.store, day_path(FEEDS, max(days)), FEEDS).to_dicts()
    except NotFound:
        return []  # replaced at this moment
    return [{**row, "domain": registrable_domain(url_host(row["feed_url"]))} for row in rows]


def _copies(
    state: AppState, domain: str, days: Mapping[str, int]
) -> tuple[tuple[DuplicateDocument, ...], tuple[DuplicateDocument, ...]]:
    """Return near-identical texts that others had before this domain, and after it."""
    rows = clusters_around(state, max(days) if days else datetime.now(UTC).date().isoformat())
    # Cheap first: the exact domain is compared only for addresses that contain it.
    likely = rows.filter(pl.col("uri").str.contains(domain, literal=True))
    clusters = rows.filter(pl.col("cluster_id").is_in(likely["cluster_id"].unique().implode()))
    earlier: list[DuplicateDocument] = []
    later: list[DuplicateDocument] = []
    for _, group in clusters.group_by("cluster_id", maintain_order=True):
        members = members_of(state, group)
        ours = next((one for one in members if one.domain == domain), None)
        if ours is not None:
            place = members.index(ours)
            earlier += (_copy(ours, one) for one in members[:place])
            later += (_copy(ours, one) for one in members[place:] if one.domain != domain)
    return tuple(_newest(earlier)), tuple(_newest(later))


def _newest(copies: list[DuplicateDocument]) -> list[DuplicateDocument]:
    ordered = sorted(copies, key=lambda one: (one.seen_at, one.theirs_hash), reverse=True)
    return ordered[:_SHOWN_COPIES]


def _copy(ours: ClusterMemberDocument, other: ClusterMemberDocument) -> DuplicateDocument:
    return DuplicateDocument(
        ours=ours.url,
        ours_hash=ours.url_hash,
        theirs=other.url,
        theirs_hash=other.url_hash,
        their_domain=other.domain,
        seen_at=max(ours.seen_at, other.seen_at),
    )


def policies_document(state: AppState, choice: PolicyChoice) -> PoliciesDocument:
    """Return the tracker: all crawlers, one page of policies, and the newest changes."""
    surveys = _surveys(state)
    now = _standing(surveys)
    chosen = _chosen(_rows(now), choice)
    page = chosen.slice(choice.offset, choice.limit)
    end = choice.offset + choice.limit
    return PoliciesDocument(
        domains=now.height,
        days=tuple(_survey_days(surveys)),
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
    writer.writerows(map(spreadsheet_cell, row) for row in chosen.select(CSV_COLUMNS).iter_rows())
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
    days = _survey_days(surveys)
    return standing(surveys, days[-1]) if days else pl.DataFrame(schema=_EMPTY)


_EMPTY = {"domain": pl.String, "country": pl.String, "date": pl.String, "ai_policies": pl.Null}


def _survey_days(surveys: pl.DataFrame) -> list[str]:
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
    shares = [refusals_by_bot(standing(surveys, day)) for day in _survey_days(surveys)]
    columns = ("domain", "country", "date", "ai_policies")
    # The version of the list of crawlers and the file do not matter for counts of one day.
    same = pl.lit("")
    counts = policy_counts(now.select(columns).with_columns(ai_list_version=same, rules_file=same))
    return tuple(
        CrawlerDocument(
            **row,
            operator=BOTS[row["bot"]].operator if row["bot"] in BOTS else None,
            purpose=BOTS[row["bot"]].purpose if row["bot"] in BOTS else None,
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
    return map(PolicyChangeDocument.of, islice(chosen, _TRACKED_CHANGES))


def _read_changes(state: AppState) -> list[dict[str, object]]:
    """Return the changes of the last days that had some, newest first."""
    found: list[dict[str, object]] = []
    for day in sorted(read_markers(state.store, CHANGES_DATASET), reverse=True):
        if len(found) >= 20 * _TRACKED_CHANGES:
            break
        try:
            found += read_changes(state.store, day).to_dicts()
        except NotFound:
            continue  # the table is being rebuilt
    return [row for row in found if not state.takedowns.covers_domain(str(row["domain"]))]
