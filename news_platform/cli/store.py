"""`news-platform store`: build, read and maintain the domain store."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import click
from rich.console import Console
from rich.progress import Progress

from news_platform.cli.options import count_type, emit, json_option, resources_for, root_option
from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.domain_store.building.removal import require_allowed, staging_removal
from news_platform.domain_store.building.verify import verify_bucket
from news_platform.domain_store.catalog import read_stats, write_catalog
from news_platform.domain_store.commit import (
    claim_bucket_count,
    gc_bucket,
    read_bucket_count,
)
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.pipeline import (
    STAGE_AGAIN,
    build_range,
    compact_buckets,
    repair_buckets,
    shown_batches,
)
from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.domain_store.staging.inputs import (
    day_input,
    matching_input,
    validated_crawl_name,
)
from news_platform.domain_store.staging.stage import built_ranges, stage_input, wanted_ranges
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources, build_options, store_options
from news_platform.storage.commit.markers import read_inputs, stale_partitions
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import stale_units, wanted_inputs
from news_platform.web.urls import registrable_domain


@click.group()
def store() -> None:
    """Build and read the domain store."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What every command needs: the root, the build options, the time and the resources."""

    store: ObjectStore
    options: BuildOptions
    now: datetime
    resources: Resources


allow_removal_option = click.option(
    "--allow-removal",
    is_flag=True,
    help="Remove records that have lost their inputs, also more than the brake allows.",
)


def _open(
    root: str, access: RootAccess = RootAccess.WRITE, *, allow_removal: bool = False
) -> Opened:
    resources = resources_for(root, access)
    data = resources.data_root
    options = build_options(resources.settings.domain_store, data.store)
    options = replace(options, allow_removal=allow_removal)
    return Opened(data.store, options, resources.clock.now(), resources)


def _open_built(root: str, *, allow_removal: bool = False) -> Opened:
    """Open an existing store; raise NotFound instead of creating one."""
    opened = _open(root, allow_removal=allow_removal)
    read_bucket_count(opened.store)
    return opened


def _numbers(only: int | None, buckets: int) -> Sequence[int]:
    if only is None:
        return range(buckets)
    if not 0 <= only < buckets:
        raise click.BadParameter(f"invalid bucket {only}: expected 0 to {buckets - 1}.")
    return [only]


def _open_reader(root: str) -> tuple[ObjectStore, DomainStore]:
    data = resources_for(root).data_root
    return data.store, DomainStore(data.store)


@store.command()
@root_option
@json_option
@click.option("--batch", help="Name of a crawl, such as CC-MAIN-2013-20.")
@click.option("--rows", help="Pattern of Parquet files with the columns of raw_news, for --batch.")
@allow_removal_option
def build(
    root: str, as_json: bool, batch: str | None, rows: str | None, allow_removal: bool
) -> None:
    """Stage and build all collected days or a named crawl."""
    if (batch is None) != (rows is None):
        raise click.UsageError("--batch and --rows must be used together")
    name = None if batch is None else validated_crawl_name(batch)
    access = RootAccess.CREATE if batch else RootAccess.WRITE
    opened = _open(root, access, allow_removal=allow_removal)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        if name is not None and rows is not None:
            found = matching_input(
                rows,
                options=store_options(opened.resources.settings),
                staged=read_inputs(opened.store, DOMAIN_BUCKETS.name).get(name),
            )
            stage_input(
                found, store=opened.store, batch=name, options=opened.options, now=opened.now
            )
            staged = [name]
        else:
            staged = list(_stage_days(opened, progress))
        written = _build_ranges(opened, progress)
    inputs = wanted_inputs(opened.store, DOMAIN_CATALOG).get(WHOLE, "")
    catalog = write_catalog(opened.store, inputs=inputs)
    document = {"staged": staged, "bytes_written": written, **asdict(catalog)}
    text = (
        f"staged {len(staged)} batches, wrote {written} bytes; "
        f"the store holds {catalog.records} records of {catalog.domains} domains"
    )
    emit(document, as_json=as_json, text=text)


def _stage_days(opened: Opened, progress: Progress) -> Iterator[str]:
    # Before anything is staged: a removal that is refused must leave stage 1 as it is, too.
    require_allowed(staging_removal(opened.store), opened.options)
    stale = sorted(stale_units(opened.store, DOMAIN_BUCKETS))
    for day in progress.track(stale, description="staging days"):
        rows = day_input(opened.store, day)
        stage_input(rows, store=opened.store, batch=day, options=opened.options, now=opened.now)
        yield day


def _build_ranges(opened: Opened, progress: Progress) -> int:
    claim_bucket_count(opened.store, opened.options.buckets)
    stale = sorted(stale_partitions(wanted_ranges(opened.store), built_ranges(opened.store)))
    written = 0
    for key in progress.track(stale, description="building buckets"):
        report = build_range(key, store=opened.store, options=opened.options, now=opened.now)
        written += report.total("bytes_written")
    return written


@store.command()
@root_option
@json_option
@click.argument("domain")
@click.option("--limit", type=count_type(0), help="Maximum number of records.")
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d"]), help="Only records captured on this day or later."
)
def get(root: str, as_json: bool, domain: str, limit: int | None, since: datetime | None) -> None:
    """Print the records of DOMAIN (bbc.co.uk) as JSON lines."""
    _, reader = _open_reader(root)
    lines = reader.lines(domain, limit=limit, since=since.date() if since else None)
    count = reader.count(domain)
    if as_json:
        _print_document(domain, count, lines)
    else:
        for line in lines:
            click.echo(line)
    if not count:
        raise NewsPlatformError(_unknown(reader, domain), thing=domain)


def _unknown(reader: DomainStore, domain: str) -> str:
    """Return the message for an unknown domain, with its registrable domain if that is known."""
    owner = registrable_domain(domain)
    hint = f", but it has records of {owner!r}" if owner != domain and reader.count(owner) else ""
    return f"the store has no records of {domain!r}{hint}"


def _print_document(domain: str, count: int, lines: Iterator[bytes]) -> None:
    """Print one JSON document, record by record, because a domain may have a million."""
    head = json.dumps({"domain": domain, "count": count}, ensure_ascii=False)
    click.echo(f'{head.removesuffix("}")}, "records": [', nl=False)
    for number, line in enumerate(lines):
        click.echo(b"%b\n%b" % (b"," if number else b"", line), nl=False)
    click.echo("]}")


@store.command()
@root_option
@json_option
def stats(root: str, as_json: bool) -> None:
    """Print domains, records and sizes of the store."""
    _, reader = _open_reader(root)
    found = read_stats(reader, range(reader.buckets))
    document = {"buckets": reader.buckets, **asdict(found)}
    lines = [
        f"{found.records} records of {found.domains} domains in {reader.buckets} buckets",
        f"{found.bytes} bytes, {found.fragments_per_domain:.1f} fragments per domain",
        *(f"{records:>10}  {domain}" for domain, records, _ in found.top),
    ]
    emit(document, as_json=as_json, text="\n".join(lines))


@store.command()
@root_option
@json_option
@click.option("--bucket", "only", type=count_type(), help="Only this bucket.")
def verify(root: str, as_json: bool, only: int | None) -> None:
    """Read every byte and compare index and data."""
    opened, reader = _open_reader(root)
    numbers = _numbers(only, reader.buckets)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        tracked = progress.track(numbers, description="verifying buckets")
        reports = [verify_bucket(opened, bucket) for bucket in tracked]
    problems = [problem for report in reports for problem in report.problems]
    records = sum(report.records for report in reports)
    document = {"buckets": len(reports), "records": records, "problems": problems}
    text = "\n".join([*problems, f"verified {records} records in {len(reports)} buckets"])
    emit(document, as_json=as_json, text=text)
    if problems:
        raise NewsPlatformError(f"found {len(problems)} problems, first: {problems[0]}")


@store.command()
@root_option
@json_option
@click.option("--bucket", "only", type=count_type(), help="Only this bucket.")
@allow_removal_option
def repair(root: str, as_json: bool, only: int | None, allow_removal: bool) -> None:
    """Rebuild missing files from the staged batches."""
    opened = _open_built(root, allow_removal=allow_removal)
    numbers = _numbers(only, opened.options.buckets)
    report = repair_buckets(numbers, store=opened.store, options=opened.options, now=opened.now)
    batches, written = report.total("batches_added"), report.total("bytes_written")
    lost = report.not_rebuilt
    is_whole = not batches and not lost
    text = "no file is missing" if is_whole else f"rebuilt {batches} batches, wrote {written} bytes"
    document = {"batches": batches, "bytes_written": written, "not_rebuilt": lost}
    emit(document, as_json=as_json, text=text)
    if lost:
        raise NewsPlatformError(
            f"cannot rebuild {shown_batches(list(lost))}: files of the store are damaged and their "
            f"staged files are expired; {STAGE_AGAIN}"
        )


@store.command()
@root_option
@json_option
def compact(root: str, as_json: bool) -> None:
    """Merge each bucket into one segment and delete old files."""
    opened = _open_built(root)
    written = files = 0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for bucket in progress.track(range(opened.options.buckets), description="compacting"):
            report = compact_buckets(
                [bucket], store=opened.store, options=opened.options, now=opened.now
            )
            written += report.total("bytes_written")
            deleted = gc_bucket(opened.store, bucket, options=opened.options, now=opened.now)
            files += deleted.files
    text = f"wrote {written} bytes, deleted {files} unneeded files"
    emit({"bytes_written": written, "files_deleted": files}, as_json=as_json, text=text)
