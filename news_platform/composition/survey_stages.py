"""Run the stages of the survey with the resources of the settings, for commands and the graph."""

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyReport
from news_platform.domain_metadata.news_sitemaps import (
    ArticleCandidate,
    CandidateReport,
    fetch_candidates_over_web,
    read_news_sources,
)
from news_platform.domain_metadata.pipeline import survey_over_web
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.resurvey import ResurveyPlan, plan_resurvey
from news_platform.resources import Resources, candidate_options, resurvey_options, survey_options
from news_platform.rss import pipeline
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import AddedEntries, add_sitemap_entries
from news_platform.rss.ledger.feed_rows import domains_with_feeds
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.takedowns.match import Takedowns

# A domain that was not surveyed for longer may have changed its rules since.
_SURVEYED_DAYS = 30


def survey(resources: Resources, key: str, *, worker: str) -> SurveyReport:
    """Survey the domains of a batch that have no final outcome yet."""
    return survey_over_web(
        PartitionInfo.parse(key),
        web=resources.web.fetch_options,
        queue=DomainQueue(resources.ledger.engine),
        store=resources.data_root.store,
        clock=resources.clock.now,
        seconds=time.time,
        worker=worker,
        options=survey_options(resources.settings.domain_metadata, resources.web),
    )


def resurvey_plan(resources: Resources) -> ResurveyPlan:
    """Return which domains to survey again today."""
    return plan_resurvey(
        store=resources.data_root.store,
        queue=DomainQueue(resources.ledger.engine),
        now=resources.clock.now(),
        options=resurvey_options(resources.settings.domain_metadata),
    )


@dataclass(frozen=True, slots=True)
class SitemapArticles:
    """The pages of news sitemaps: all that were found, those not taken down, those added."""

    sitemaps: int
    found: CandidateReport
    allowed: tuple[ArticleCandidate, ...]
    added: AddedEntries | None


def read_news_sitemaps(
    resources: Resources, *, limit: int | None = None, add: bool = True
) -> SitemapArticles:
    """Fetch news sitemaps of domains without feeds; add their newest pages to the ledger."""
    now, engine, store = resources.clock.now(), resources.ledger.engine, resources.data_root.store
    pipeline.ensure(engine, now=now)
    since = str(now.date() - timedelta(days=_SURVEYED_DAYS))
    sources = read_news_sources(store, since=since, skip=domains_with_feeds(engine))
    options = candidate_options(resources.settings.domain_metadata)
    if limit is not None:
        options = replace(options, max_sitemaps=limit)
    web = resources.web.fetch_options
    found = fetch_candidates_over_web(sources, web=web, now=now, options=options)
    takedowns = Takedowns.read(store, now=now)
    allowed = tuple(one for one in found.candidates if not takedowns.covers_url(one.url))
    listed = [
        (one.sitemap_url, FeedEntry(one.url, one.title, one.published_at, one.url, ""))
        for one in allowed
    ]
    added = None
    if add:
        with cleaned_later(store, WHOLE_LEDGER):
            added = add_sitemap_entries(engine, listed, now=now, takedowns=takedowns)
    return SitemapArticles(len(sources), found, allowed, added)
