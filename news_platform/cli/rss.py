"""`news-platform rss`: run the stages of the rss pipeline, and read the ledger."""

import os
import socket
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import sqlalchemy as sa

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.cli.command import INPUT_FILE, Output, command, count_type
from news_platform.cli.exports import export
from news_platform.cli.feeds import report_document, report_text
from news_platform.composition import rss_stages
from news_platform.errors import FetchError, InputError
from news_platform.resources import (
    Resources,
    sheets_access,
)
from news_platform.rss import pipeline
from news_platform.rss.exports.selection import Selection, iter_articles
from news_platform.rss.feed_list import ListingReport
from news_platform.rss.ledger.status import ledger_status, outdated_articles
from news_platform.rss.reextract import Reextraction
from news_platform.rss.saved_queries.delivery import match_counts, send_test
from news_platform.rss.saved_queries.pipeline import is_match, read_queries, run_saved_queries
from news_platform.rss.saved_queries.query_file import SavedQuery, webhook_variables
from news_platform.rss.sheets.books import SheetAccess
from news_platform.rss.sheets.workbook import WORKBOOK_PATH
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.sql.engine import shown_url
from news_platform.text.readable import number_of
from news_platform.web.opml import XmlDamage, opml_feeds, xml_damage

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


@click.group()
def rss() -> None:
    """Discover and poll feeds, fetch and export articles."""


@rss.group()
def alerts() -> None:
    """List, try and run saved queries."""


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
    # Imported here because gspread would slow down the start of all other commands.
    from news_platform.rss.sheets.sync import create_tabs

    engine, now = resources.ledger.engine, resources.clock.now()
    timing = rss_stages.call_timing(resources)
    return create_tabs(engine, access, owner=_owner(), timing=timing, now=now)


# Without a named feed, the candidates come from a root that exists.
@command(rss, access=lambda feeds, opml: RootAccess.CREATE if feeds or opml else RootAccess.WRITE)
@click.option("--feed", "feeds", multiple=True, help="URL of a feed or of a site; repeatable.")
@click.option("--opml", type=INPUT_FILE, help="OPML file that lists feeds.")
def discovery(resources: Resources, feeds: tuple[str, ...], opml: Path | None) -> Output:
    """Register fresh feeds in a wanted language.

    Without --feed and --opml, the candidates are the root's feeds.opml and the feeds that crawled
    pages link to.
    """
    listed, damage = _opml_feeds(opml) if opml else ((), None)
    named = (*feeds, *listed)
    # Named feeds are checked now, even if they were rejected yesterday.
    if named:
        report, listing = rss_stages.discover(resources, named, recheck=True), ListingReport()
    else:
        report, listing = rss_stages.discover_candidates(resources)
    document = {
        **report_document(report),
        "opml_errors": damage.errors if damage else 0,
        "retired": listing.retired,
        "restored": listing.restored,
    }
    more = [f"retired      {url} removed from feeds.opml" for url in listing.retired]
    more += [f"restored     {url} listed in feeds.opml again" for url in listing.restored]
    failure = None
    # Scripts can see from the exit code whether a named feed was accepted.
    if named and not report.outcomes.get("active"):
        failure = InputError("none of the named feeds was accepted: the reasons are above")
    return Output(document, report_text(report, more), failure)


def _opml_feeds(file: Path) -> tuple[tuple[str, ...], XmlDamage | None]:
    """Return the feeds of a file and its damage, which is also printed as a warning.

    Raise InputError if it lists none: without named feeds, those of the root would be checked.
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
        read = number_of(len(found), "feed is", "feeds are")
        click.echo(f"warning: {thing!r} has {damage}; {read} read", err=True)
    return found, damage


@command(rss, access=RootAccess.WRITE)
def sync(resources: Resources) -> Output:
    """Copy the ledger to a Google Sheet or workbook."""
    rss_stages.analyse(resources)
    if access := sheets_access(resources.settings.sheets):
        done = rss_stages.sync_sheet(resources, access, owner=_owner())
        return Output(asdict(done), _sync_text(done))
    place = resources.data_root.store.uri(WORKBOOK_PATH)
    written = rss_stages.sync_workbook(resources)
    rows = sum(written.rows.values()) if written else 0
    text = f"wrote {number_of(rows, 'row')}: {place}" if written else f"nothing to write: {place}"
    return Output({"workbook": place, "written": written is not None, "rows": rows}, text)


def _sync_text(done: "SyncReport") -> str:
    rows, edits = done.appended + done.updated, done.edits_taken + done.edits_refused
    parts = []
    if rows:
        parts.append(
            f"wrote {number_of(rows, 'row')} ({done.appended} new, {done.updated} changed)"
        )
    if edits:
        parts.append(f"{number_of(done.edits_taken, 'edit')} taken, {done.edits_refused} refused")
    return f"{', '.join(parts) or 'nothing to write'}: {done.url}"


def _owner() -> str:
    # Only one process may write a sheet; this names it in the lease.
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@command(rss, access=RootAccess.WRITE)
@click.option("--due", is_flag=True, help="Poll only feeds that are due, as the schedule does.")
def poll(resources: Resources, due: bool) -> Output:
    """Fetch the feeds and add their new articles."""
    return Output(asdict(rss_stages.poll(resources, only_due=due)))


@command(rss, access=RootAccess.WRITE)
@click.option(
    "--worker-id", required=True, help="Name of this worker, unique among running workers."
)
@click.option("--max", "max_articles", type=count_type(1), help="Stop after N articles.")
def work(resources: Resources, worker_id: str, max_articles: int | None) -> Output:
    """Fetch and store pending articles.

    The worker ends when no article is due.
    """
    report = rss_stages.work(resources, worker_id, max_articles=max_articles)
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
    wanted = Reextraction(version, source, limit)
    return Output(asdict(rss_stages.reextract(resources, wanted)))


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
    rows = [
        {"row_id": row.row_id, "title": row.title, "url": row.article_url_canon}
        for row in _matches(resources, _query(resources, name), latest)
    ]
    return Output(rows, None if rows else "no match")


def _query(resources: Resources, name: str) -> SavedQuery:
    for query in _queries(resources):
        if query.name == name:
            return query
    raise click.BadParameter(f"there is no saved query {name!r}", param_hint="NAME")


def _matches(resources: Resources, query: SavedQuery, latest: int) -> Iterator[sa.Row[Any]]:
    articles = iter_articles(resources.ledger.engine, Selection(limit=latest))
    return (row for row in articles if is_match(query, row))


@command(alerts, "test")
@click.argument("name")
def test_query(resources: Resources, name: str) -> Output:
    """Post a test message of a saved query to its webhook.

    It holds the newest matches, or the newest article, and is not recorded.
    """
    query = _query(resources, name)
    if not query.has_webhook:
        raise InputError(f"alert {name!r} has no webhook: give it one, or a webhook_variable")
    rows = list(islice(_matches(resources, query, 1_000), 3))
    rows = rows or list(iter_articles(resources.ledger.engine, Selection(limit=1)))
    if not rows:
        raise InputError("there is no article to send: `rss work` stores some")
    try:
        variables = webhook_variables(os.environ)
        send_test(query, rows, variables=variables, now=resources.clock.now())
    except FetchError as error:
        raise FetchError(f"the webhook of {name!r} failed: {error}", reason=error.reason) from error
    return Output({"alert": name, "articles": len(rows)}, f"the webhook of {name!r} accepted it")


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
