"""Run the stages of rss with the resources of the settings, for the command line and the graph.

Each stage obeys takedowns, and what it wrote is cleaned if a request came while it ran.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from news_platform.resources import (
    Resources,
    analysis_options,
    discovery_options,
    open_full_texts,
    poll_options,
    sheets_access,
    sync_options,
    work_options,
    workbook_options,
)
from news_platform.rss import pipeline
from news_platform.rss.article_files import PAGES_FOLDER, WorkPlaces, work_places
from news_platform.rss.discovery import DiscoveryReport, FeedAccess, OnRegistered
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.feed_list import ListingReport, apply_listing, candidate_feeds, listed_feeds
from news_platform.rss.feed_settings import FeedSettings, feed_secrets
from news_platform.rss.ledger.article_queue import WorkReport
from news_platform.rss.ledger.feed_rows import feeds_to_check
from news_platform.rss.poller import PollReport
from news_platform.rss.reextract import Reextraction, ReextractReport
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.rss.sheets.workbook import WorkbookReport, is_stale, write_workbook
from news_platform.takedowns.build_filters import cleaned_later, obeying

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


def discover(
    resources: Resources,
    urls: Sequence[str],
    *,
    recheck: bool = False,
    own: Mapping[str, FeedSettings] | None = None,
    accepts_any: bool = False,
    on_registered: OnRegistered = len,
) -> DiscoveryReport:
    """Check these feeds or sites and register them; `own` are the settings of single feeds."""
    store, now = resources.data_root.store, resources.clock.now()
    chosen = discovery_options(resources.settings.rss)
    options = replace(chosen, accepts_any=accepts_any, recheck=recheck)
    with cleaned_later(store, WHOLE_LEDGER):
        return pipeline.run_discovery(
            resources.ledger.engine,
            urls,
            fetch=resources.web.fetch_options,
            options=obeying(options, store, now=now),
            now=now,
            access=FeedAccess(own or {}, feed_secrets(os.environ)),
            on_registered=on_registered,
        )


def discover_candidates(resources: Resources) -> tuple[DiscoveryReport, ListingReport]:
    """Check the feeds of feeds.opml and of the crawl, and those that are due for another check."""
    engine, store, now = resources.ledger.engine, resources.data_root.store, resources.clock.now()
    report = discover(resources, (*candidate_feeds(store), *feeds_to_check(engine, now=now)))
    return report, apply_listing(engine, listed_feeds(store), report.checked, now=now)


def poll(resources: Resources, *, only_due: bool = True) -> PollReport:
    """Poll the feeds that are due, or all healthy ones."""
    store, now = resources.data_root.store, resources.clock.now()
    with cleaned_later(store, WHOLE_LEDGER):
        return pipeline.run_poll(
            resources.ledger.engine,
            fetch=resources.web.fetch_options,
            options=obeying(poll_options(resources.settings.rss), store, now=now),
            now=now,
            only_due=only_due,
            secrets=feed_secrets(os.environ),
        )


def open_places(resources: Resources) -> WorkPlaces:
    """Return where full texts and pages are."""
    given = resources.settings.rss
    return work_places(
        resources.data_root.store,
        open_full_texts(resources.data_root),
        fulltext_dir=given.fulltext_dir,
        keeps_pages=given.pages_keep_days > 0,
    )


def work(resources: Resources, worker_id: str, *, max_articles: int | None = None) -> WorkReport:
    """Fetch and store pending articles; the id must be unique among running workers."""
    store, now = resources.data_root.store, resources.clock.now()
    options = work_options(resources.settings.rss, max_articles=max_articles)
    with cleaned_later(store, WHOLE_LEDGER):
        return pipeline.run_work(
            resources.ledger.engine,
            fetch=resources.web.fetch_options,
            places=open_places(resources),
            known_robots=SurveyedRobots(store, now=now),
            worker_id=worker_id,
            options=obeying(options, store, now=now),
            clock=resources.clock.now,
            secrets=feed_secrets(os.environ),
        )


def reextract(resources: Resources, wanted: Reextraction) -> ReextractReport:
    """Extract stored articles again from the kept bytes of their pages."""
    # Also where pages are no longer kept: those of earlier days may still be there.
    pages = resources.data_root.store.child(PAGES_FOLDER)
    with cleaned_later(resources.data_root.store, WHOLE_LEDGER):
        return pipeline.run_reextract(
            resources.ledger.engine,
            places=replace(open_places(resources), pages=pages),
            wanted=wanted,
            workers=work_options(resources.settings.rss).extractors,
            now=resources.clock.now(),
        )


def analyse(resources: Resources) -> dict[str, int]:
    """Let the model of the settings, if there is one, analyse new articles; return the counts."""
    from news_platform.rss.analyses import analyse_articles

    if (options := analysis_options(resources.settings)) is None:
        return {}
    engine, clock = resources.ledger.engine, resources.clock.now
    done = analyse_articles(engine, options=options, clock=clock)
    return {"analysed": done.analysed, "model_failures": done.model_failures}


def sync_workbook(resources: Resources) -> WorkbookReport | None:
    """Write the workbook under the root; None if it shows the ledger as it is."""
    engine, store = resources.ledger.engine, resources.data_root.store
    options = workbook_options(resources.settings)
    return write_workbook(engine, store, options) if is_stale(engine, store, options) else None


def call_timing(resources: Resources) -> CallTiming:
    """Return the quota of calls to Google."""
    calls = resources.settings.sheets.calls_per_minute
    return CallTiming(time.monotonic, time.sleep, calls=calls)


def sync_sheet(resources: Resources, access: SheetAccess, *, owner: str) -> "SyncReport":
    """Bring the Google Sheet up to date; the owner names this process in the sheet's lease."""
    # Imported here because gspread costs every process 0.2 s, and few need it.
    from news_platform.rss.sheets.sync import run_sync

    return run_sync(
        resources.ledger.engine,
        access,
        owner=owner,
        timing=call_timing(resources),
        clock=resources.clock.now,
        discover=lambda urls: discover(resources, urls),
        options=sync_options(resources.settings),
    )


def lacks_rows(resources: Resources) -> bool:
    """Return whether the sheet or workbook, or the analyses, lack rows of the ledger."""
    from news_platform.rss.analyses import has_unanalysed
    from news_platform.rss.sheets.outbox import is_behind

    engine = resources.ledger.engine
    if analysis_options(resources.settings) and has_unanalysed(engine):
        return True
    access = sheets_access(resources.settings.sheets)
    if access is not None:
        return is_behind(engine, access.name)
    options = workbook_options(resources.settings)
    return is_stale(engine, resources.data_root.store, options)
