"""`news-platform rss …`: run the stages of the rss pipeline and query the ledger."""

import json
import os
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.cli.feed_discovery import discover, discovery
from news_platform.cli.options import (
    OutputFile,
    count_type,
    emit,
    json_option,
    resources_for,
    root_option,
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
from news_platform.rss.export import (
    Order,
    Selection,
    article_frame,
    delta_since,
    export_days,
    select_articles,
)
from news_platform.rss.feed_settings import feed_secrets
from news_platform.rss.ledger.feed_rows import feed_urls
from news_platform.rss.ledger.status import ledger_status
from news_platform.rss.page_store import PAGES_FOLDER
from news_platform.rss.reextract import Reextraction
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.rss.sheets import workbook
from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.rss.work_context import WorkPlaces, work_places
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.sql.engine import shown_url
from news_platform.web.opml import OpmlFeed, opml_document

if TYPE_CHECKING:
    from news_platform.rss.sheets.sync import SyncReport


@click.group()
def rss() -> None:
    """Discover and poll feeds, fetch articles, export them."""


rss.add_command(discovery)


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
    if access := _access(resources):
        from news_platform.rss.sheets.sync import run_sync

        done = run_sync(
            engine,
            access,
            owner=_owner(),
            timing=_timing(resources),
            clock=resources.clock.now,
            discover=lambda urls: discover(resources, urls),
        )
        emit(asdict(done), as_json=as_json, text=_sync_text(done))
        return
    place = store.uri(workbook.WORKBOOK_PATH)
    rows = 0
    if is_stale := workbook.is_stale(engine, store):
        rows = sum(workbook.write_workbook(engine, store).rows.values())
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
    report = pipeline.run_work(
        resources.ledger.engine,
        fetch=resources.web.fetch_options,
        places=_places(resources),
        known_robots=SurveyedRobots(resources.data_root.store, now=resources.clock.now()),
        worker_id=worker_id,
        options=work_options(resources.settings.rss, max_articles=max_articles),
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
    lines = [
        f"{name:<18} {_counts(value) if isinstance(value, Mapping) else value or '-'}"
        for name, value in found.items()
    ]
    emit(found, as_json=as_json, text="\n".join(lines))


@rss.command()
@click.option(
    "--category", type=click.Choice(["politics", "sports", "other"]), help="Guessed category."
)
@click.option("--lang", help="ISO 639-1 code, such as en.")
@click.option("--since", help="Published, or else found, at or after this ISO 8601 date.")
@click.option(
    "--order",
    type=click.Choice(["newest", "sources"]),
    default="newest",
    help="Newest first, or most popular first.",
)
@click.option("--limit", type=count_type(1), help="Export at most N articles.")
@click.option("--delta", type=count_type(0), help="Export what changed after this cursor.")
@click.option("--daily", is_flag=True, help="Write the files articles/date=… under the root.")
@click.option("--opml", is_flag=True, help="Export the polled feeds as OPML.")
@click.option(
    "--output",
    type=OutputFile(),
    help="Write a .parquet or .jsonl file.",
)
@root_option
@json_option
def export(root: str, as_json: bool, **choice: Any) -> None:
    """Export articles, a delta, the daily files, or the feeds."""
    if choice["output"] and (choice["daily"] or choice["opml"] or choice["delta"] is not None):
        raise click.UsageError("--output is for articles: not with --daily, --opml or --delta")
    _parse_since(choice["since"])  # a wrong date is an error also where it is not used
    resources = resources_for(root, RootAccess.WRITE if choice["daily"] else RootAccess.READ)
    engine = resources.ledger.engine
    if choice["daily"]:
        report = export_days(engine, resources.data_root.store, now=resources.clock.now())
        text = f"{len(report.days)} days written, {report.rows} articles"
        document = {"days": report.days, "rows": report.rows}
        emit(document, as_json=as_json, text=text)
    elif choice["opml"]:
        feeds = feed_urls(engine)
        emit(
            [url for url, _ in feeds],
            as_json=as_json,
            text=opml_document(OpmlFeed(*one) for one in feeds).rstrip(),
        )
    elif choice["delta"] is not None:
        delta = delta_since(engine, choice["delta"], limit=choice["limit"] or 1_000)
        document = {"cursor": delta.cursor, "articles": _json_rows(delta.rows)}
        emit(document, as_json=as_json, text=_json_lines([*delta.rows, {"cursor": delta.cursor}]))
    else:
        rows = select_articles(engine, _selection(**choice))
        _write_articles(rows, choice["output"], as_json=as_json)


def _selection(
    *,
    category: str | None,
    lang: str | None,
    since: str | None,
    order: Order,
    limit: int | None,
    **_: object,
) -> Selection:
    return Selection(
        category=category, language=lang, since=_parse_since(since), order=order, limit=limit
    )


def _parse_since(since: str | None) -> datetime | None:
    if since is None:
        return None
    try:
        moment = datetime.fromisoformat(since)
    except ValueError as error:
        message = f"invalid date {since!r}: expected ISO 8601, such as 2025-11-01"
        raise click.BadParameter(message, param_hint="--since") from error
    # The ledger is in UTC, and so is a date without a time zone.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _write_articles(rows: list[dict[str, Any]], output: Path | None, *, as_json: bool) -> None:
    if output is None:
        emit(_json_rows(rows), as_json=as_json, text=_json_lines(rows))
        return
    if output.suffix == ".parquet":
        article_frame(rows).write_parquet(output)
    elif output.suffix == ".jsonl":
        output.write_text(_json_lines(rows) + "\n" if rows else "", encoding="utf-8")
    else:
        raise InputError(f"cannot write {str(output)!r}: expected .parquet or .jsonl")
    document = {"articles": len(rows), "output": str(output)}
    emit(document, as_json=as_json, text=f"{len(rows)} articles in {output}")


def _json_rows(rows: Any) -> list[dict[str, Any]]:
    return [{key: list(v) if isinstance(v, tuple) else v for key, v in row.items()} for row in rows]


def _json_lines(rows: Any) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False, default=_text) for row in rows)


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
