"""`news-platform ccnews list|status|collect`: the news crawl from the command line."""

import copy
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime
from pathlib import Path

import click

from news_platform.ccnews.listing import fetch_listing, first_answering
from news_platform.ccnews.maintenance import check_sources
from news_platform.ccnews.options import EXTRACTOR_VERSION, CollectOptions
from news_platform.ccnews.pipeline import (
    CollectReport,
    Redo,
    WarcSource,
    collect_warcs,
    outdated,
    outdated_days,
    outdated_names,
    plan_day,
)
from news_platform.ccnews.pool import (
    estimate,
)
from news_platform.ccnews.source_notes import accept_broken, list_republished
from news_platform.cli.ccnews_params import DaysParam, VersionParam
from news_platform.cli.ccnews_progress import progress_bar
from news_platform.cli.options import (
    count_type,
    emit,
    json_option,
    resources_for,
    root_option,
    settings_for,
)
from news_platform.datasets.collected import recipe_of
from news_platform.datasets.warc_paths import listing_path, warc_day
from news_platform.errors import InputError, NewsPlatformError
from news_platform.resources import Resources, collect_options, crawl_options, open_resources
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


@click.group()
def ccnews() -> None:
    """List, collect and check the news crawl."""


@ccnews.command("list")
@click.option("--month", required=True, type=click.DateTime(["%Y-%m"]), help="Such as 2025-11.")
@click.option(
    "--check-source",
    is_flag=True,
    help="Compare size and ETag of collected WARCs with their sources; changed ones count as "
    "missing from then on.",
)
@root_option
@json_option
def list_warcs(month: datetime, check_source: bool, root: str, as_json: bool) -> None:
    """List a month's WARCs and count those collected."""
    # A person may look at the crawl before there is a root; then no copy is kept.
    resources = open_resources(settings_for(root), access=RootAccess.READ)
    store = resources.data_root.store
    crawl = first_answering(resources.crawl.sources, month=month.date())
    listing = fetch_listing(crawl, store, month=month.date(), keep=store.exists(ROOT_FILE))
    if listing is None:
        raise NewsPlatformError(f"no listing for {month:%Y-%m} in {crawl.url!r}")
    days_listed = sorted(listing.days())
    sources = resources.crawl.sources
    is_checked = check_source and store.exists(ROOT_FILE)
    changed = check_sources(store, crawl=sources, days=days_listed) if is_checked else []
    again = {name for names in list_republished(store).values() for name in names}
    collected = collected_names_of_month(store, month=month.date()) - again
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
        "changed": [asdict(one) for one in changed],
    }
    lines = [f"{day}  {one['collected']:>4} of {one['listed']:>4}" for day, one in days.items()]
    lines += [
        f"{one.warc}: {one.source_bytes} bytes, {one.collected_bytes} when collected: "
        f"collect {one.day} again"
        for one in changed
    ]
    if check_source and not changed:
        lines.append("no source has changed")
    if listing.foreign:
        lines.append(f"{listing.foreign} lines do not name a WARC of the news crawl")
    emit(document, as_json=as_json, text="\n".join(["day         collected", *lines]))


@ccnews.command()
@click.option(
    "--days",
    default=30,
    show_default=True,
    type=count_type(0),
    help="Number of days, counted from the newest.",
)
@root_option
@json_option
def status(days: int, root: str, as_json: bool) -> None:
    """Show the collected days, newest first."""
    resources = resources_for(root)
    store, options = resources.data_root.store, collect_options(resources.settings.ccnews)
    newest = newest_collected_days(store, count=days)
    found = [_day_status(store, day, options) for day in newest]
    behind = outdated_days(store, options)
    document = {
        "root": store.url,
        "extractor_version": EXTRACTOR_VERSION,
        "options": options.recorded(),
        "outdated_days": len(behind),
        "outdated_warcs": sum(behind.values()),
        "days": found,
    }
    lines = [
        f"{one['day']}  {one['warcs']:>5}  {one['rows']:>9}  {one['bytes']:>14}  "
        f"{one['outdated']:>8}  {one['truncated']:>9}  {one['expired']:>7}"
        for one in found
    ]
    head = f"{'day':<10}  {'WARCs':>5}  {'rows':>9}  {'bytes':>14}  "
    head += f"{'outdated':>8}  {'truncated':>9}  expired"
    if behind:
        lines.append(
            f"{len(behind)} of all days were collected by another version or with other options; "
            "`ccnews collect --days DAY` collects them again"
        )
    emit(document, as_json=as_json, text="\n".join([head, *lines]))


def _day_status(store: ObjectStore, day: date, options: CollectOptions) -> Mapping[str, object]:
    units = list_collected_day(store, day)
    markers = parse_listed(store, units)
    return {
        "day": day.isoformat(),
        "warcs": len(markers),
        "rows": sum(marker.rows for marker in markers),
        "bytes": sum(marker.bytes for marker in markers),
        "outdated": len(outdated_names(units, options)),
        "expired": sum(marker.is_expired for marker in markers),
        "truncated": sum(marker.truncated_at is not None for marker in markers),
    }


@ccnews.command()
@click.argument("warcs", nargs=-1, required=True)
@root_option
@json_option
def accept(warcs: tuple[str, ...], root: str, as_json: bool) -> None:
    """Accept WARCs that are broken at their source.

    The next run of their days publishes what can be read of them, as long as the source is the
    same, and the marker says where it ends. WARCs are given as for `ccnews collect`, or by name.
    """
    resources = resources_for(root, RootAccess.WRITE)
    accepted = []
    for warc in warcs:
        found = _warc_source(_crawl_path(warc), resources)
        info = found.info()
        if info is None:
            raise InputError(f"cannot find WARC {warc!r} at its source", thing=warc)
        accepted.append(accept_broken(resources.data_root.store, found.warc_name, info=info))
    lines = [f"{note.warc}: accepted as it is ({note.source_bytes} bytes)" for note in accepted]
    emit({"accepted": list(map(asdict, accepted))}, as_json=as_json, text="\n".join(lines))


def _crawl_path(warc: str) -> str:
    """Return the path in the crawl of a WARC that is given by its name alone."""
    day = warc_day(warc)
    if day is None or "/" in warc or Path(warc).exists():
        return warc
    return f"{listing_path(day).rpartition('/')[0]}/{warc}"


@ccnews.command()
@click.argument("warcs", nargs=-1)
@click.option("--days", type=DaysParam(), help="Collect the WARCs listed for these days.")
@click.option(
    "--older-than",
    type=VersionParam(),
    help="Collect again what an extractor older than this version wrote.",
)
@click.option(
    "--redo",
    type=click.Choice([one.value for one in Redo]),
    default=Redo.outdated.value,
    show_default=True,
    help="Which WARCs to collect: missing ones; also those that another version or other options "
    "gave; or all.",
)
@click.option("--again", is_flag=True, help="The same as --redo all.")
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Print the estimate and collect nothing."
)
@click.option("--workers", type=count_type(1), help="Number of worker processes.")
@root_option
@json_option
def collect(  # noqa: PLR0913 - one argument per option
    warcs: tuple[str, ...],
    days: list[date] | None,
    older_than: str | None,
    redo: str,
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
    resources = resources_for(root, RootAccess.CREATE)
    # A WARC that is named and also listed is read from the named place.
    named = _by_name([_warc_source(warc, resources) for warc in warcs])
    choice = Redo.all if again else Redo(redo)
    listed = [
        *_warcs_of_days(resources, days or (), choice),
        *_outdated_warcs(resources, older_than),
    ]
    skipped = [
        name
        for name, warc in named.items()
        if not older_than and _is_collected(warc, resources, choice)
    ]
    wanted = {warc.warc_name: warc for warc in listed} | named
    todo = [warc for name, warc in wanted.items() if name not in skipped]
    workers = workers or resources.settings.ccnews.workers
    if only_estimate:
        cost = estimate([warc.size_bytes() for warc in todo], workers=workers)
        emit(asdict(cost), as_json=as_json, text=str(cost))
        return
    root_store, now = resources.data_root.store, resources.clock.now()
    for day in days or ():
        # Before the first WARC, so that a day whose collection fails is followed all the same.
        mark_wanted(root_store, day, now=now)
    report = _collect(todo, resources, workers=workers)
    for day in days or ():
        if not report.failed and list_collected_day(root_store, day):
            unmark_wanted(root_store, day)
    _emit_report(report, skipped=len(skipped), as_json=as_json)
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
    return WarcSource(warc_name, (open_store(folder, options=crawl_options(resources.settings)),))


def _warcs_of_days(resources: Resources, days: Sequence[date], redo: Redo) -> Iterator[WarcSource]:
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


def _is_collected(warc: WarcSource, resources: Resources, redo: Redo) -> bool:
    """Return whether the WARC has a marker of the same size that need not be redone."""
    day = warc_day(warc.warc_name)
    # Without a day in its name, the place of the marker is known only after reading.
    if day is None or redo is Redo.all:
        return False
    marker = find_collected(resources.data_root.store, day=day, warc=warc.warc_name)
    if marker is None or marker.source_bytes != warc.size_bytes():
        return False
    current = collect_options(resources.settings.ccnews).recipe
    is_current = marker.is_expired or recipe_of(marker.fingerprint) == current
    return redo is Redo.missing or is_current


def _collect(warcs: Sequence[WarcSource], resources: Resources, *, workers: int) -> CollectReport:
    options = collect_options(resources.settings.ccnews)
    with progress_bar() as bar:
        return collect_warcs(
            warcs,
            root=resources.data_root.store,
            options=replace(options, workers=workers),
            now=resources.clock.now(),
            attempt=uuid.uuid4().hex,
            listener=bar,
        )


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
