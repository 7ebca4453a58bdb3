"""The assets of feeds, their articles and the sheet, and the job that reads news sitemaps."""

from dataclasses import replace
from typing import Any

import dagster as dg
import sqlalchemy as sa
from pydantic import Field

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.ccnews.pipeline import RebuildMode
from news_platform.composition import rss_stages, survey_stages
from news_platform.datasets.feeds import ARTICLE_SHEETS, ARTICLES, FEEDS, PENDING_ARTICLES
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.defs.assets import Metadata, dataset_asset
from news_platform.defs.metadata import hours_plot, markdown_table
from news_platform.defs.rebuild_rules import Platform, RebuildRule
from news_platform.defs.sensors import asset_schedule, skip_reason
from news_platform.resources import (
    Resources,
    open_full_texts,
    sheets_access,
    work_options,
    workbook_options,
)
from news_platform.rss import pipeline
from news_platform.rss.article_files import PAGES_FOLDER
from news_platform.rss.export import changed_days, write_feed_days
from news_platform.rss.feed_list import candidate_feeds
from news_platform.rss.ledger.article_queue import has_due_articles
from news_platform.rss.ledger.feed_rows import (
    feeds_to_check,
    has_due_feeds,
    unknown_feeds,
)
from news_platform.rss.ledger.status import (
    LedgerStatus,
    ledger_status,
    outdated_articles,
    worst_feeds,
)
from news_platform.rss.reextract import Reextraction, ReextractReport
from news_platform.rss.sheets.workbook import write_workbook
from news_platform.web.urls import url_host


@dataset_asset(FEEDS, pool="ledger")
def feeds(platform: Platform) -> Metadata:
    """Discover feeds and check those that are known."""
    now, engine = platform.clock.now(), platform.ledger.engine
    pipeline.ensure(engine, now=now)
    report, listing = rss_stages.discover_candidates(platform)
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
    report = rss_stages.poll(platform)
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
    engine, store, given = platform.ledger.engine, platform.data_root.store, platform.settings.rss
    # A retried run has another id, so it cannot use the claims of the run that died.
    report = rss_stages.work(platform, context.run.run_id)
    again = _extract_again(config.redo, platform)
    now = platform.clock.now()
    exported = pipeline.run_export(
        engine,
        store,
        full_texts=open_full_texts(platform.data_root),
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
        **_article_metadata(status),
    }


def _extract_again(redo: RebuildMode, platform: Resources) -> ReextractReport:
    """Extract stored articles again from the kept bytes of their pages, as the run config says."""
    is_due = redo is RebuildMode.all or "kept page" in outdated_articles(platform.ledger.engine)
    if redo is RebuildMode.missing or not is_due:
        return ReextractReport(0, {})
    version = "" if redo is RebuildMode.all else EXTRACTOR_VERSION
    return rss_stages.reextract(platform, Reextraction(version))


def _feed_metadata(engine: sa.Engine, status: LedgerStatus) -> dict[str, Any]:
    columns = ("host", "status", "health", "silent days")
    worst = ((url_host(row[0]), *row[1:]) for row in worst_feeds(engine))
    return {
        "feeds_by_status": markdown_table(("status", "feeds"), status.feeds.items()),
        "worst_feeds": markdown_table(columns, worst),
    }


def _article_metadata(status: LedgerStatus) -> dict[str, Any]:
    return {
        "articles_by_status": markdown_table(("status", "articles"), status.articles.items()),
        "duplicates": markdown_table(("reason", "URLs"), status.duplicates.items()),
        "errors_by_host": markdown_table(("host", "articles"), status.errors_by_host.items()),
        "articles_per_hour": hours_plot(status.articles_per_hour),
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
    report = survey_stages.read_news_sitemaps(platform)
    found, added = report.found, report.added
    context.add_output_metadata(
        {
            "sitemaps": report.sitemaps,
            "candidates": len(found.candidates),
            TAKEN_DOWN: len(found.candidates) - len(report.allowed),
            "new_articles": added.new if added else 0,
            "known_articles": added.known if added else 0,
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


_TICK_MINUTES = 10


@dataset_asset(ARTICLE_SHEETS, pool="sheets")
def article_sheets(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Bring the Google Sheet or the workbook up to date."""
    # New articles are analysed first, so that their analyses are in the same sync.
    analyses = rss_stages.analyse(platform)
    access = sheets_access(platform.settings.sheets)
    if access is None:
        store = platform.data_root.store
        report = write_workbook(platform.ledger.engine, store, workbook_options(platform.settings))
        return {
            "dagster/row_count": sum(report.rows.values()),
            "dagster/uri": store.uri(report.path),
            "rows": markdown_table(("tab", "rows"), report.rows.items()),
            "rows_left_out": sum(report.left_out.values()),
            **analyses,
        }
    synced = rss_stages.sync_sheet(platform, access, owner=context.run.run_id)
    return {
        "dagster/uri": synced.url,
        "sheet": dg.MetadataValue.url(synced.url),
        "continued_from": synced.continued_from,
        **synced.counters,
        **analyses,
    }


def _is_due(resources: Resources) -> bool:
    # Only a call to Google shows whether an admin edited the sheet: once an hour, or with new rows.
    is_hour = resources.clock.now().minute < _TICK_MINUTES
    has_sheet = sheets_access(resources.settings.sheets) is not None
    return (has_sheet and is_hour) or rss_stages.lacks_rows(resources)


SHEETS_RULE = RebuildRule.when("article_sheets", rss_stages.lacks_rows)
run_article_sheets = asset_schedule(
    SHEETS_RULE,
    cron=f"*/{_TICK_MINUTES} * * * *",
    description="Writes new rows every ten minutes; reads admins' edits of a Google Sheet hourly.",
    is_due=_is_due,
)
