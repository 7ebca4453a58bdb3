"""`news-platform rss …`: run the stages of the rss pipeline and query the ledger."""

import os
import socket
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from news_platform.cli.exports import export
from news_platform.cli.options import (
    InputFile,
    count_type,
    emit,
    json_option,
    resources_for,
    root_option,
)
from news_platform.cli.saved_queries import alerts
from news_platform.errors import InputError
from news_platform.newsroom_options import analysis_options, sync_options, workbook_options
from news_platform.resources import (
    Resources,
    discovery_options,
    open_full_texts,
    poll_options,
    sheets_access,
    work_options,
)
from news_platform.rss import pipeline
from news_platform.rss.analyses.pipeline import analyse_articles
from news_platform.rss.discovery.candidates import candidate_feeds
from news_platform.rss.discovery.discover import DiscoveryReport
from news_platform.rss.ledger.status import ledger_status
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.rss.sheets import workbook
from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.sql.engine import shown_url
from news_platform.web.opml import opml_feeds
from news_platform.web.xml_damage import XmlDamage, xml_damage

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


@click.group()
def rss() -> None:
    """Discover and poll feeds, fetch articles, export them."""


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
    from news_platform.rss.sheets.ensure import ensure_tabs
    from news_platform.rss.sheets.sync import open_known_spreadsheet

    engine, now = resources.ledger.engine, resources.clock.now()
    spreadsheet = open_known_spreadsheet(
        engine, access, owner=_owner(), timing=_timing(resources), now=now
    )
    ensure_tabs(engine, spreadsheet)
    return spreadsheet.url


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
            discover=lambda urls: _discover(resources, urls),
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
    rows, edits = done.appended + done.updated, done.edits.taken + done.edits.refused
    parts = []
    if rows:
        parts.append(f"wrote {_rows(rows)} ({done.appended} new, {done.updated} changed)")
    if edits:
        parts.append(f"{done.edits.taken} edits taken, {done.edits.refused} refused")
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
@click.option("--feed", "feeds", multiple=True, help="URL of a feed or of a site; repeatable.")
@click.option(
    "--opml",
    type=InputFile(),
    help="OPML file that lists feeds.",
)
@root_option
@json_option
def discovery(feeds: tuple[str, ...], opml: Path | None, root: str, as_json: bool) -> None:
    """Register feeds that are fresh and in a wanted language.

    Without --feed and --opml, the candidates are the root's feeds.opml and the feeds that crawled
    pages link to.
    """
    listed, damage = _opml_feeds(opml) if opml else ((), None)
    named = (*feeds, *listed)
    # Without a named feed, the candidates come from a root that exists.
    resources = resources_for(root, RootAccess.CREATE if named else RootAccess.WRITE)
    candidates = named or candidate_feeds(resources.data_root.store)
    # A person who names a feed wants it checked now, even if it was rejected yesterday.
    report = _discover(resources, candidates, recheck=bool(named))
    verdicts = [(v.feed_url, v.outcome, v.notes) for v in report.verdicts]
    document = {
        "candidates": report.candidates,
        "opml_errors": damage.errors if damage else 0,
        "known": report.known,
        "added": report.added,
        "revived": report.revived,
        "outcomes": report.outcomes,
        "feeds": [{"feed_url": u, "outcome": o, "notes": n} for u, o, n in verdicts],
    }
    lines = [f"{outcome:<12} {url} {notes}".rstrip() for url, outcome, notes in verdicts]
    lines.append(
        f"{report.candidates} candidates, {report.known} known, {report.added} added, "
        f"{report.revived} active again"
    )
    emit(document, as_json=as_json, text="\n".join(lines))
    # Scripts can see from the exit code whether a named feed was accepted.
    if named and not report.outcomes.get("active"):
        sys.exit(1)


def _opml_feeds(file: Path) -> tuple[tuple[str, ...], XmlDamage | None]:
    """Return the feeds of a file, and its damage, which is said on standard error.

    Raise InputError if it lists none, for the root has its own.
    """
    thing = str(file)
    body = file.read_bytes()
    try:
        found = opml_feeds(body)
    except InputError as error:
        raise InputError(f"cannot read {thing!r}: {error}", thing=thing) from error
    if not found:
        raise InputError(f"{thing!r} lists no feeds: expected <outline xmlUrl=…>", thing=thing)
    if damage := xml_damage(body):
        click.echo(f"warning: {thing!r} has {damage}; {len(found)} feeds are read", err=True)
    return found, damage


def _discover(
    resources: Resources, urls: Sequence[str], *, recheck: bool = False
) -> DiscoveryReport:
    return pipeline.run_discovery(
        resources.ledger.engine,
        urls,
        fetch=resources.web.fetch_options,
        options=discovery_options(resources.settings.rss),
        now=resources.clock.now(),
        recheck=recheck,
    )


@rss.command()
@click.option("--due", is_flag=True, help="Poll only feeds that are due, as the schedule does.")
@root_option
@json_option
def poll(due: bool, root: str, as_json: bool) -> None:
    """Fetch the feeds and add their new articles as pending."""
    resources = resources_for(root, RootAccess.WRITE)
    report = pipeline.run_poll(
        resources.ledger.engine,
        fetch=resources.web.fetch_options,
        options=poll_options(resources.settings.rss),
        now=resources.clock.now(),
        only_due=due,
    )
    text = (
        f"{report.feeds} feeds: {report.new_articles} new articles, "
        f"{report.known_articles} known, {report.left_for_next_poll} left for the next poll\n"
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
    report = pipeline.run_work(
        resources.ledger.engine,
        fetch=resources.web.fetch_options,
        full_texts=open_full_texts(resources.data_root),
        known_robots=SurveyedRobots(resources.data_root.store, now=resources.clock.now()),
        worker_id=worker_id,
        options=work_options(resources.settings.rss, max_articles=max_articles),
        clock=resources.clock.now,
    )
    text = f"{report.claimed} articles: {_counts(report.outcomes)}"
    emit({**asdict(report), "stored": report.stored}, as_json=as_json, text=text)


@rss.command()
@root_option
@json_option
def status(root: str, as_json: bool) -> None:
    """Show counts of feeds and articles."""
    resources = resources_for(root)
    found = asdict(ledger_status(resources.ledger.engine, now=resources.clock.now()))
    lines = [
        f"{name:<18} {_counts(value) if isinstance(value, Mapping) else value or '-'}"
        for name, value in found.items()
    ]
    emit(found, as_json=as_json, text="\n".join(lines))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
