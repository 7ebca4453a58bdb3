"""The assets feeds, pending_articles and articles, and the job that reads news sitemaps."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import sqlalchemy as sa
from pydantic import Field

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.ccnews.pipeline import RebuildMode
from news_platform.datasets.feeds import ARTICLES, FEEDS, PENDING_ARTICLES
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.defs.assets import Metadata, dataset_asset
from news_platform.defs.metadata import hours_plot, markdown_table
from news_platform.defs.rebuild_rules import Platform, RebuildRule
from news_platform.defs.sensors import asset_schedule, skip_reason
from news_platform.domain_metadata.news_sitemaps import (
    fetch_candidates_over_web,
    read_news_sources,
)
from news_platform.resources import (
    Resources,
    candidate_options,
    discovery_options,
    open_full_texts,
    poll_options,
    work_options,
)
from news_platform.rss import pipeline
from news_platform.rss.article_files import PAGES_FOLDER, WorkPlaces, work_places
from news_platform.rss.discovery import FeedAccess
from news_platform.rss.export import WHOLE_LEDGER, changed_days, write_feed_days
from news_platform.rss.feed_list import apply_listing, candidate_feeds, listed_feeds
from news_platform.rss.feed_settings import feed_secrets
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.article_queue import WorkReport, has_due_articles
from news_platform.rss.ledger.entries import add_sitemap_entries
from news_platform.rss.ledger.feed_rows import (
    domains_with_feeds,
    feeds_to_check,
    has_due_feeds,
    unknown_feeds,
)
from news_platform.rss.ledger.status import (
    LedgerStatus,
    least_confident_articles,
    ledger_status,
    outdated_articles,
    recent_articles,
    worst_feeds,
)
from news_platform.rss.reextract import Reextraction, ReextractReport
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.takedowns.build_filters import cleaned_later, obeying
from news_platform.takedowns.match import Takedowns
from news_platform.web.urls import url_host

# A domain that was not surveyed for longer may have changed its rules since.
SURVEYED_DAYS = 30


@dataset_asset(FEEDS, pool="ledger")
def feeds(platform: Platform) -> Metadata:
    """Discover feeds and check those that are known."""
    now, engine, store = platform.clock.now(), platform.ledger.engine, platform.data_root.store
    pipeline.ensure(engine, now=now)
    with cleaned_later(store, WHOLE_LEDGER):
        report = pipeline.run_discovery(
            engine,
            (*candidate_feeds(store), *feeds_to_check(engine, now=now)),
            fetch=platform.web.fetch_options,
            options=obeying(
                discovery_options(platform.settings.rss), store, now=platform.clock.now()
            ),
            now=now,
            access=FeedAccess(secrets=feed_secrets(os.environ)),
        )
        listing = apply_listing(engine, listed_feeds(store), report.checked, now=now)
    status = ledger_status(engine, now=now)
    return {
        "dagster/row_count": sum(status.feeds.values()),
        "candidates": report.candidates,
        "added": report.added,
        "active_again": report.revived,
        "retired_by_feeds_opml": len(listing.retired),
        "verdicts": markdown_table(("verdict", "feeds"), report.outcomes.items()),
        **_feed_metadata(engine, status),
    }


@dataset_asset(PENDING_ARTICLES, pool="ledger")
def pending_articles(platform: Platform) -> Metadata:
    """Poll the feeds that are due."""
    now, engine, store = platform.clock.now(), platform.ledger.engine, platform.data_root.store
    with cleaned_later(store, WHOLE_LEDGER):
        report = pipeline.run_poll(
            engine,
            fetch=platform.web.fetch_options,
            options=obeying(poll_options(platform.settings.rss), store, now=now),
            now=now,
            secrets=feed_secrets(os.environ),
        )
    written = write_feed_days(engine, store, now=now)
    status = ledger_status(engine, now=now)
    return {
        "dagster/row_count": sum(status.articles.values()),
        "daily_rows_written": written.feeds + written.polls + written.articles,
        "feeds_polled": report.feeds,
        "new_articles": report.new_articles,
        "known_articles": report.known_articles,
        "updated_articles": report.updated_articles,
        "skipped_by_limit": report.skipped_articles,
        "feeds_turned_over": report.turned_over,
        "not_modified": report.outcomes.get("not_modified", 0),
        "outcomes": markdown_table(("outcome", "feeds"), report.outcomes.items()),
        **_feed_metadata(engine, status),
    }


class ArticlesConfig(dg.Config):
    """What a run of articles extracts."""

    redo: RebuildMode = Field(
        default=RebuildMode.outdated,
        description="missing: pending articles. outdated: also articles of older versions of the "
        "extractor, again from their kept pages. all: every article whose page is kept.",
    )


@dataset_asset(ARTICLES, pool="ledger")
def articles(
    context: dg.AssetExecutionContext, config: ArticlesConfig, platform: Platform
) -> Metadata:
    """Fetch and store pending articles, and write changed days."""
    full_texts, given = open_full_texts(platform.data_root), platform.settings.rss
    engine, store = platform.ledger.engine, platform.data_root.store
    places = work_places(
        store,
        full_texts,
        fulltext_dir=given.fulltext_dir,
        keeps_pages=given.pages_keep_days > 0,
    )
    with cleaned_later(store, WHOLE_LEDGER):
        report = _work(context.run.run_id, places, platform)
        now = platform.clock.now()
        again = _extract_again(config.redo, places, platform, now=now)
    exported = pipeline.run_export(
        engine,
        store,
        full_texts=full_texts,
        keep_days=given.fulltext_keep_days,
        now=now,
        pages=store.child(PAGES_FOLDER),
        pages_keep_days=given.pages_keep_days,
    )
    status = ledger_status(engine, now=now)
    return {
        "dagster/row_count": status.articles.get("stored", 0),
        "dagster/uri": store.uri("articles"),
        "claimed": report.claimed,
        "stored": report.stored,
        "duplicates_found": report.duplicates,
        "errors": report.outcomes.get("error", 0),
        "extracted_again": again.articles,
        "articles_outdated": sum(outdated_articles(engine).values()),
        "full_texts_expired": exported.full_texts_expired,
        "exported_days": len(exported.days),
        "outcomes": markdown_table(("outcome", "articles"), report.outcomes.items()),
        "outcomes_again": markdown_table(("outcome", "articles"), again.outcomes.items()),
        **_article_metadata(engine, status),
    }


def _work(worker_id: str, places: WorkPlaces, platform: Resources) -> WorkReport:
    """Fetch and store pending articles.

    The worker's id is that of the run: a retried run has another one, so it cannot use the claims
    of the run that died.
    """
    store, clock = platform.data_root.store, platform.clock
    return pipeline.run_work(
        platform.ledger.engine,
        fetch=platform.web.fetch_options,
        places=places,
        known_robots=SurveyedRobots(store, now=clock.now()),
        worker_id=worker_id,
        options=obeying(work_options(platform.settings.rss), store, now=clock.now()),
        clock=clock.now,
        secrets=feed_secrets(os.environ),
    )


def _extract_again(
    redo: RebuildMode, places: WorkPlaces, platform: Resources, *, now: datetime
) -> ReextractReport:
    """Extract stored articles again from the kept bytes of their pages, as the run config says."""
    engine = platform.ledger.engine
    is_due = redo is RebuildMode.all or "kept page" in outdated_articles(engine)
    if redo is RebuildMode.missing or not is_due:
        return ReextractReport(0, {})
    return pipeline.run_reextract(
        engine,
        # Also where pages are no longer kept: those of earlier days may still be there.
        places=replace(places, pages=platform.data_root.store.child(PAGES_FOLDER)),
        wanted=Reextraction("" if redo is RebuildMode.all else EXTRACTOR_VERSION),
        workers=work_options(platform.settings.rss).extractors,
        now=now,
    )


def _feed_metadata(engine: sa.Engine, status: LedgerStatus) -> dict[str, Any]:
    columns = ("host", "status", "health", "silent days")
    worst = ((url_host(row[0]), *row[1:]) for row in worst_feeds(engine))
    return {
        "feeds_by_status": markdown_table(("status", "feeds"), status.feeds.items()),
        "feeds_by_health": markdown_table(("health", "feeds"), status.feeds_by_health.items()),
        "worst_feeds": markdown_table(columns, worst),
    }


def _article_metadata(engine: sa.Engine, status: LedgerStatus) -> dict[str, Any]:
    columns = ("source", "language", "category", "words", "confidence")
    uncertain = least_confident_articles(engine)
    return {
        "articles_by_status": markdown_table(("status", "articles"), status.articles.items()),
        "duplicates": markdown_table(("reason", "URLs"), status.duplicates.items()),
        "errors_by_host": markdown_table(("host", "articles"), status.errors_by_host.items()),
        "articles_per_hour": hours_plot(status.articles_per_hour),
        "newest": markdown_table(columns, recent_articles(engine)),
        "least_confident": markdown_table(columns, uncertain),
    }


def _has_new_feeds(resources: Resources) -> bool:
    candidates = candidate_feeds(resources.data_root.store)
    engine = resources.ledger.engine
    again = feeds_to_check(engine, now=resources.clock.now(), limit=1)
    return bool(again or unknown_feeds(engine, candidates))


def _has_due_feeds(resources: Resources) -> bool:
    return has_due_feeds(resources.ledger.engine, now=resources.clock.now())


def _has_articles_to_work(resources: Resources) -> bool:
    engine = resources.ledger.engine
    lease = work_options(resources.settings.rss).lease_seconds
    is_due = has_due_articles(engine, lease_seconds=lease, now=resources.clock.now())
    return is_due or bool(changed_days(engine))


FEEDS_RULE = RebuildRule.when("feeds", _has_new_feeds)
PENDING_RULE = RebuildRule.when("pending_articles", _has_due_feeds)
ARTICLES_RULE = replace(
    RebuildRule.when("articles", _has_articles_to_work),
    outdated=lambda resources: sum(outdated_articles(resources.ledger.engine).values()),
)

run_feeds = asset_schedule(
    FEEDS_RULE,
    cron="0 6 * * *",
    description="Looks for new feeds every morning.",
    # A feed may also have been removed from feeds.opml, which is not worth a look every minute.
    is_due=lambda _resources: True,
)
run_pending_articles = asset_schedule(
    PENDING_RULE,
    cron="2-59/5 * * * *",
    description="Polls due feeds, each by its own rhythm.",
)
run_articles = asset_schedule(
    ARTICLES_RULE,
    cron="*/5 * * * *",
    description="Fetches pending articles every five minutes.",
    # Only a person has a new version of the extractor redo the whole ledger.
    run_config={"ops": {"articles": {"config": {"redo": RebuildMode.missing.name}}}},
)


@dg.op(pool="ledger")
def add_sitemap_articles(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Fetch news sitemaps of domains without feeds and add their newest pages to the ledger."""
    now, engine, store = platform.clock.now(), platform.ledger.engine, platform.data_root.store
    pipeline.ensure(engine, now=now)
    sources = read_news_sources(
        store,
        since=str(now.date() - timedelta(days=SURVEYED_DAYS)),
        skip=domains_with_feeds(engine),
    )
    options = candidate_options(platform.settings.domain_metadata)
    found = fetch_candidates_over_web(
        sources, web=platform.web.fetch_options, now=now, options=options
    )
    listed = (
        (one.sitemap_url, FeedEntry(one.url, one.title, one.published_at, one.url, ""))
        for one in found.candidates
    )
    takedowns = Takedowns.read(store, now=now)
    with cleaned_later(store, WHOLE_LEDGER):
        added = add_sitemap_entries(engine, listed, now=now, takedowns=takedowns)
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
def read_news_sitemaps(platform: Platform) -> dg.RunRequest | dg.SkipReason:
    """Request a run if the settings enable it."""
    if reason := skip_reason(platform.data_root.store):
        return reason
    if platform.settings.domain_metadata.news_sitemaps <= 0:
        return dg.SkipReason("disabled: NEWS_PLATFORM_NEWS_SITEMAPS is 0")
    return dg.RunRequest()
