"""`news-platform store`: build, read and maintain the domain store."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from itertools import chain, islice
from textwrap import shorten

import click
from rich.progress import Progress

from news_platform.cli.command import (
    DAY,
    Output,
    allow_removal_option,
    as_text,
    command,
    count_type,
    echo,
    progress,
)
from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_store import DOMAIN_BUCKETS, DOMAIN_CATALOG
from news_platform.domain_store.building.builder import (
    batch_removal,
    require_allowed,
    staging_removal,
)
from news_platform.domain_store.building.verify import verify_bucket
from news_platform.domain_store.catalog import read_stats, write_catalog
from news_platform.domain_store.fragments import Row
from news_platform.domain_store.layout import BuildOptions, bucket_of, range_keys
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import (
    claim_bucket_count,
    read_bucket_count,
)
from news_platform.domain_store.pipeline import (
    STAGE_AGAIN,
    build_range,
    compact_store,
    repair_buckets,
    shown_batches,
)
from news_platform.domain_store.staging.engine import StagedEngine
from news_platform.domain_store.staging.rows import (
    count_rows,
    day_input,
    matching_input,
    validated_crawl_name,
)
from news_platform.domain_store.staging.stage import (
    built_ranges,
    stage_input,
    wanted_ranges,
)
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources, build_options, store_options
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.engines import remove_gone
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.units import stale_units, wanted_inputs
from news_platform.text.readable import did_you_mean
from news_platform.web.urls import plain_host, registrable_domain

# Of `store get` without a limit, and of the text of each.
_SHOWN_RECORDS = 20
_SHOWN_TEXT = 90


@click.group()
def store() -> None:
    """Build, read and verify the domain store."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The root, the build options and the time, which every command that writes needs."""

    store: ObjectStore
    options: BuildOptions
    now: datetime


_bucket_option = click.option("--bucket", "only", type=count_type(), help="Only this bucket.")


def _open(resources: Resources, *, must_exist: bool = False, allow_removal: bool = False) -> Opened:
    root = resources.data_root.store
    if must_exist:
        read_bucket_count(root)  # raises NotFound instead of beginning a store
    options = build_options(resources.settings.domain_store, root)
    return Opened(root, replace(options, allow_removal=allow_removal), resources.clock.now())


def _numbers(only: int | None, buckets: int) -> Sequence[int]:
    if only is None:
        return range(buckets)
    if not 0 <= only < buckets:
        raise click.BadParameter(f"invalid bucket {only}: expected 0 to {buckets - 1}.")
    return [only]


@command(
    store,
    access=lambda batch, **_: RootAccess.CREATE if batch else RootAccess.WRITE,
    has_progress=True,
)
@click.option("--batch", help="Name of a crawl, such as CC-MAIN-2013-20.")
@click.option("--rows", help="Pattern of Parquet files with the columns of raw_news, for --batch.")
@allow_removal_option
def build(resources: Resources, batch: str | None, rows: str | None, allow_removal: bool) -> Output:
    """Stage and build all collected days or a crawl."""
    if (batch is None) != (rows is None):
        raise click.UsageError("--batch and --rows must be used together")
    name = None if batch is None else validated_crawl_name(batch)
    opened = _open(resources, allow_removal=allow_removal)
    removed: list[str] = []
    with progress() as bars:
        if name is not None and rows is not None:
            found = matching_input(rows, options=store_options(resources.settings))
            # Before the batch is replaced: a refused removal must leave stage 1 unchanged.
            require_allowed(batch_removal(opened.store, name, count_rows(found)), opened.options)
            stage_input(
                found, store=opened.store, batch=name, options=opened.options, now=opened.now
            )
            staged = [name]
        else:
            removed = _remove_days(opened)
            staged = list(_stage_days(opened, bars))
        written = _build_ranges(opened, bars)
    inputs = wanted_inputs(opened.store, DOMAIN_CATALOG).get(WHOLE, "")
    catalog = write_catalog(opened.store, inputs=inputs)
    counts = {"staged": staged, "removed": removed, "bytes_written": written}
    return Output({**counts, **asdict(catalog)})


def _remove_days(opened: Opened) -> list[str]:
    # Before anything is staged: a refused removal must leave stage 1 unchanged, too.
    require_allowed(staging_removal(opened.store), opened.options)
    return remove_gone(StagedEngine(opened.store), allowed=opened.options.allow_removal)


def _stage_days(opened: Opened, bars: Progress) -> Iterator[str]:
    stale = sorted(stale_units(opened.store, DOMAIN_BUCKETS))
    for day in bars.track(stale, description="staging days"):
        rows = day_input(opened.store, day)
        stage_input(rows, store=opened.store, batch=day, options=opened.options, now=opened.now)
        yield day


def _build_ranges(opened: Opened, bars: Progress) -> int:
    claim_bucket_count(opened.store, opened.options.buckets)
    stale = sorted(stale_partitions(wanted_ranges(opened.store), built_ranges(opened.store)))
    written = 0
    for key in bars.track(stale, description="building buckets"):
        report = build_range(key, store=opened.store, options=opened.options, now=opened.now)
        written += report.total("bytes_written")
    return written


@command(store)
@click.argument("domain")
@click.option("--limit", type=count_type(0), help="Maximum number of records.")
@click.option("--since", type=DAY, help="Only records captured on this day or later.")
@click.option("--lines", "as_lines", is_flag=True, help="Print one JSON line per record.")
def get(
    resources: Resources,
    domain: str,
    limit: int | None,
    since: date | None,
    as_lines: bool,
    as_json: bool,
) -> None:
    """Show the pages of a domain, or print them whole.

    --lines prints one JSON line per record, --json one document; both have the texts and the HTML.
    """
    reader = DomainStore(resources.data_root.store)
    try:
        count = reader.count(domain)
    except NotFound:
        # A root with the URL index alone has no store.
        if _print_captures(resources, domain, limit, since, as_lines, as_json):
            return
        raise
    if not count:
        is_host = reader.count(registrable_domain(domain)) > 0
        if not is_host and _print_captures(resources, domain, limit, since, as_lines, as_json):
            return
        raise NewsPlatformError(_unknown(reader, domain), thing=domain)
    if as_json:
        _print_document(domain, count, reader.lines(domain, limit=limit, since=since))
    elif as_lines:
        for line in reader.lines(domain, limit=limit, since=since):
            echo(line)
    else:
        shown = _SHOWN_RECORDS if limit is None else limit
        echo(_summary(reader, domain, reader.records(domain, limit=shown, since=since)))


def _summary(reader: DomainStore, domain: str, rows: Iterator[Row]) -> str:
    """Return what the store has of a domain, and its pages with the start of their texts."""
    bucket = reader.catalog(bucket_of(plain_host(domain), reader.buckets))
    facts = bucket.filter(domain=plain_host(domain)).to_dicts()
    lines = [as_text(one) for one in facts]
    for row in rows:
        text = " ".join(str(row["text"] or "").split())
        lines.append(f"{row['year']}-{row['month']}-{row['day']}  {row['main_lang']}  {row['uri']}")
        lines.append(f"    {shorten(text, _SHOWN_TEXT, placeholder=' …')}")
    return "\n".join(lines)


def _print_captures(
    resources: Resources,
    domain: str,
    limit: int | None,
    since: date | None,
    as_lines: bool,
    as_json: bool,
) -> bool:
    """Print the pages of a domain that is only in the URL index, read one by one from the crawl."""
    # The readers of WARCs are loaded only by those who need them.
    from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery
    from news_platform.ccnews.records import iter_pages

    root = resources.data_root.store
    files, query = CaptureFiles(root), CaptureQuery.parse(registrable_domain(domain), "domain")
    days = [day for day in files.days(query) if since is None or day >= str(since)]
    captures = (row for rows in files.iter_days(query, days) for row in rows.to_dicts())
    found = islice(iter_pages(captures, crawl=resources.crawl.sources, root=root), limit)
    lines = (json.dumps(row, ensure_ascii=False).encode() for row in found)
    first = next(lines, None)
    if first is None:
        return False
    if as_json:
        rest = [first, *lines]
        _print_document(domain, len(rest), iter(rest))
    else:
        for line in chain([first], lines):
            echo(line)
    return True


def _unknown(reader: DomainStore, domain: str) -> str:
    """Return the message for an unknown domain, with its registrable domain if that is known."""
    owner = registrable_domain(domain)
    if owner != domain and reader.count(owner):
        return f"the store has no records of {domain!r}, but it has records of {owner!r}"
    return f"the store has no records of {domain!r}: {did_you_mean(domain, list(reader.domains()))}"


def _print_document(domain: str, count: int, lines: Iterator[bytes]) -> None:
    """Print one JSON document, record by record, because a domain may have a million."""
    head = json.dumps({"domain": domain, "count": count}, ensure_ascii=False)
    click.echo(f'{head.removesuffix("}")}, "records": [', nl=False)
    for number, line in enumerate(lines):
        echo(b"%b\n%b" % (b"," if number else b"", line), nl=False)
    click.echo("]}")


@command(store)
def stats(resources: Resources) -> Output:
    """Print domains, records and sizes of the store."""
    reader = DomainStore(resources.data_root.store)
    found = read_stats(reader, range(reader.buckets))
    lines = [
        f"{found.records} records of {found.domains} domains in {reader.buckets} buckets",
        f"{found.bytes} bytes, {found.fragments_per_domain:.1f} fragments per domain",
        *(f"{records:>10}  {domain}" for domain, records, _ in found.top),
    ]
    return Output({"buckets": reader.buckets, **asdict(found)}, "\n".join(lines))


@command(store, has_progress=True)
@_bucket_option
def verify(resources: Resources, only: int | None) -> Output:
    """Read every byte and compare index and data."""
    root = resources.data_root.store
    numbers = _numbers(only, DomainStore(root).buckets)
    with progress() as bars:
        tracked = bars.track(numbers, description="verifying buckets")
        reports = [verify_bucket(root, bucket) for bucket in tracked]
    problems = [problem for report in reports for problem in report.problems]
    records = sum(report.records for report in reports)
    document = {"buckets": len(reports), "records": records, "problems": problems}
    failure = None
    if problems:
        failure = NewsPlatformError(f"found {len(problems)} problems, first: {problems[0]}")
    return Output(document, failure=failure)


@command(store, access=RootAccess.WRITE)
@_bucket_option
@allow_removal_option
def repair(resources: Resources, only: int | None, allow_removal: bool) -> Output:
    """Rebuild missing files from the staged batches."""
    opened = _open(resources, must_exist=True, allow_removal=allow_removal)
    numbers = _numbers(only, opened.options.buckets)
    report = repair_buckets(numbers, store=opened.store, options=opened.options, now=opened.now)
    batches, written = report.total("batches_added"), report.total("bytes_written")
    lost, failure = report.not_rebuilt, None
    if lost:
        failure = NewsPlatformError(
            f"cannot rebuild {shown_batches(list(lost))}: files of the store are damaged and their "
            f"staged files are expired; {STAGE_AGAIN}"
        )
    document = {"batches": batches, "bytes_written": written, "not_rebuilt": lost}
    return Output(document, failure=failure)


@command(store, access=RootAccess.WRITE, has_progress=True)
def compact(resources: Resources) -> Output:
    """Merge each bucket into one segment.

    Files that are replaced and past the grace period are deleted.
    """
    opened = _open(resources, must_exist=True)
    done = compact_store(opened.store, options=opened.options, now=opened.now)
    total = len(range_keys(opened.options.buckets))
    with progress() as bars:
        tracked = bars.track(done, total=total, description="compacting")
        written, files = zip(*tracked, strict=True)
    return Output({"bytes_written": sum(written), "files_deleted": sum(files)})
