"""`news-platform rss`: run the stages of the rss pipeline, and read the ledger."""

import os
import socket
import time
import uuid
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.cli.command import Output, command, count_type
from news_platform.cli.exports import export
from news_platform.cli.feeds import discover, discovery
from news_platform.errors import InputError
from news_platform.resources import (
    Resources,
    analysis_options,
    open_full_texts,
    poll_options,
    sheets_access,
    sync_options,
    work_options,
    workbook_options,
)
from news_platform.rss import pipeline
from news_platform.rss.analyses import analyse_articles
from news_platform.rss.article_files import PAGES_FOLDER, WorkPlaces, work_places
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.exports.selection import Selection, iter_articles
from news_platform.rss.feed_settings import feed_secrets
from news_platform.rss.ledger.status import ledger_status, outdated_articles
from news_platform.rss.reextract import Reextraction
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.rss.saved_queries.delivery import match_counts
from news_platform.rss.saved_queries.pipeline import is_match, read_queries, run_saved_queries
from news_platform.rss.saved_queries.query_file import SavedQuery, webhook_variables
from news_platform.rss.sheets import workbook
from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.sql.engine import shown_url
from news_platform.takedowns.build_filters import cleaned_later, obeying

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


@click.group()
def rss() -> None:
    """Discover and poll feeds, fetch and export articles."""


@rss.group()
def alerts() -> None:
    """List, try and run saved queries."""


rss.add_command(discovery)
rss.add_command(export)


@command(rss, access=RootAccess.CREATE)
def ensure(resources: Resources) -> Output:
    """Create the ledger and the Google Sheet's tabs."""
    pipeline.ensure(resources.ledger.engine, now=resources.clock.now())
    url = shown_url(resources.ledger.engine.url)
    document = {"ledger": url, "version": pipeline.LEDGER_VERSION}
    if access := sheets_access(resources.settings.sheets):
        document["sheet"] = _ensure_sheet(resources, access)
    ready = [document[key] for key in ("ledger", "sheet") if key in document]
    return Output(document, f"ready: {' and '.join(ready)}")


def _ensure_sheet(resources: Resources, access: SheetAccess) -> str:
    """Create the spreadsheet and its tabs if needed, and return the URL."""
    # Imported here and in `sync` because gspread would slow down the start of all other commands.
    from news_platform.rss.sheets.sync import create_tabs

    engine, now = resources.ledger.engine, resources.clock.now()
    return create_tabs(engine, access, owner=_owner(), timing=_timing(resources), now=now)


@command(rss, access=RootAccess.WRITE)
def sync(resources: Resources) -> Output:
    """Copy the ledger to a Google Sheet or workbook."""
    engine, store = resources.ledger.engine, resources.data_root.store
    if (analyses := analysis_options(resources.settings)) is not None:
        analyse_articles(engine, options=analyses, clock=resources.clock.now)
    if access := sheets_access(resources.settings.sheets):
        from news_platform.rss.sheets.sync import run_sync

        done = run_sync(
            engine,
            access,
            owner=_owner(),
            timing=_timing(resources),
            clock=resources.clock.now,
            discover=lambda urls: discover(resources, urls),
            options=sync_options(resources.settings),
        )
        return Output(asdict(done), _sync_text(done))
    place = store.uri(workbook.WORKBOOK_PATH)
    rows, options = 0, workbook_options(resources.settings)
    if is_stale := workbook.is_stale(engine, store, options):
        rows = sum(workbook.write_workbook(engine, store, options).rows.values())
    text = f"wrote {_rows(rows)}: {place}" if is_stale else f"nothing to write: {place}"
    return Output({"workbook": place, "written": is_stale, "rows": rows}, text)


def _sync_text(done: "SyncReport") -> str:
    rows, edits = done.appended + done.updated, done.edits_taken + done.edits_refused
    parts = []
    if rows:
        parts.append(f"wrote {_rows(rows)} ({done.appended} new, {done.updated} changed)")
    if edits:
        parts.append(f"{done.edits_taken} edits taken, {done.edits_refused} refused")
    return f"{', '.join(parts) or 'nothing to write'}: {done.url}"


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _owner() -> str:
    # Only one process may write a sheet; this names it in the lease.
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def _timing(resources: Resources) -> CallTiming:
    calls = resources.settings.sheets.calls_per_minute
    return CallTiming(time.monotonic, time.sleep, calls=calls)


@command(rss, access=RootAccess.WRITE)
@click.option("--due", is_flag=True, help="Poll only feeds that are due, as the schedule does.")
def poll(resources: Resources, due: bool) -> Output:
    """Fetch the feeds and add their new articles."""
    store, now = resources.data_root.store, resources.clock.now()
    with cleaned_later(store, WHOLE_LEDGER):
        report = pipeline.run_poll(
            resources.ledger.engine,
            fetch=resources.web.fetch_options,
            options=obeying(poll_options(resources.settings.rss), store, now=now),
            now=now,
            only_due=due,
            secrets=feed_secrets(os.environ),
        )
    return Output(asdict(report))


@command(rss, access=RootAccess.WRITE)
@click.option(
    "--worker-id", required=True, help="Name of this worker, unique among running workers."
)
@click.option("--max", "max_articles", type=count_type(1), help="Stop after N articles.")
def work(resources: Resources, worker_id: str, max_articles: int | None) -> Output:
    """Fetch and store pending articles.

    The worker ends when no article is due.
    """
    store, now = resources.data_root.store, resources.clock.now()
    options = work_options(resources.settings.rss, max_articles=max_articles)
    with cleaned_later(store, WHOLE_LEDGER):
        report = pipeline.run_work(
            resources.ledger.engine,
            fetch=resources.web.fetch_options,
            places=_places(resources),
            known_robots=SurveyedRobots(store, now=now),
            worker_id=worker_id,
            options=obeying(options, store, now=now),
            clock=resources.clock.now,
            secrets=feed_secrets(os.environ),
        )
    return Output({**asdict(report), "stored": report.stored})


@command(rss, access=RootAccess.WRITE)
@click.option("--older-than", help="Version of the extractor; default: the current one.")
@click.option("--source", default="", help="Domain; without --older-than all of its articles.")
@click.option("--max", "limit", type=count_type(1), help="Stop after N articles.")
def reextract(
    resources: Resources, older_than: str | None, source: str, limit: int | None
) -> Output:
    """Extract stored articles again from kept pages."""
    if older_than is not None and not (older_than.isascii() and older_than.isdecimal()):
        raise InputError(f"invalid version {older_than!r}: expected a number", thing=older_than)
    version = older_than or ("" if source else EXTRACTOR_VERSION)
    pages = resources.data_root.store.child(PAGES_FOLDER)
    with cleaned_later(resources.data_root.store, WHOLE_LEDGER):
        report = pipeline.run_reextract(
            resources.ledger.engine,
            places=replace(_places(resources), pages=pages),
            wanted=Reextraction(version, source, limit),
            workers=work_options(resources.settings.rss).extractors,
            now=resources.clock.now(),
        )
    return Output(asdict(report))


def _places(resources: Resources) -> WorkPlaces:
    given = resources.settings.rss
    return work_places(
        resources.data_root.store,
        open_full_texts(resources.data_root),
        fulltext_dir=given.fulltext_dir,
        keeps_pages=given.pages_keep_days > 0,
    )


@command(rss)
def status(resources: Resources) -> Output:
    """Show counts of feeds and articles."""
    found = asdict(ledger_status(resources.ledger.engine, now=resources.clock.now()))
    found["articles_outdated"] = outdated_articles(resources.ledger.engine)
    return Output(found)


def _queries(resources: Resources) -> tuple[SavedQuery, ...]:
    return read_queries(resources.data_root.store, resources.settings.newsroom.saved_queries)


@command(alerts, "list")
def list_queries(resources: Resources) -> Output:
    """Show every saved query with its matches."""
    counts = match_counts(resources.ledger.engine)
    rows = [
        {
            "name": query.name,
            "matches": counts.get(query.name, (0, 0))[0],
            "waiting": counts.get(query.name, (0, 0))[1] if query.has_webhook else 0,
            "webhook": query.has_webhook,
        }
        for query in _queries(resources)
    ]
    return Output(rows, None if rows else "there are no saved queries")


@command(alerts, "try")
@click.argument("name")
@click.option("--latest", type=count_type(1), default=1_000, help="Articles to compare.")
def try_query(resources: Resources, name: str, latest: int) -> Output:
    """Show matches of a saved query; send nothing."""
    named = [query for query in _queries(resources) if query.name == name]
    if not named:
        raise click.BadParameter(f"there is no saved query {name!r}", param_hint="NAME")
    rows = [
        {"row_id": row.row_id, "title": row.title, "url": row.article_url_canon}
        for row in iter_articles(resources.ledger.engine, Selection(limit=latest))
        if is_match(named[0], row)
    ]
    return Output(rows, None if rows else "no match")


@command(alerts, "run", access=RootAccess.WRITE)
def run_queries(resources: Resources) -> Output:
    """Find new matches and deliver them."""
    report = run_saved_queries(
        resources.ledger.engine,
        resources.data_root.store,
        path=resources.settings.newsroom.saved_queries,
        variables=webhook_variables(os.environ),
        clock=resources.clock.now,
    )
    return Output(asdict(report))
