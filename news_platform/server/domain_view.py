"""From the name of a domain to its document: days, languages, feeds, policies and copies."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from news_platform.datasets.feeds import FEEDS, day_path
from news_platform.domain_metadata.history import DomainHistory, read_history
from news_platform.domain_store.lookup import DomainStore
from news_platform.server.article_view import clusters_around, members_of
from news_platform.server.documents import (
    ArticleLinkDocument,
    ClusterMemberDocument,
    DayCountDocument,
    DomainDocument,
    DuplicateDocument,
    FeedDocument,
    SurveyDocument,
)
from news_platform.server.policy_view import change_document, domain_policies
from news_platform.server.site import NothingHere, Site, TakenDown
from news_platform.storage.objects.store import NotFound
from news_platform.storage.parquet import read_table
from news_platform.web.urls import registrable_domain, url_host

_SHOWN_DAYS = 60
_SHOWN_ARTICLES = 20
_SHOWN_COPIES = 25
_SHOWN_SURVEYS = 30
_SHOWN_CHANGES = 40


def domain_document(site: Site, name: str) -> DomainDocument:
    """Return what is known about a domain; raise NothingHere or TakenDown if nothing is to show."""
    domain = registrable_domain(name) if len(name) <= 253 else ""
    if not domain:
        raise NothingHere(f"invalid domain {name[:80]!r}: expected one such as bbc.co.uk")
    if site.takedowns.covers_domain(domain):
        raise TakenDown(f"the domain {domain} was taken down", thing=domain)
    pages = _pages(site, domain)
    articles = site.tables.days_of(domain)
    history = read_history(site.store, domain)
    feeds = tuple(_feeds(site, domain))
    if pages.is_empty() and not (articles or history.surveys or feeds):
        raise NothingHere(f"nothing is known about the domain {domain!r}", thing=domain)
    copied_from, copied_by = _copies(site, domain, articles)
    return DomainDocument(
        domain=domain,
        pages=int(pages["records"].sum()),
        first_day=pages["day"].min(),  # type: ignore[arg-type]  # its stub knows no type per column
        last_day=pages["day"].max(),  # type: ignore[arg-type]
        days=_days(pages, articles),
        languages=_languages(pages),
        feeds=feeds,
        surveys=tuple(_surveys(history)),
        changes=tuple(
            change_document({**row, "domain": domain})
            for row in list(reversed(history.changes))[:_SHOWN_CHANGES]
        ),
        policies=domain_policies(site, domain),
        articles=tuple(newest_articles(site, articles, domain=domain)),
        copied_from=copied_from,
        copied_by=copied_by,
    )


def newest_articles(
    site: Site, days: Mapping[str, int], *, domain: str = "", limit: int = _SHOWN_ARTICLES
) -> Iterator[ArticleLinkDocument]:
    """Yield the newest articles, reading only as many days as needed."""
    wanted: list[str] = []
    count = 0
    for day in sorted(days, reverse=True):
        if count >= limit:
            break
        wanted.append(day)
        count += days[day]
    rows = site.tables.newest(limit=limit, days=wanted, domain=domain)
    for row in rows.iter_rows(named=True):
        if not site.takedowns.covers_url(row["url"]):
            names = ArticleLinkDocument.model_fields
            yield ArticleLinkDocument.model_validate({name: row[name] for name in names})


def _pages(site: Site, domain: str) -> pl.DataFrame:
    """Return the number of pages of the crawl per day and language."""
    try:
        rows = DomainStore(site.store).scan_records(domain)
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


def _feeds(site: Site, domain: str) -> Iterator[FeedDocument]:
    for row in site.kept("feeds", lambda: _read_feeds(site)):
        if row["domain"] == domain:
            names = FeedDocument.model_fields
            yield FeedDocument.model_validate({name: row[name] for name in names})


def _read_feeds(site: Site) -> list[dict[str, Any]]:
    """Return all feeds as the newest day of the dataset has them."""
    paths = sorted(info.path for info in site.store.list(FEEDS.name))
    days = [path.partition("date=")[2].partition("/")[0] for path in paths]
    if not days:
        return []
    try:
        rows = read_table(site.store, day_path(FEEDS, max(days)), FEEDS).to_dicts()
    except NotFound:
        return []  # replaced at this moment
    return [{**row, "domain": registrable_domain(url_host(row["feed_url"]))} for row in rows]


def _surveys(history: DomainHistory) -> Iterator[SurveyDocument]:
    for row in list(reversed(history.surveys))[:_SHOWN_SURVEYS]:
        names = SurveyDocument.model_fields
        yield SurveyDocument.model_validate({name: row[name] for name in names})


def _copies(
    site: Site, domain: str, days: Mapping[str, int]
) -> tuple[tuple[DuplicateDocument, ...], tuple[DuplicateDocument, ...]]:
    """Return near-identical texts that others had before this domain, and after it."""
    rows = clusters_around(site, max(days) if days else datetime.now(UTC).date().isoformat())
    # Cheap first: the exact domain is compared only for addresses that contain it.
    likely = rows.filter(pl.col("uri").str.contains(domain, literal=True))
    clusters = rows.filter(pl.col("cluster_id").is_in(likely["cluster_id"].unique().implode()))
    earlier: list[DuplicateDocument] = []
    later: list[DuplicateDocument] = []
    for _, group in clusters.group_by("cluster_id", maintain_order=True):
        members = members_of(site, group)
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
