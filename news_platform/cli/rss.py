"""`news-platform rss …`: run the stages of the rss pipeline and query the ledger."""

import os
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.cli.exports import export
from news_platform.cli.feed_discovery import discover, discovery
from news_platform.cli.options import (
    count_type,
    emit,
    json_option,
    resources_for,
    root_option,
    with_takedowns,
)
from news_platform.cli.saved_queries import alerts
from news_platform.composition.newsroom_options import (
    analysis_options,
    sync_options,
    workbook_options,
)
from news_platform.errors import InputError
from news_platform.resources import (
    Resources,
    open_full_texts,
    poll_options,
    sheets_access,
    work_options,
)
from news_platform.rss import pipeline
from news_platform.rss.analyses.pipeline import analyse_articles
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.feed_settings import feed_secrets
from news_platform.rss.ledger.status import ledger_status, outdated_articles
from news_platform.rss.page_store import PAGES_FOLDER
from news_platform.rss.reextract import Reextraction
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.rss.sheets import workbook
from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.rss.work_context import WorkPlaces, work_places
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.sql.engine import shown_url
from news_platform.takedowns.obeying import cleaned_later

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


@click.group()
def rss() -> None:
    """Discover and poll feeds, fetch articles, export them."""


rss.add_command(discovery)
rss.add_command(export)
rss.add_command(alerts)


@rss.command()
@root_option
@json_option
def ensure(root: str, as_json: bool) -> None:
    """Create the ledger and the tabs of the Google Sheet."""
    resources = resources_for(root, RootAccess.CREATE)
    pipeline.ensure(resources.ledger.engine, now=resources.clock.now())
    url = shown_url(resources.ledger.engine.url)
    document = {"ledger": url, "version": pipeline.LEDGER_VERSION}
    if access := _access(resources):
        document["sheet"] = _ensure_sheet(resources, access)
    text = f"ready: {' and '.join(document[key] for key in ('ledger', 'sheet') if key in document)}"
    emit(document, as_json=as_json, text=text)


def _ensure_sheet(resources: Resources, access: SheetAccess) -> str:
    """Create the spreadsheet and its tabs if needed, and return the URL."""
    # Imported here and in `sync` because gspread would slow down the start of all other commands.
    from news_platform.rss.sheets.sync import create_tabs

    engine, now = resources.ledger.engine, resources.clock.now()
    return create_tabs(engine, access, owner=_owner(), timing=_timing(resources), now=now)


@rss.command()
@root_option
@json_option
def sync(root: str, as_json: bool) -> None:
    """Copy the ledger to the Google Sheet, or to a workbook."""
    resources = resources_for(root, RootAccess.WRITE)
    engine, store = resources.ledger.engine, resources.data_root.store
    if (analyses := analysis_options(resources.settings)) is not None:
        analyse_articles(engine, options=analyses, clock=resources.clock.now)
    if access := _access(resources):
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
        emit(asdict(done), as_json=as_json, text=_sync_text(done))
        return
    place = store.uri(workbook.WORKBOOK_PATH)
    rows, options = 0, workbook_options(resources.settings)
    if is_stale := workbook.is_stale(engine, store, options):
        rows = sum(workbook.write_workbook(engine, store, options).rows.values())
    text = f"wrote {_rows(rows)}: {place}" if is_stale else f"nothing to write: {place}"
    emit({"workbook": place, "written": is_stale, "rows": rows}, as_json=as_json, text=text)


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


def _access(resources: Resources) -> SheetAccess | None:
    return sheets_access(resources.settings.sheets)


def _timing(resources: Resources) -> CallTiming:
    calls = resources.settings.sheets.calls_per_minute
    return CallTiming(time.monotonic, time.sleep, calls=calls)


@rss.command()
@click.option("--due", is_flag=True, help="Poll only feeds that are due, as the schedule does.")
@root_option
@json_option
def poll(due: bool, root: str, as_json: bool) -> None:
    """Fetch the feeds and add their new articles as pending."""
    resources = resources_for(root, RootAccess.WRITE)
    with cleaned_later(resources.data_root.store, WHOLE_LEDGER):
        report = pipeline.run_poll(
            resources.ledger.engine,
            fetch=resources.web.fetch_options,
            options=with_takedowns(poll_options(resources.settings.rss), resources),
            now=resources.clock.now(),
            only_due=due,
            secrets=feed_secrets(os.environ),
        )
    text = (
        f"{report.feeds} feeds: {report.new_articles} new articles, "
        f"{report.known_articles} known, {report.updated_articles} updated, "
        f"{report.skipped_articles} skipped by the limit\n"
        f"{_counts(report.outcomes)}"
    )
    emit(asdict(report), as_json=as_json, text=text.rstrip())


@rss.command()
@click.option(
    "--worker-id", required=True, help="Name of this worker, unique among running workers."
)
@click.option("--max", "max_articles", type=count_type(1), help="Stop after N articles.")
@root_option
@json_option
def work(worker_id: str, max_articles: int | None, root: str, as_json: bool) -> None:
    """Fetch and store pending articles until none is due."""
    resources = resources_for(root, RootAccess.WRITE)
    with cleaned_later(resources.data_root.store, WHOLE_LEDGER):
        report = pipeline.run_work(
            resources.ledger.engine,
            fetch=resources.web.fetch_options,
            places=_places(resources),
            known_robots=SurveyedRobots(resources.data_root.store, now=resources.clock.now()),
            worker_id=worker_id,
            options=with_takedowns(
                work_options(resources.settings.rss, max_articles=max_articles), resources
            ),
            clock=resources.clock.now,
            secrets=feed_secrets(os.environ),
        )
    text = f"{report.claimed} articles: {_counts(report.outcomes)}"
    emit({**asdict(report), "stored": report.stored}, as_json=as_json, text=text)


@rss.command()
@click.option("--older-than", help="Version of the extractor; default: the current one.")
@click.option("--source", default="", help="Domain; without --older-than all of its articles.")
@click.option("--max", "limit", type=count_type(1), help="Stop after N articles.")
@root_option
@json_option
def reextract(
    older_than: str | None, source: str, limit: int | None, root: str, as_json: bool
) -> None:
    """Extract stored articles again from kept pages."""
    resources = resources_for(root, RootAccess.WRITE)
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
    text = f"{report.articles} articles: {_counts(report.outcomes)}"
    emit(asdict(report), as_json=as_json, text=text)


def _places(resources: Resources) -> WorkPlaces:
    given = resources.settings.rss
    return work_places(
        resources.data_root.store,
        open_full_texts(resources.data_root),
        fulltext_dir=given.fulltext_dir,
        keeps_pages=given.pages_keep_days > 0,
    )


@rss.command()
@root_option
@json_option
def status(root: str, as_json: bool) -> None:
    """Show counts of feeds and articles."""
    resources = resources_for(root)
    found = asdict(ledger_status(resources.ledger.engine, now=resources.clock.now()))
    found["articles_outdated"] = outdated_articles(resources.ledger.engine)
    lines = [
        f"{name:<18} {_counts(value) if isinstance(value, Mapping) else value or '-'}"
        for name, value in found.items()
    ]
    emit(found, as_json=as_json, text="\n".join(lines))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
