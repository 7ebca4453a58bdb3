"""News sitemaps of surveyed domains as a source of articles: one job and its hourly schedule."""

from datetime import timedelta

import dagster as dg

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.defs.metadata import markdown_table
from news_platform.defs.sensors import skip_reason
from news_platform.domain_metadata.news_sitemaps import (
    fetch_candidates_over_web,
    read_news_sources,
)
from news_platform.resources import Clock, DataRoot, Ledger, Web, candidate_options
from news_platform.rss import pipeline
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import add_sitemap_entries
from news_platform.rss.ledger.feed_rows import domains_with_feeds
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.takedowns.match import Takedowns

# A domain that was not surveyed for longer may have changed its rules since.
SURVEYED_DAYS = 30


@dg.op(pool="ledger")
def add_sitemap_articles(
    context: dg.OpExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
) -> None:
    """Fetch news sitemaps of domains without feeds and add their newest pages to the ledger."""
    now = clock.now()
    pipeline.ensure(ledger.engine, now=now)
    sources = read_news_sources(
        data_root.store,
        since=str(now.date() - timedelta(days=SURVEYED_DAYS)),
        skip=domains_with_feeds(ledger.engine),
    )
    options = candidate_options(data_root.settings.domain_metadata)
    found = fetch_candidates_over_web(sources, web=web.fetch_options, now=now, options=options)
    listed = (
        (one.sitemap_url, FeedEntry(one.url, one.title, one.published_at, one.url, ""))
        for one in found.candidates
    )
    takedowns = Takedowns.read(data_root.store, now=now)
    with cleaned_later(data_root.store, WHOLE_LEDGER):
        added = add_sitemap_entries(ledger.engine, listed, now=now, takedowns=takedowns)
    context.add_output_metadata(
        {
            "sitemaps": len(sources),
            "candidates": len(found.candidates),
            TAKEN_DOWN: sum(takedowns.covers_url(one.url) for one in found.candidates),
            "new_articles": added.new,
            "known_articles": added.known,
            "outcomes": markdown_table(("outcome", "sitemaps"), found.outcomes.items()),
        }
    )


@dg.job(executor_def=dg.in_process_executor)
def collect_sitemap_articles() -> None:
    """Add the newest pages of news sitemaps to the articles that wait to be fetched."""
    add_sitemap_articles()


@dg.schedule(
    job=collect_sitemap_articles,
    cron_schedule="25 * * * *",
    description="Reads the news sitemaps of surveyed domains without feeds, if enabled.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def read_news_sitemaps(
    data_root: dg.ResourceParam[DataRoot],
) -> dg.RunRequest | dg.SkipReason:
    """Request a run if the settings enable it."""
    if reason := skip_reason(data_root.store):
        return reason
    if data_root.settings.domain_metadata.news_sitemaps <= 0:
        return dg.SkipReason("disabled: NEWS_PLATFORM_NEWS_SITEMAPS is 0")
    return dg.RunRequest()


defs = dg.Definitions(jobs=[collect_sitemap_articles], schedules=[read_news_sitemaps])
