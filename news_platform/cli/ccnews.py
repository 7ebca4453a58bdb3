"""`news-platform ccnews`: list, collect and check the WARCs of the news crawl."""

import copy
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from news_platform.ccnews.listing import fetch_listing, first_answering
from news_platform.ccnews.maintenance import accept_broken, check_sources, list_republished
from news_platform.ccnews.pipeline import (
    CollectReport,
    RebuildMode,
    WarcSource,
    collect_warcs,
    damaged_warcs,
    outdated,
    outdated_days,
    outdated_names,
    plan_day,
    plan_index,
)
from news_platform.ccnews.pool import (
    EXTRACTOR_VERSION,
    CollectFailure,
    CollectListener,
    CollectOptions,
    Estimate,
    WarcProgress,
    estimate,
)
from news_platform.cli.command import (
    DaysParam,
    Output,
    Parsed,
    command,
    count_type,
    redo_option,
    rows_table,
    table,
)
from news_platform.datasets.collected import Collected, recipe_of
from news_platform.datasets.raw_news import listing_path, warc_day
from news_platform.errors import InputError, NewsPlatformError
from news_platform.resources import Resources, collect_options, crawl_options
from news_platform.storage.commit.collected import (
    collected_names_of_month,
    find_collected,
    list_collected_day,
    mark_wanted,
    newest_collected_days,
    parse_listed,
    read_collected,
    unmark_wanted,
)
from news_platform.storage.commit.root import ROOT_FILE, RootAccess
from news_platform.storage.objects.store import ObjectStore, open_store

_REFRESHES_PER_SECOND = 5


def _version(text: str) -> str:
    """Return a version of the extractor, `2` or `2.1`, unchanged if it is valid."""
    if not re.fullmatch(r"\d+(\.\d+)*", text, re.ASCII):
        raise InputError(f"invalid version {text!r}: expected a number such as {EXTRACTOR_VERSION}")
    return text


@click.group()
def ccnews() -> None:
    """List, collect and check the news crawl."""


# Without a root the listing is only shown, and no copy of it is stored.
@command(ccnews, "list", must_exist=False)
@click.option("--month", required=True, type=click.DateTime(["%Y-%m"]), help="Such as 2025-11.")
@click.option(
    "--check-source",
    is_flag=True,
    help="Compare size and ETag of collected WARCs with their sources; changed ones count as "
    "missing from then on.",
)
def list_warcs(resources: Resources, month: datetime, check_source: bool) -> Output:
    """List a month's WARCs and count those collected."""
    store, sources = resources.data_root.store, resources.crawl.sources
    crawl, has_root = first_answering(sources, month=month.date()), store.exists(ROOT_FILE)
    listing = fetch_listing(crawl, store, month=month.date(), keep=has_root)
    if listing is None:
        raise NewsPlatformError(f"no listing for {month:%Y-%m} in {crawl.url!r}")
    by_day, changed = listing.days(), []
    if check_source and has_root:
        changed = check_sources(store, crawl=sources, days=sorted(by_day))
    again = {name for names in list_republished(store).values() for name in names}
    collected = collected_names_of_month(store, month=month.date()) - again
    days = {
        day.isoformat(): {
            "listed": len(warcs),
            "collected": sum(one.name in collected for one in warcs),
        }
        for day, warcs in by_day.items()
    }
    document = {
        "month": f"{month:%Y-%m}",
        "warcs": [warc.path for warc in listing.warcs],
        "days": days,
        "foreign_lines": listing.foreign,
        "changed": [asdict(one) for one in changed],
    }
    rows = ((day, counts["collected"], counts["listed"]) for day, counts in days.items())
    lines = [table(("day", "collected", "listed"), rows)]
    lines += [
        f"{one.warc}: {one.source_bytes} bytes, {one.collected_bytes} when collected: "
        f"collect {one.day} again"
        for one in changed
    ]
    if check_source and not changed:
        lines.append("no source has changed")
    if listing.foreign:
        lines.append(f"{listing.foreign} lines do not name a WARC of the news crawl")
    return Output(document, "\n".join(lines))


@command(ccnews)
@click.option(
    "--days",
    default=30,
    show_default=True,
    type=count_type(),
    help="Number of days, counted from the newest.",
)
def status(resources: Resources, days: int) -> Output:
    """Show the collected days, newest first."""
    store, options = resources.data_root.store, collect_options(resources.settings.ccnews)
    found = [_day_status(store, day, options) for day in newest_collected_days(store, count=days)]
    behind = outdated_days(store, options)
    document = {
        "root": store.url,
        "extractor_version": EXTRACTOR_VERSION,
        "options": options.recorded(),
        "outdated_days": len(behind),
        "outdated_warcs": sum(behind.values()),
        "days": found,
    }
    text = rows_table(found) if found else "no day is collected"
    if behind:
        text += (
            f"\n{len(behind)} days were collected by another version or with other options; "
            "`ccnews collect --days DAY` collects them again"
        )
    return Output(document, text)


def _day_status(store: ObjectStore, day: date, options: CollectOptions) -> Mapping[str, object]:
    units = list_collected_day(store, day)
    markers = parse_listed(store, units)
    return {
        "day": day.isoformat(),
        "warcs": len(markers),
        "rows": sum(marker.rows for marker in markers),
        "bytes": sum(marker.bytes for marker in markers),
        "outdated": len(outdated_names(units, options)),
        "truncated": sum(marker.truncated_at is not None for marker in markers),
        "expired": sum(marker.is_expired for marker in markers),
    }


@command(ccnews, access=RootAccess.WRITE)
@click.argument("warcs", nargs=-1, required=True)
def accept(resources: Resources, warcs: tuple[str, ...]) -> Output:
    """Accept WARCs that are broken at their source.

    The next run of their days publishes the readable part of each, as long as the source is the
    same, and the marker records where it ends. WARCs are given as for `ccnews collect`, or by name.
    """
    accepted = []
    for warc in warcs:
        found = _warc_source(_crawl_path(warc), resources)
        info = found.info()
        if info is None:
            raise InputError(f"cannot find WARC {warc!r} at its source", thing=warc)
        accepted.append(accept_broken(resources.data_root.store, found.warc_name, info=info))
    lines = [f"{note.warc}: accepted as it is ({note.source_bytes} bytes)" for note in accepted]
    return Output({"accepted": list(map(asdict, accepted))}, "\n".join(lines))


def _crawl_path(warc: str) -> str:
    """Return the path in the crawl of a WARC that is given by its name alone."""
    day = warc_day(warc)
    if day is None or "/" in warc or Path(warc).exists():
        return warc
    return f"{listing_path(day).rpartition('/')[0]}/{warc}"


@command(ccnews, access=RootAccess.CREATE, has_progress=True)
@click.argument("warcs", nargs=-1)
@click.option("--days", type=DaysParam(), help="Collect the WARCs listed for these days.")
@click.option(
    "--older-than",
    type=Parsed("version", _version),
    help="Collect again what an extractor older than this version wrote.",
)
@redo_option(
    "Which WARCs to collect: missing ones; also those collected by another version or with other "
    "options; or all."
)
@click.option("--again", is_flag=True, help="The same as --redo all.")
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Print the estimate and collect nothing."
)
@click.option("--workers", type=count_type(1), help="Number of worker processes.")
def collect(
    resources: Resources,
    warcs: tuple[str, ...],
    days: list[date] | None,
    older_than: str | None,
    redo: str,
    again: bool,
    only_estimate: bool,
    workers: int | None,
) -> Output:
    """Collect WARCs by path or URL, or whole days.

    A WARC is a local file, a URL, or a path of the crawl such as
    crawl-data/CC-NEWS/2025/11/NAME.warc.gz. WARCs that are already collected are skipped.
    """
    if not (warcs or days or older_than):
        raise click.UsageError("expected WARCs, --days or --older-than")
    # A WARC that is named and also listed is read from the named place.
    named = _by_name([_warc_source(warc, resources) for warc in warcs])
    choice, days = RebuildMode.all if again else RebuildMode(redo), days or []
    listed = [
        *_warcs_of_days(resources, days, choice),
        *_outdated_warcs(resources, older_than),
    ]
    skipped = [
        name
        for name, warc in named.items()
        if not older_than and _is_collected(warc, resources, choice)
    ]
    wanted = {warc.warc_name: warc for warc in listed} | named
    todo = [warc for name, warc in wanted.items() if name not in skipped]
    options = collect_options(resources.settings.ccnews)
    options = replace(options, workers=workers or options.workers)
    if only_estimate:
        infos = [warc.info() for warc in todo]
        sizes = [one.size_bytes if one else None for one in infos]
        cost = estimate(sizes, workers=options.workers)
        return Output(asdict(cost), str(cost))
    report = _collect(todo, resources, options, days=days)
    return _report(report, skipped=len(skipped))


# The name in DESIGN.md; the help shows one of the two.
_extract = copy.copy(collect)
_extract.name, _extract.hidden = "extract", True
ccnews.add_command(_extract)


@command(ccnews, access=RootAccess.CREATE)
@click.option("--days", required=True, type=DaysParam(), help="Index the WARCs of these days.")
@click.option("--workers", type=count_type(1), help="Number of worker processes.")
def index(resources: Resources, days: list[date], workers: int | None) -> Output:
    """Write captures alone: the URL index without pages.

    WARCs that are collected or indexed are skipped. `captures build` merges the days.
    """
    sources, root = resources.crawl.sources, resources.data_root.store
    todo, listed = [], 0
    for day in days:
        plan = plan_index(day, crawl=first_answering(sources, month=day), root=root)
        listed += len(plan.listed)
        todo += [WarcSource(warc.path, sources) for warc in plan.todo]
    given = resources.settings.ccnews
    options = CollectOptions(workers or given.workers, memory_mb=given.memory_mb, index_only=True)
    report = _collect(todo, resources, options)
    return _report(report, skipped=listed - len(todo))


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
    return WarcSource(warc_name, (open_store(folder, options=crawl_options(resources.settings)),))


def _warcs_of_days(
    resources: Resources, days: Sequence[date], redo: RebuildMode
) -> Iterator[WarcSource]:
    options, sources = collect_options(resources.settings.ccnews), resources.crawl.sources
    root = resources.data_root.store
    for day in days:
        crawl = first_answering(sources, month=day)
        plan = plan_day(day, crawl=crawl, root=root, options=options, redo=redo)
        yield from (WarcSource(warc.path, sources) for warc in plan.todo)


def _outdated_warcs(resources: Resources, older_than: str | None) -> Iterator[WarcSource]:
    """Yield the outdated WARCs at the places that they were read from."""
    if older_than is None:
        return
    for marker in outdated(read_collected(resources.data_root.store), older_than=older_than):
        if not marker.is_expired:
            yield _warc_source(marker.source, resources)


def _is_collected(warc: WarcSource, resources: Resources, redo: RebuildMode) -> bool:
    """Return whether the WARC's bytes have a marker and files, and need not be read again."""
    day = warc_day(warc.warc_name)
    # Without a day in its name, the place of the marker is known only after reading.
    if day is None or redo is RebuildMode.all:
        return False
    store = resources.data_root.store
    marker = find_collected(store, day=day, warc=warc.warc_name)
    if marker is None or not warc.is_source_of(marker):
        return False
    if warc.warc_name in damaged_warcs(store, day=day):
        return False
    current = collect_options(resources.settings.ccnews).recipe
    is_current = marker.is_expired or recipe_of(marker.fingerprint) == current
    return redo is RebuildMode.missing or is_current


def _collect(
    warcs: Sequence[WarcSource],
    resources: Resources,
    options: CollectOptions,
    *,
    days: Sequence[date] = (),
) -> CollectReport:
    root, now = resources.data_root.store, resources.clock.now()
    for day in days:
        # Before the first WARC, so that a day whose collection fails is followed all the same.
        mark_wanted(root, day, now=now)
    attempt = uuid.uuid4().hex
    with progress_bar() as bar:
        report = collect_warcs(
            warcs, root=root, options=options, now=now, attempt=attempt, listener=bar
        )
    for day in days:
        if not report.failed and list_collected_day(root, day):
            unmark_wanted(root, day)
    return report


def _report(report: CollectReport, *, skipped: int) -> Output:
    document = {
        "collected": [asdict(marker) for marker in report.collected],
        "failed": [asdict(failure) for failure in report.failed],
        "skipped": skipped,
    }
    lines = [
        f"{one.warc}: {one.rows} rows, {one.captures} captures, {one.bytes} bytes, "
        f"{len(one.languages)} languages, dropped {sum(one.dropped.values())}"
        for one in report.collected
    ]
    lines += [f"{skipped} already collected"] if skipped else []
    if not report.failed:
        nothing = "nothing to do: no WARC is listed, or all listed WARCs are collected"
        return Output(document, "\n".join(lines) or nothing)
    total = len(report.failed) + len(report.collected)
    reasons = "; ".join(failure.reason for failure in report.failed)
    failure = NewsPlatformError(f"{len(report.failed)} of {total} WARCs failed: {reasons}")
    return Output(document, "\n".join(lines), failure)


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
def progress_bar() -> Iterator[ProgressBar]:
    """Show a bar until the block ends."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=_REFRESHES_PER_SECOND,
    ) as progress:
        yield ProgressBar(progress)
