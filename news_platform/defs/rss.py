"""The assets feeds, pending_articles and articles, with their checks and schedules."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import dagster as dg
from pydantic import Field

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.ccnews.pipeline import RebuildMode
from news_platform.datasets.feeds import ARTICLES, FEEDS, PENDING_ARTICLES
from news_platform.defs.assets import dataset_asset
from news_platform.defs.metadata import markdown_table, run_metadata
from news_platform.defs.plots import hours_plot
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.rss_checks import CHECKS
from news_platform.defs.runs import run_under_way, scheduled_run
from news_platform.defs.sensors import skip_reason
from news_platform.resources import (
    Clock,
    DataRoot,
    Ledger,
    Resources,
    Web,
    discovery_options,
    open_full_texts,
    poll_options,
    work_options,
)
from news_platform.rss import pipeline
from news_platform.rss.article_files import PAGES_FOLDER, WorkPlaces, work_places
from news_platform.rss.discovery import FeedAccess
from news_platform.rss.export import WHOLE_LEDGER, changed_days
from news_platform.rss.feed_days import write_feed_days
from news_platform.rss.feed_list import apply_listing, candidate_feeds, listed_feeds
from news_platform.rss.feed_settings import feed_secrets
from news_platform.rss.ledger.article_queue import has_due_articles
from news_platform.rss.ledger.feed_rows import feeds_to_check, has_due_feeds, unknown_feeds
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
from news_platform.rss.worker import WorkReport
from news_platform.takedowns.build_filters import cleaned_later, obeying
from news_platform.web.urls import url_host


@dataset_asset(FEEDS, pool="ledger")
def feeds(
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
) -> dg.MaterializeResult[None]:
    """Discover feeds and check those that are known."""
    now = clock.now()
    pipeline.ensure(ledger.engine, now=now)
    with cleaned_later(data_root.store, WHOLE_LEDGER):
        report = pipeline.run_discovery(
            ledger.engine,
            (*candidate_feeds(data_root.store), *feeds_to_check(ledger.engine, now=now)),
            fetch=web.fetch_options,
            options=obeying(
                discovery_options(data_root.settings.rss), data_root.store, now=clock.now()
            ),
            now=now,
            access=FeedAccess(secrets=feed_secrets(os.environ)),
        )
        listed = listed_feeds(data_root.store)
        listing = apply_listing(ledger.engine, listed, report.checked, now=now)
    status = ledger_status(ledger.engine, now=now)
    return dg.MaterializeResult(
        metadata=run_metadata(
            FEEDS,
            {
                "dagster/row_count": sum(status.feeds.values()),
                "candidates": report.candidates,
                "added": report.added,
                "active_again": report.revived,
                "retired_by_feeds_opml": len(listing.retired),
                "verdicts": markdown_table(("verdict", "feeds"), report.outcomes.items()),
                **_feed_metadata(ledger, status),
            },
        ),
    )


@dataset_asset(PENDING_ARTICLES, pool="ledger")
def pending_articles(
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
) -> dg.MaterializeResult[None]:
    """Poll the feeds that are due."""
    now = clock.now()
    with cleaned_later(data_root.store, WHOLE_LEDGER):
        report = pipeline.run_poll(
            ledger.engine,
            fetch=web.fetch_options,
            options=obeying(poll_options(data_root.settings.rss), data_root.store, now=now),
            now=now,
            secrets=feed_secrets(os.environ),
        )
    written = write_feed_days(ledger.engine, data_root.store, now=now)
    status = ledger_status(ledger.engine, now=now)
    return dg.MaterializeResult(
        metadata=run_metadata(
            PENDING_ARTICLES,
            {
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
                **_feed_metadata(ledger, status),
            },
        ),
    )


class ArticlesConfig(dg.Config):
    """What a run of articles extracts."""

    redo: RebuildMode = Field(
        default=RebuildMode.outdated,
        description="missing: pending articles. outdated: also articles of older versions of the "
        "extractor, again from their kept pages. all: every article whose page is kept.",
    )


@dataset_asset(ARTICLES, pool="ledger")
def articles(
    context: dg.AssetExecutionContext,
    config: ArticlesConfig,
    data_root: dg.ResourceParam[DataRoot],
    ledger: dg.ResourceParam[Ledger],
    web: dg.ResourceParam[Web],
    clock: dg.ResourceParam[Clock],
) -> dg.MaterializeResult[None]:
    """Fetch and store pending articles, and write changed days."""
    full_texts, given = open_full_texts(data_root), data_root.settings.rss
    places = work_places(
        data_root.store,
        full_texts,
        fulltext_dir=given.fulltext_dir,
        keeps_pages=given.pages_keep_days > 0,
    )
    with cleaned_later(data_root.store, WHOLE_LEDGER):
        report = _work(context.run.run_id, places, data_root, ledger, web=web, clock=clock)
        now = clock.now()
        again = _extract_again(config.redo, places, data_root, ledger, now=now)
    exported = pipeline.run_export(
        ledger.engine,
        data_root.store,
        full_texts=full_texts,
        keep_days=given.fulltext_keep_days,
        now=now,
        pages=data_root.store.child(PAGES_FOLDER),
        pages_keep_days=given.pages_keep_days,
    )
    status = ledger_status(ledger.engine, now=now)
    return dg.MaterializeResult(
        metadata=run_metadata(
            ARTICLES,
            {
                "dagster/row_count": status.articles.get("stored", 0),
                "dagster/uri": data_root.store.uri("articles"),
                "claimed": report.claimed,
                "stored": report.stored,
                "duplicates_found": report.duplicates,
                "errors": report.outcomes.get("error", 0),
                "extracted_again": again.articles,
                "articles_outdated": sum(outdated_articles(ledger.engine).values()),
                "full_texts_expired": exported.full_texts_expired,
                "exported_days": len(exported.days),
                "outcomes": markdown_table(("outcome", "articles"), report.outcomes.items()),
                "outcomes_again": markdown_table(("outcome", "articles"), again.outcomes.items()),
                **_article_metadata(ledger, status),
            },
        ),
    )


def _work(
    worker_id: str,
    places: WorkPlaces,
    data_root: DataRoot,
    ledger: Ledger,
    *,
    web: Web,
    clock: Clock,
) -> WorkReport:
    """Fetch and store pending articles.

    The worker's id is that of the run: a retried run has another one, so it cannot use the claims
    of the run that died.
    """
    return pipeline.run_work(
        ledger.engine,
        fetch=web.fetch_options,
        places=places,
        known_robots=SurveyedRobots(data_root.store, now=clock.now()),
        worker_id=worker_id,
        options=obeying(work_options(data_root.settings.rss), data_root.store, now=clock.now()),
        clock=clock.now,
        secrets=feed_secrets(os.environ),
    )


def _extract_again(
    redo: RebuildMode, places: WorkPlaces, data_root: DataRoot, ledger: Ledger, *, now: datetime
) -> ReextractReport:
    """Extract stored articles again from the kept bytes of their pages, as the run config says."""
    is_due = redo is RebuildMode.all or "kept page" in outdated_articles(ledger.engine)
    if redo is RebuildMode.missing or not is_due:
        return ReextractReport(0, {})
    return pipeline.run_reextract(
        ledger.engine,
        # Also where pages are no longer kept: those of earlier days may still be there.
        places=replace(places, pages=data_root.store.child(PAGES_FOLDER)),
        wanted=Reextraction("" if redo is RebuildMode.all else EXTRACTOR_VERSION),
        workers=work_options(data_root.settings.rss).extractors,
        now=now,
    )


def _feed_metadata(ledger: Ledger, status: LedgerStatus) -> dict[str, Any]:
    columns = ("host", "status", "health", "silent days")
    worst = ((url_host(row[0]), *row[1:]) for row in worst_feeds(ledger.engine))
    return {
        "feeds_by_status": markdown_table(("status", "feeds"), status.feeds.items()),
        "feeds_by_health": markdown_table(("health", "feeds"), status.feeds_by_health.items()),
        "worst_feeds": markdown_table(columns, worst),
    }


def _article_metadata(ledger: Ledger, status: LedgerStatus) -> dict[str, Any]:
    columns = ("source", "language", "category", "words", "confidence")
    uncertain = least_confident_articles(ledger.engine)
    return {
        "articles_by_status": markdown_table(("status", "articles"), status.articles.items()),
        "duplicates": markdown_table(("reason", "URLs"), status.duplicates.items()),
        "errors_by_host": markdown_table(("host", "articles"), status.errors_by_host.items()),
        "articles_per_hour": hours_plot(status.articles_per_hour),
        "newest": markdown_table(columns, recent_articles(ledger.engine)),
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
RULES = (FEEDS_RULE, PENDING_RULE, ARTICLES_RULE)


def _scheduled(
    rule: RebuildRule, cron: str, text: str, *, run_config: Mapping[str, object] | None = None
) -> dg.ScheduleDefinition:
    """Return a schedule that runs an asset if it is stale and not running already."""
    asset = rule.asset

    @dg.schedule(
        name=f"run_{asset}",
        target=dg.AssetSelection.assets(asset),
        cron_schedule=cron,
        description=text,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def tick(
        context: dg.ScheduleEvaluationContext, platform: dg.ResourceParam[Resources]
    ) -> dg.RunRequest | dg.SkipReason:
        if reason := skip_reason(platform.data_root.store):
            return reason
        # A long run must not get a queue of further runs behind it.
        if running := run_under_way(context.instance, asset):
            return dg.SkipReason(f"run {running} has not finished")
        # A feed may also have been removed from feeds.opml, which is not worth a look every minute.
        if rule is not FEEDS_RULE and not rule.stale(platform):
            return dg.SkipReason("nothing is due")
        return scheduled_run(asset).with_replaced_attrs(run_config=run_config)

    return tick


SCHEDULES = (
    _scheduled(FEEDS_RULE, "0 6 * * *", "Looks for new feeds every morning."),
    _scheduled(PENDING_RULE, "2-59/5 * * * *", "Polls due feeds, each by its own rhythm."),
    _scheduled(
        ARTICLES_RULE,
        "*/5 * * * *",
        "Fetches pending articles every five minutes.",
        # Only a person has a new version of the extractor redo the whole ledger.
        run_config={"ops": {"articles": {"config": {"redo": RebuildMode.missing.name}}}},
    ),
)

defs = dg.Definitions(
    assets=[feeds, pending_articles, articles],
    asset_checks=[one.definition for one in CHECKS],
    schedules=SCHEDULES,
)
