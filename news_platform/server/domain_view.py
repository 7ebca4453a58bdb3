"""Build the document of a domain, and of who allows and refuses what to which crawler."""

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice

import polars as pl

from news_platform.domain_metadata.history import read_history
from news_platform.domain_metadata.table import CHANGES_DATASET, read_changes
from news_platform.domain_metadata.verdicts import read_usage_verdicts
from news_platform.domain_store.lookup import DomainStore
from news_platform.server.app_state import AppState, NothingHere, TakenDown
from news_platform.server.article_view import clusters_around, members_of
from news_platform.server.documents import (
    ArticleLinkDocument,
    ClusterMemberDocument,
    DayCountDocument,
    DomainDocument,
    DuplicateDocument,
    FeedDocument,
    PoliciesDocument,
    PolicyChangeDocument,
    SurveyDocument,
    VerdictDocument,
)
from news_platform.server.overview import feed_rows
from news_platform.server.parameters import EVERYBODY, PolicyChoice, cursor_at
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import NotFound
from news_platform.text.readable import did_you_mean, spreadsheet_cell
from news_platform.web.urls import registrable_domain

_SHOWN_DAYS = 60
_SHOWN_ARTICLES = 20
_SHOWN_COPIES = 25
_SHOWN_SURVEYS = 30
_SHOWN_CHANGES = 40
_TRACKED_CHANGES = 50
CSV_COLUMNS = (
    *("domain", "country", "bot", "operator", "purpose", "verdict", "since"),
    *("statement", "system", "source", "line", "read_at"),
)


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
    rows = state.tables.newest(limit=limit, days=wanted, domain=[domain] if domain else [])
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
    return (FeedDocument.of(row) for row in feed_rows(state) if row["domain"] == domain)


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
    """Return the verdicts: how many of each kind, one page of them, and the newest changes."""
    rows, chosen = _verdicts(state), _chosen(state, choice)
    end = choice.offset + choice.limit
    return PoliciesDocument(
        domains=rows["domain"].n_unique(),
        purposes=_counted(rows.filter(pl.col("bot") == EVERYBODY), "purpose"),
        crawlers=_crawlers(rows),
        verdicts=tuple(map(VerdictDocument.of, chosen[choice.offset : end].iter_rows(named=True))),
        changes=tuple(_changes(state, choice)),
        count=chosen.height,
        advice=tuple(_unknown_domain(rows, choice.domain)),
        next_cursor=cursor_at(end) if end < chosen.height else None,
    )


def _unknown_domain(rows: pl.DataFrame, domain: str) -> Iterator[str]:
    known = set(rows["domain"])
    if domain and domain not in known:
        yield f"the domain {domain!r} is not surveyed: {did_you_mean(domain, known)}"


def policies_csv(state: AppState, choice: PolicyChoice) -> bytes:
    """Return all chosen verdicts as CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    rows = _chosen(state, choice).select(CSV_COLUMNS)
    writer.writerows(map(spreadsheet_cell, row) for row in rows.iter_rows())
    return out.getvalue().encode()


def domain_policies(state: AppState, domain: str) -> tuple[VerdictDocument, ...]:
    """Return the verdicts of a domain's newest survey, those of named crawlers last."""
    rows = _verdicts(state).filter(pl.col("domain") == domain)
    return tuple(map(VerdictDocument.of, rows.iter_rows(named=True)))


def _verdicts(state: AppState) -> pl.DataFrame:
    return state.version.kept("verdicts", lambda: read_usage_verdicts(state.store))


def _chosen(state: AppState, choice: PolicyChoice) -> pl.DataFrame:
    given = choice.model_dump(include={"bot", "domain", "purpose", "verdict"})
    if not any(given.values()):
        return _verdicts(state)
    return read_usage_verdicts(state.store, **given)


def _counted(rows: pl.DataFrame, name: str) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, dict[str, int]] = {}
    counts = rows.group_by(name, "verdict").agg(pl.col("domain").n_unique())
    for value, verdict, count in counts.sort("domain", descending=True).iter_rows():
        found.setdefault(value, {})[verdict] = count
    return found


def _crawlers(rows: pl.DataFrame) -> Mapping[str, Mapping[str, int]]:
    named = (pl.col("bot") != EVERYBODY) & (pl.col("purpose") == "ai_train")
    found = _counted(rows.filter(named), "bot")
    ordered = sorted(found.items(), key=lambda one: (-one[1].get("refuse", 0), one[0]))
    return dict(ordered)


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
