"""What must hold in the stored tables and exports; one sentence per problem."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import cast

import polars as pl

from news_platform.corpus.crawl_pages import OTHER_DOMAIN, CorpusOptions
from news_platform.corpus.export.filtering import ExportSelection
from news_platform.corpus.export.pipeline import ExportOptions
from news_platform.corpus.export.publish import current_version, version_files
from news_platform.datasets.corpus import SORT_COLUMNS
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.storage.commit.collected import list_collected_day, parse_listed
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames
from news_platform.text.normalize import text_hash

_HASH_CHARS = 16


def day_report(dataset: DeltaDataset, day: str) -> Mapping[str, object] | None:
    """Return the report of the run that built a day, or None."""
    marker = read_markers(dataset.store, dataset.table.name).get(day)
    return read_report(dataset.store, marker) if marker else None


def count_problems(
    dataset: DeltaDataset, day: str, *, pages: int | None, may_lack_pages: bool = False
) -> Iterator[str]:
    """Yield where the counts of a day do not add up; `pages` are those that its source has.

    With `may_lack_pages`, pages of the source may have been taken down since the day was built.
    """
    report = day_report(dataset, day)
    if report is None:
        return
    dropped = report["dropped"]
    kept, read = int(str(report["articles"])), int(str(report["pages"]))
    left = sum(dropped.values()) if isinstance(dropped, dict) else 0
    if kept + left != read:
        yield f"{day}: {kept} articles and {left} dropped pages are not {read} pages"
    if pages is not None and (pages > read or (pages < read and not may_lack_pages)):
        yield f"{day}: {read} pages were read, and the source has {pages}"
    yield from _loss_problems(report, day, kept, read)
    stored = dataset.scan().filter(pl.col("day") == day).select(pl.len()).collect().item()
    # Fewer: rows may have been taken down since.
    if stored > kept:
        yield f"{day}: the table has {stored} rows, the run wrote {kept}"


def _loss_problems(report: Mapping[str, object], day: str, kept: int, read: int) -> Iterator[str]:
    """Yield whether a build from no fewer pages has lost most articles of the one before."""
    dropped = cast(Mapping[str, int], report["dropped"])
    pages, before = (int(str(report.get(f"{it}_before", 0))) for it in ("pages", "articles"))
    left_out = sum(dropped.get(reason, 0) for reason in (TAKEN_DOWN, OTHER_DOMAIN))
    if read >= pages and 2 * (kept + left_out) < before:
        yield f"{day}: {kept} articles of {read} pages; before there were {before} of {pages}"


def source_pages(store: ObjectStore, day: str, options: CorpusOptions) -> int:
    """Return the pages of raw_news that a day of crawl_articles is built from."""
    units = list_collected_day(store, date.fromisoformat(day))
    return sum(
        count
        for marker in parse_listed(store, units)
        for language, count in marker.languages.items()
        if not options.languages or language in options.languages
    )


def row_problems(dataset: DeltaDataset, day: str) -> Iterator[str]:
    """Yield what is wrong with the rows of a day: missing texts, an address twice."""
    rows = dataset.scan().filter(pl.col("day") == day)
    is_wrong = {
        "without text": pl.col("text").fill_null("").str.strip_chars() == "",
        "without an address": pl.col("canonical_url").is_null() | pl.col("domain").is_null(),
        "with an address of another row": pl.struct(*SORT_COLUMNS).is_duplicated(),
    }
    counts = rows.select(**{name: rule.sum() for name, rule in is_wrong.items()}).collect()
    for name, count in counts.row(0, named=True).items():
        if count:
            yield f"{day}: {count} rows {name}"


def is_damaged(dataset: DeltaDataset, day: str) -> bool:
    """Return whether files of a day are gone or unreadable, or its rows break a promise."""
    try:
        return any(count_problems(dataset, day, pages=None)) or any(row_problems(dataset, day))
    except (pl.exceptions.PolarsError, OSError):
        return True


def export_problems(
    store: ObjectStore, month: str, *, selection: ExportSelection, options: ExportOptions
) -> Iterator[str]:
    """Yield texts that an export holds twice, and articles that it may no longer hold.

    The surveys and the takedowns are asked again: they may know more than when it was written.
    """
    if current_version(store, month) is None:
        return
    texts: set[str] = set()
    for path in version_files(store, month):
        for frame in iter_frames(store, path, columns=("id", "url", "text", "fetched_at")):
            for number, url, text, fetched_at in frame.iter_rows():
                digest = text_hash(text)[:_HASH_CHARS]
                if digest in texts:
                    yield f"{month}: {number} repeats a text"
                texts.add(digest)
                if options.covers(url):
                    yield f"{month}: {number} is taken down"
                stated = [options.stated_usage(url, it, fetched_at) for it in selection.rules]
                if reason := selection.refusal([one.verdict for one in stated]):
                    yield f"{month}: {number} is left out today: {reason}"
