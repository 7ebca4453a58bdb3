"""`news-platform captures`: look up the URL index, fetch single records, and export both."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import get_args

import click

from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery, Match, build_index
from news_platform.ccnews.cdxj import cdx_fields, parse_stamp, write_cluster
from news_platform.ccnews.records import find_capture, read_record
from news_platform.ccnews.wacz import write_wacz
from news_platform.cli.command import (
    OUTPUT_FILE,
    DaysParam,
    Output,
    Parsed,
    command,
    count_type,
    echo,
    json_value,
    rows_table,
)
from news_platform.datasets.captures import CAPTURE_INDEX
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.units import stale_units
from news_platform.web.urls import plain_host

_SHOWN = ("timestamp", "status", "mime", "length", "url")
_days_option = click.option("--days", type=DaysParam(), help="Only WARCs of these days.")


def _moment(text: str) -> datetime:
    """Return a moment: ISO 8601, or digits such as 20251101 or 20251101004549."""
    try:
        if text.isdecimal():
            return parse_stamp(text)
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except ValueError as error:
        raise InputError(f"invalid time {text!r}: expected 2025-11-01T00:45:49") from error


@click.group()
def captures() -> None:
    """Look up, fetch and export captures of the crawl."""


@command(captures, "list")
@click.argument("url")
@click.option(
    "--match",
    type=click.Choice(get_args(Match)),
    help="What URL stands for; also *.example.org for a domain, and example.org/news/* for a "
    "prefix.",
)
@click.option("--limit", type=count_type(1), default=1_000, show_default=True, help="Most rows.")
@_days_option
def list_captures(
    resources: Resources, url: str, match: Match | None, limit: int, days: list[date] | None
) -> Output:
    """List the captures of a URL, a prefix, a host or a domain.

    They come day by day, and in the order of their keys within a day.
    """
    files = CaptureFiles(resources.data_root.store)
    found: list[Mapping[str, object]] = []
    for rows in files.iter_days(CaptureQuery.parse(url, match), _of(files, days)):
        found += rows.head(limit - len(found)).to_dicts()
        if len(found) >= limit:
            break
    document = [{name: json_value(value) for name, value in row.items()} for row in found]
    fields = [cdx_fields(row) for row in found]
    shown = [{name: one.get(name) for name in _SHOWN} for one in fields]
    return Output(document, rows_table(shown) if shown else "no capture is known")


def _of(files: CaptureFiles, days: Sequence[date] | None) -> list[str] | None:
    return None if days is None else sorted(map(str, set(days)))


@command(captures)
@click.argument("url")
@click.option("--at", type=Parsed("time", _moment), help="The capture nearest to this time.")
@click.option("--headers", is_flag=True, help="Print the HTTP header, too.")
def get(
    resources: Resources, url: str, at: datetime | None, headers: bool, as_json: bool
) -> Output | None:
    """Print a page as archived, fetched by byte range from the crawl.

    Without --at it is the newest capture; captures with status 200 come before all others.
    """
    store = resources.data_root.store
    row = find_capture(store, url, at)
    if row is None:
        raise InputError(f"no capture of {url!r} is known: see `captures list`", thing=url)
    record = read_record(row, crawl=resources.crawl.sources, root=store)
    if not as_json:
        page = record.response.head + b"\r\n" + record.page if headers else record.page
        # A terminal gets text without what could take it over, a file or a pipe every byte.
        echo(page, nl=False) if sys.stdout.isatty() else click.echo(page, nl=False)
        return None
    capture = {name: json_value(value) for name, value in row.items()}
    return Output(
        {
            "capture": capture,
            "is_verified": record.is_verified,
            "header": record.response.head.decode("latin-1"),
            "page": record.html,
        }
    )


@command(captures, access=RootAccess.WRITE)
@_days_option
@click.option("--again", is_flag=True, help="Also days that are up to date.")
def build(resources: Resources, days: list[date] | None, again: bool) -> Output:
    """Merge the runs of days into one sorted index each."""
    store = resources.data_root.store
    stale = stale_units(store, CAPTURE_INDEX)
    wanted = sorted(stale) if days is None else [str(day) for day in days]
    chosen = [day for day in wanted if again or day in stale]
    built = {day: build_index(store, day) for day in chosen}
    rows = [{"day": day, "captures": count} for day, count in built.items() if count is not None]
    return Output({"built": rows}, rows_table(rows) if rows else "up to date")


@command(captures)
@click.option(
    "--cdxj",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write.",
)
@_days_option
def export(resources: Resources, folder: Path, days: list[date] | None) -> Output:
    """Write the index of merged days as a ZipNum cluster.

    pywb and other CDX servers serve the folder as it is. Without --days it holds all merged days.
    """
    files = CaptureFiles(resources.data_root.store)
    known = files.indexed_days
    chosen = [day for day in known if days is None or date.fromisoformat(day) in days]
    if not chosen:
        raise InputError("no day is merged: run `captures build` first")
    report = write_cluster(files, chosen, folder)
    return Output({"folder": str(folder), **asdict(report)})


@command(captures)
@click.option("--domain", required=True, help="Registrable domain, such as bbc.co.uk.")
@click.option("--to", "target", required=True, type=OUTPUT_FILE, help="File to write, .wacz.")
@click.option(
    "--limit", type=count_type(1), default=10_000, show_default=True, help="Most records."
)
@_days_option
def wacz(
    resources: Resources, domain: str, target: Path, limit: int, days: list[date] | None
) -> Output:
    """Copy the records of a domain to a WACZ file.

    They are fetched one by one from the crawl, and stored byte by byte.
    """
    store, now = resources.data_root.store, resources.clock.now()
    files = CaptureFiles(store)
    query = CaptureQuery.parse(plain_host(domain), "domain")
    found = (
        row
        for rows in files.iter_days(query, _of(files, days))
        for row in rows.iter_rows(named=True)
    )
    chosen = [row for row, _ in zip(found, range(limit), strict=False)]
    report = write_wacz(
        chosen, target, crawl=resources.crawl.sources, root=store, title=domain, now=now
    )
    return Output({"file": str(target), **asdict(report)})
