"""`news-platform ccnews list|status|collect`: the news crawl from the command line."""

import copy
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from news_platform.ccnews.listing import fetch_listing, first_answering
from news_platform.ccnews.options import EXTRACTOR_VERSION
from news_platform.ccnews.pipeline import (
    CollectReport,
    WarcSource,
    collect_warcs,
    outdated,
    plan_day,
)
from news_platform.ccnews.pool import (
    CollectFailure,
    CollectListener,
    Estimate,
    WarcProgress,
    estimate,
)
from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.datasets.collected import Collected
from news_platform.datasets.warc_paths import warc_day
from news_platform.errors import InputError, NewsPlatformError
from news_platform.resources import Resources, collect_options, store_options
from news_platform.storage.commit.collected import (
    collected_names_of_month,
    newest_collected_days,
    read_collected,
)
from news_platform.storage.objects.store import ObjectStore, open_store

_REFRESHES_PER_SECOND = 5


class DaysParam(click.ParamType[list[date]]):
    """A day or a range of days: `2025-11-01` or `2025-11-01..2025-11-07`, both ends included."""

    name = "day[..day]"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[date]:
        """Return every day of the range."""
        first, _, last = value.partition("..")
        try:
            start, end = date.fromisoformat(first), date.fromisoformat(last or first)
        except ValueError:
            self.fail(f"invalid day {value!r}: expected YYYY-MM-DD or YYYY-MM-DD..YYYY-MM-DD")
        if end < start:
            self.fail(f"invalid range {value!r}: it ends before it starts")
        return [start + timedelta(days=count) for count in range((end - start).days + 1)]


class VersionParam(click.ParamType[str]):
    """A version of the extractor: `2` or `2.1`."""

    name = "version"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the version unchanged if it is valid."""
        if not re.fullmatch(r"\d+(\.\d+)*", value, re.ASCII):
            self.fail(f"invalid version {value!r}: expected a number such as {EXTRACTOR_VERSION}")
        return value


@click.group()
def ccnews() -> None:
    """List, collect and check the news crawl."""


@ccnews.command("list")
@click.option("--month", required=True, type=click.DateTime(["%Y-%m"]), help="Such as 2025-11.")
@root_option
@json_option
def list_warcs(month: datetime, root: str, as_json: bool) -> None:
    """List a month's WARCs and count those collected."""
    resources = resources_for(root)
    store = resources.data_root.store
    crawl = first_answering(resources.crawl.sources, month=month.date())
    listing = fetch_listing(crawl, store, month=month.date())
    if listing is None:
        raise NewsPlatformError(f"no listing for {month:%Y-%m} in {crawl.url!r}")
    collected = collected_names_of_month(store, month=month.date())
    days = {
        day.isoformat(): {
            "listed": len(warcs),
            "collected": sum(one.name in collected for one in warcs),
        }
        for day, warcs in listing.days().items()
    }
    document = {
        "month": f"{month:%Y-%m}",
        "warcs": [warc.path for warc in listing.warcs],
        "days": days,
        "foreign_lines": listing.foreign,
    }
    lines = [f"{day}  {one['collected']:>4} of {one['listed']:>4}" for day, one in days.items()]
    if listing.foreign:
        lines.append(f"{listing.foreign} lines do not name a WARC of the news crawl")
    emit(document, as_json=as_json, text="\n".join(["day         collected", *lines]))


@ccnews.command()
@click.option(
    "--days",
    default=30,
    show_default=True,
    type=click.IntRange(min=0),
    help="Number of days, counted from the newest.",
)
@root_option
@json_option
def status(days: int, root: str, as_json: bool) -> None:
    """Show the collected days, newest first."""
    store = resources_for(root).data_root.store
    found = [_day_status(store, day) for day in newest_collected_days(store, count=days)]
    document = {"root": store.url, "extractor_version": EXTRACTOR_VERSION, "days": found}
    lines = [
        f"{one['day']}  {one['warcs']:>5}  {one['rows']:>9}  {one['bytes']:>14}  "
        f"{one['outdated']:>8}"
        for one in found
    ]
    head = f"{'day':<10}  {'WARCs':>5}  {'rows':>9}  {'bytes':>14}  {'outdated':>8}"
    emit(document, as_json=as_json, text="\n".join([head, *lines]))


def _day_status(store: ObjectStore, day: date) -> Mapping[str, object]:
    markers = read_collected(store, [day])
    return {
        "day": day.isoformat(),
        "warcs": len(markers),
        "rows": sum(marker.rows for marker in markers),
        "bytes": sum(marker.bytes for marker in markers),
        "outdated": len(outdated(markers)),
    }


@ccnews.command()
@click.argument("warcs", nargs=-1)
@click.option("--days", type=DaysParam(), help="Collect the WARCs listed for these days.")
@click.option(
    "--older-than",
    type=VersionParam(),
    help="Collect again what an extractor older than this version wrote.",
)
@click.option("--again", is_flag=True, help="Include WARCs that are collected already.")
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Print the estimate and collect nothing."
)
@click.option("--workers", type=click.IntRange(min=1), help="Number of worker processes.")
@root_option
@json_option
def collect(
    warcs: tuple[str, ...],
    days: list[date] | None,
    older_than: str | None,
    again: bool,
    only_estimate: bool,
    workers: int | None,
    root: str,
    as_json: bool,
) -> None:
    """Collect WARCs by path or URL, or whole days.

    A WARC is a local file, a URL, or a path of the crawl such as
    crawl-data/CC-NEWS/2025/11/NAME.warc.gz. Those that are collected already are skipped.
    """
    if not (warcs or days or older_than):
        raise click.UsageError("expected WARCs, --days or --older-than")
    resources = resources_for(root)
    # A WARC that is named and also listed is read from the named place.
    named = _by_name([_warc_source(warc, resources) for warc in warcs])
    listed = [*_warcs_of_days(resources, days or ()), *_outdated_warcs(resources, older_than)]
    wanted = list(({warc.warc_name: warc for warc in listed} | named).values())
    todo = [warc for warc in wanted if again or older_than or not _is_collected(warc, resources)]
    workers = workers or resources.settings.ccnews.workers
    if only_estimate:
        cost = estimate([warc.size_bytes() for warc in todo], workers=workers)
        emit(asdict(cost), as_json=as_json, text=str(cost))
        return
    report = _collect(todo, resources, workers=workers)
    _emit_report(report, skipped=len(wanted) - len(todo), as_json=as_json)
    if report.failed:
        total = len(report.failed) + len(report.collected)
        reasons = "; ".join(failure.reason for failure in report.failed)
        raise NewsPlatformError(f"{len(report.failed)} of {total} WARCs failed: {reasons}")


def _alias(command: click.Command, name: str) -> click.Command:
    """Return the same command under another name, left out of the help."""
    alias = copy.copy(command)
    alias.name, alias.hidden = name, True
    return alias


# The name of `collect` in version 0.1.0.
ccnews.add_command(_alias(collect, "extract"))


def _by_name(warcs: Sequence[WarcSource]) -> dict[str, WarcSource]:
    """Return the WARCs by name; raise InputError for two files of the same name.

    The files of a WARC are stored under its name, so the second would replace the first.
    """
    by_name: dict[str, WarcSource] = {}
    for warc in warcs:
        other = by_name.setdefault(warc.warc_name, warc)
        first, second = (each.sources[0].uri(each.path) for each in (other, warc))
        if first != second:
            raise InputError(
                f"{first!r} and {second!r} have the same name: rename one of them", thing=second
            )
    return by_name


def _warc_source(warc: str, resources: Resources) -> WarcSource:
    """Find a WARC: a path of the crawl, or else a local file or URL."""
    if warc.startswith("crawl-data/") and not Path(warc).exists():
        return WarcSource(warc, resources.crawl.sources)
    folder, _, warc_name = warc.rpartition("/")
    if not warc_name or Path(warc).is_dir():
        raise click.BadParameter(f"{warc!r} is a folder: expected a WARC file.")
    folder = folder or ("/" if warc.startswith("/") else ".")
    return WarcSource(warc_name, (open_store(folder, options=store_options(resources.settings)),))


def _warcs_of_days(resources: Resources, days: Sequence[date]) -> Iterator[WarcSource]:
    max_warcs, sources = resources.settings.ccnews.max_warcs, resources.crawl.sources
    for day in days:
        crawl = first_answering(sources, month=day)
        plan = plan_day(day, crawl=crawl, root=resources.data_root.store, max_warcs=max_warcs)
        yield from (WarcSource(warc.path, sources) for warc in plan.missing)


def _outdated_warcs(resources: Resources, older_than: str | None) -> Iterator[WarcSource]:
    """Yield the outdated WARCs at the places that they were read from."""
    if older_than is None:
        return
    for marker in outdated(read_collected(resources.data_root.store), older_than=older_than):
        yield _warc_source(marker.source, resources)


def _is_collected(warc: WarcSource, resources: Resources) -> bool:
    """Return whether the WARC has a marker that states the same size."""
    day = warc_day(warc.warc_name)
    if day is None:  # the day, and with it the place of the marker, is known only after reading
        return False
    return any(
        marker.warc == warc.warc_name and marker.source_bytes == warc.size_bytes()
        for marker in read_collected(resources.data_root.store, [day])
    )


def _collect(warcs: Sequence[WarcSource], resources: Resources, *, workers: int) -> CollectReport:
    options = collect_options(resources.settings.ccnews)
    with _progress_bar() as bar:
        return collect_warcs(
            warcs,
            root=resources.data_root.store,
            options=replace(options, workers=workers),
            now=resources.clock.now(),
            attempt=uuid.uuid4().hex,
            listener=bar,
        )


class ProgressBar(CollectListener):
    """Show one line for all WARCs in work: pages so far, bytes read, time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._read: dict[str, int] = {}
        self._rows: dict[str, int] = {}

    def start(self, estimate: Estimate) -> None:
        """Print the estimate and set the length of the bar."""
        self._progress.console.print(f"{estimate}")
        self._progress.update(self._task, total=estimate.download_bytes)

    def advance(self, warc_name: str, progress: WarcProgress) -> None:
        """Show how far a WARC is."""
        self._update(warc_name, read_bytes=progress.read_bytes, rows=progress.rows)

    def finish(self, outcome: Collected | CollectFailure) -> None:
        """Show that a WARC is collected, or print why it failed."""
        if isinstance(outcome, Collected):
            self._update(outcome.warc, read_bytes=outcome.source_bytes, rows=outcome.rows)
        else:
            self._progress.console.print(f"{outcome.warc}: {outcome.reason}", markup=False)

    def _update(self, warc_name: str, *, read_bytes: int, rows: int) -> None:
        self._read[warc_name], self._rows[warc_name] = read_bytes, rows
        pages = f"{sum(self._rows.values()):,} pages"
        done = sum(self._read.values())
        self._progress.update(self._task, completed=done, description=pages)


@contextmanager
def _progress_bar() -> Iterator[ProgressBar]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=_REFRESHES_PER_SECOND,
    ) as progress:
        yield ProgressBar(progress)


def _emit_report(report: CollectReport, *, skipped: int, as_json: bool) -> None:
    document = {
        "collected": [asdict(marker) for marker in report.collected],
        "failed": [asdict(failure) for failure in report.failed],
        "skipped": skipped,
    }
    lines = [
        f"{one.warc}: {one.rows} rows, {one.bytes} bytes, {len(one.languages)} languages, "
        f"dropped {sum(one.dropped.values())}"
        for one in report.collected
    ]
    lines += [f"{skipped} already collected"] if skipped else []
    if not (lines or report.failed):
        lines = ["nothing to do: no WARC is listed, or all listed WARCs are collected"]
    emit(document, as_json=as_json, text="\n".join(lines))
