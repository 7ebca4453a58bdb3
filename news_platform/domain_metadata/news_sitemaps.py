"""News sitemaps of surveyed domains in, article candidates out, newest first.

A survey notes which sitemaps of a domain are for news: by their name in robots.txt or in an index,
or because their entries have a `news:news` element. `read_news_sources` lists them, and
`fetch_candidates` fetches them again and returns the pages of the last days. A site that refuses us
has none.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl
from lxml import etree

from news_platform.datasets.domain_surveys import DOMAIN_SURVEYS
from news_platform.domain_metadata.sitemaps import parse_sitemap
from news_platform.errors import FetchError
from news_platform.html.dates import parse_date
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import Fetcher, FetchOptions, WebFetcher
from news_platform.web.urls import registrable_domain

SOURCE = "sitemap"
"""How the ledger of articles names where these candidates come from."""


@dataclass(frozen=True, slots=True)
class CandidateOptions:
    """Limits: sitemaps per run, pages per sitemap and per run, age and size."""

    max_sitemaps: int = 500
    per_sitemap: int = 50
    per_run: int = 5_000
    # News sitemaps list the articles of the last two days, by Google's specification.
    max_age_days: float = 2.0
    max_bytes: int = 10 * 1024 * 1024
    concurrency: int = 16


@dataclass(frozen=True, slots=True)
class NewsSource:
    """A news sitemap of a domain."""

    domain: str
    url: str


@dataclass(frozen=True, slots=True)
class ArticleCandidate:
    """A page that a news sitemap lists; `published_at` is aware UTC."""

    url: str
    title: str
    published_at: datetime
    domain: str
    sitemap_url: str
    source: str = SOURCE


@dataclass(slots=True)
class CandidateReport:
    """The candidates of a run, newest first, and how many sitemaps had which outcome."""

    candidates: list[ArticleCandidate] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)


def read_news_sources(
    store: ObjectStore, *, since: str, skip: frozenset[str] = frozenset()
) -> list[NewsSource]:
    """Return the news sitemaps of the domains surveyed since a day, those of `skip` left out.

    The newest survey of a domain counts. Domains that were surveyed longest ago come last.
    """
    surveys = ParquetEngine(store, DOMAIN_SURVEYS).scan()
    rows = surveys.filter(pl.col("final") & (pl.col("date") >= since))
    ordered = rows.sort("date", descending=True, maintain_order=True)
    newest = ordered.unique("domain", keep="first", maintain_order=True)
    return [
        NewsSource(domain, url)
        for domain, urls in newest.select("domain", "news_sitemaps").collect().iter_rows()
        if domain not in skip
        for url in urls or ()
    ]


def fetch_candidates_over_web(
    sources: Sequence[NewsSource], *, web: FetchOptions, now: datetime, options: CandidateOptions
) -> CandidateReport:
    """Fetch news sitemaps over HTTP; for callers without an event loop."""

    async def go() -> CandidateReport:
        async with WebFetcher(web) as fetcher:
            return await fetch_candidates(sources, fetcher=fetcher, now=now, options=options)

    return asyncio.run(go())


async def fetch_candidates(
    sources: Sequence[NewsSource], *, fetcher: Fetcher, now: datetime, options: CandidateOptions
) -> CandidateReport:
    """Fetch news sitemaps, several at a time; return their pages of the last days."""
    report = CandidateReport()
    slots = asyncio.Semaphore(options.concurrency)

    async def fetch(source: NewsSource) -> None:
        outcome = INTERNAL_ERROR
        async with slots:
            with boundary("news sitemap", source.url):
                outcome, found = await _fetch_one(source, fetcher=fetcher, now=now, options=options)
                report.candidates += found
        report.outcomes[outcome] = report.outcomes.get(outcome, 0) + 1

    await run_concurrently(fetch(source) for source in sources[: options.max_sitemaps])
    newest = {one.url: one for one in sorted(report.candidates, key=_age, reverse=True)}
    report.candidates = sorted(newest.values(), key=_age)[: options.per_run]
    return report


async def _fetch_one(
    source: NewsSource, *, fetcher: Fetcher, now: datetime, options: CandidateOptions
) -> tuple[str, list[ArticleCandidate]]:
    try:
        response = await fetcher.fetch(source.url, max_body_bytes=options.max_bytes)
    except FetchError as error:
        return error.reason, []
    if not 200 <= response.status < 300 or response.truncated:
        return "too_large" if response.truncated else f"http_{response.status}", []
    oldest = now - timedelta(days=options.max_age_days)
    pages = [
        one
        for one in parse_news_sitemap(response.body, source)
        # A date far in the future is wrong, and would stay the newest for ever.
        if oldest <= one.published_at <= now + timedelta(days=1)
    ]
    return "ok", sorted(pages, key=_age)[: options.per_sitemap]


def parse_news_sitemap(body: bytes, source: NewsSource) -> list[ArticleCandidate]:
    """Return the pages of a sitemap that have a date and belong to its domain.

    What `parse_sitemap` refuses has none: a hostile file costs no more than there.
    """
    found: list[ArticleCandidate] = []

    def collect(entry: etree._Element) -> None:
        if (candidate := _candidate(entry, source)) is not None:
            found.append(candidate)

    return found if parse_sitemap(body, source.url, on_entry=collect).kind == "urlset" else []


def _candidate(entry: etree._Element, source: NewsSource) -> ArticleCandidate | None:
    texts = {
        str(child.tag).rpartition("}")[2].rpartition(":")[2]: (child.text or "").strip()
        for child in entry.iter()
        if isinstance(child.tag, str) and "image" not in child.tag and "video" not in child.tag
    }
    published = parse_date(texts.get("publication_date") or texts.get("lastmod") or "")
    url = texts.get("loc", "")
    # A sitemap speaks for its own site only.
    if published is None or registrable_domain(url) != source.domain:
        return None
    return ArticleCandidate(url, texts.get("title", ""), published, source.domain, source.url)


def _age(one: ArticleCandidate) -> tuple[float, str]:
    return -one.published_at.timestamp(), one.url
