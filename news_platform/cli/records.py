"""`news-platform records`: segment stored pages into clean blocks, and explain each decision."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import click
import polars as pl

from news_platform.cli.command import (
    DAY,
    INPUT_FILE,
    Output,
    command,
    count_type,
    first_failure,
    redo_option,
)
from news_platform.datasets.source_records import SOURCE_RECORDS, institution_folder
from news_platform.errors import InputError
from news_platform.resources import Resources, records_options, segment_options
from news_platform.settings import Settings
from news_platform.source_records.blocks import BlockDecision
from news_platform.source_records.changes import scan_changes, tell_changes
from news_platform.source_records.options import HEADINGS, TABLES, SegmentOptions
from news_platform.source_records.pipeline import (
    build_institution,
    declare_options,
    outdated_institutions,
    record_document,
    record_json,
    report_document,
    wanted_institutions,
)
from news_platform.source_records.segment import SegmentedPage, segment_snapshot
from news_platform.source_records.snapshots import Snapshot
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.units import built_inputs

_SHOWN_CHARS = 100


@click.group()
def records() -> None:
    """Segment stored pages of institutions into clean blocks."""


@command(records, access=None)
@click.argument("snapshots", nargs=-1, required=True, type=INPUT_FILE)
@click.option("--institution", required=True, help="Id of the institution that owns the pages.")
@click.option("--lang", help="Language of the blocks to keep; default: the rule file's, else en.")
@click.option("--url", help="URL of the page, if the file does not contain it.")
@click.option(
    "--headings", type=click.Choice(HEADINGS), help="Headings as sections, or also as records."
)
@click.option("--tables", type=click.Choice(TABLES), help="One record per row, or per table.")
@click.option("--explain", is_flag=True, help="Print every block and why it was dropped.")
def segment(
    settings: Settings,
    snapshots: tuple[Path, ...],
    institution: str,
    url: str | None,
    explain: bool,
    **given: Any,
) -> Output:
    """Print the records of snapshots as JSON lines.

    A snapshot is Firecrawl JSON, HTML, Markdown or text.
    """
    chosen = {"language": given["lang"], "headings": given["headings"], "tables": given["tables"]}
    options: SegmentOptions = replace(
        segment_options(settings.source_records),
        **{name: value for name, value in chosen.items() if value},
    )
    given_files = [_snapshot(path, institution, url) for path in snapshots]
    done = [page for one in given_files for page in segment_snapshot(one, options)]
    show = _explain_lines if explain else _record_lines
    failed = {page.page.snapshot or "": page.error for page in done if page.error}
    failure = first_failure(failed, "pages")
    return Output([_document(page) for page in done], "\n".join(show(done)), failure)


@command(records, access=RootAccess.WRITE)
@click.option("--institution", "chosen", multiple=True, help="Only this one, even if up to date.")
@redo_option("Build what is missing or changed; also what is outdated; or everything.")
def build(resources: Resources, chosen: tuple[str, ...], redo: str) -> Output:
    """Build the records that are out of date.

    This includes records of another version of the segmenter unless --redo is `missing`.
    """
    store = resources.data_root.store
    options = records_options(resources.settings.source_records)
    declare_options(store, options.segment)
    wanted = wanted_institutions(store)
    if unknown := sorted(set(chosen) - wanted.keys()):
        expected = f"expected files under {institution_folder(unknown[0])}/"
        raise InputError(
            f"no snapshots of institution {unknown[0]!r}: {expected}", thing=unknown[0]
        )
    stale = set(stale_partitions(wanted, built_inputs(store, SOURCE_RECORDS)))
    outdated = wanted.keys() & outdated_institutions(store)
    more = {"missing": set(), "outdated": outdated, "all": wanted.keys()}[redo]
    built = chosen or sorted(stale | more)
    reports = [build_institution(key, store=store, options=options) for key in built]
    alerts = resources.settings.alerts
    for one in reports:
        if problem := tell_changes(
            one.new_changes, one.institution, url=alerts.webhook_url, secret=alerts.webhook_secret
        ):
            click.echo(f"warning: {problem}", err=True)
    lines = (
        f"{one.institution}: {one.pages_seen} pages, {one.pages_failed} failed, "
        f"{one.pages_empty} without records, "
        f"{one.blocks_kept} of {one.blocks_total} blocks kept"
        + (f", {len(one.new_changes)} differ in new snapshots" if len(one.new_changes) else "")
        for one in reports
    )
    documents = [
        {
            "institution": one.institution,
            **report_document(one),
            "samples": one.samples,
            "failures": one.failures,
            "new_changes": one.new_changes.height,
        }
        for one in reports
    ]
    return Output(documents, "\n".join(lines) or "up to date")


@command(records)
@click.option("--institution", default="", help="Only this institution.")
@click.option("--url", default="", help="Only this page.")
@click.option("--since", type=DAY, help="Only snapshots fetched on this day or later.")
@click.option("--limit", type=count_type(1), default=100, show_default=True, help="Changes.")
def changes(
    resources: Resources, institution: str, url: str, since: date | None, limit: int
) -> Output:
    """Show blocks that differ between snapshots.

    The newest come first: what was added to a page of an institution, removed from it or changed.
    """
    rows = scan_changes(resources.data_root.store, institution=institution)
    rows = rows.filter(pl.col("url") == url) if url else rows
    rows = rows.filter(pl.col("fetched_at").dt.date() >= since) if since else rows
    found = rows.head(limit).collect()
    lines = (_change_lines(row) for row in found.iter_rows(named=True))
    return Output(found.to_dicts(), "\n".join(chain.from_iterable(lines)) or "no changes")


def _change_lines(row: Mapping[str, object]) -> Iterator[str]:
    day = str(row["fetched_at"] or "undated")[:10]
    section = f" under {row['section']}" if row["section"] else ""
    yield f"{day} {row['institution']} {row['url']}: {row['kind']} {row['change']}{section}"
    for mark, name in (("-", "before"), ("+", "after")):
        if row[name] is not None:
            yield f"  {mark} {_shortened(str(row[name]))}"


def _snapshot(file: Path, institution: str, url: str | None) -> Snapshot:
    modified_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return Snapshot(str(file), institution, file.read_bytes(), url, modified_at)


def _record_lines(done: Sequence[SegmentedPage]) -> Iterator[str]:
    return (record_json(record) for page in done for record in page.records)


def _explain_lines(done: Sequence[SegmentedPage]) -> Iterator[str]:
    for page in done:
        yield f"{page.page.url}: {page.error or f'{len(page.records)} records'}"
        yield from map(_decision_line, page.decisions)


def _decision_line(decision: BlockDecision) -> str:
    shown = _shortened(decision.block.text)
    why = f"  [{decision.detail}]" if decision.detail else ""
    return f"{decision.reason or 'kept':<16}{decision.block.kind:<12}{shown}{why}"


def _shortened(text: str) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"


def _document(page: SegmentedPage) -> dict[str, object]:
    return {
        "url": page.page.url,
        "error": page.error,
        "records": [record_document(record) for record in page.records],
        "blocks": [
            {
                "text": decision.block.text,
                "kind": decision.block.kind,
                "section": decision.section,
                "dropped": decision.reason,
                "detail": decision.detail,
            }
            for decision in page.decisions
        ],
    }
