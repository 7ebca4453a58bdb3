"""Build the indexes of days and months from both article tables, and search many of them.

The days of an old month are joined into one index, so that a search over a year opens few. The
marker of each of its days then names the index of the month. A day that changes later gets an index
of its own, and readers take the other days from the month, until the month is built again.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    DELTA_TABLES,
    FEED_ARTICLES,
    FEED_SOURCE,
    SEARCH_INDEX,
    STATISTICS_COLUMNS,
)
from news_platform.datasets.dataset import Dataset
from news_platform.errors import InputError
from news_platform.search.engine import (
    ClustersOf,
    SearchAnswer,
    SearchOptions,
    condition_of,
    search,
)
from news_platform.search.index import Hit, IndexReader, SearchableArticle
from news_platform.search.publish import (
    DATASET,
    GRACE,
    IndexReport,
    delete_old_builds,
    delete_unused_builds,
    index_folder,
    place_of,
    point_day,
    publish_index,
    require_complete,
    upload_index,
)
from news_platform.search.query import DayRange, query_words
from news_platform.search.reading import IndexCache, open_build, read_current
from news_platform.search.words import MOST_READ_CHARACTERS, Snippet, snippet
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    fingerprint,
    read_inputs,
    read_markers,
    read_report,
    stale_partitions,
    write_marker,
)
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import require_same_takedowns
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns

_COLUMNS = (
    *("url", "canonical_url", "url_hash", "domain", "language", "source", "published_at"),
    *("fetched_at", "title", "text", "authors", "section"),
)
# An article of both tables is indexed once: what the feed's worker fetched is the fresher one.
_FRESHEST_FIRST = (FEED_ARTICLES, CRAWL_ARTICLES)
Query = Callable[[pl.LazyFrame], pl.LazyFrame]
ReadRows = Callable[[Query], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class FoundArticle:
    """A hit with the part of its text that shows the words of the query."""

    hit: Hit
    snippet: Snippet


def build_day(
    store: ObjectStore,
    day: str,
    *,
    now: datetime,
    keep_old: bool = True,
) -> IndexReport | None:
    """Replace the index of a day; return None if the day has no articles (see `remove_gone`).

    Articles that are taken down are left out.
    """
    # Before reading: a table that changes meanwhile leaves the index stale, not wrong.
    inputs = wanted_inputs(store, SEARCH_INDEX).get(day, REMOVED)
    if inputs == REMOVED:
        return None
    refused, require_same = checked_takedowns(store)
    return publish_index(
        store,
        day,
        iter_articles(store, day, refused),
        inputs=inputs,
        now=now,
        keep_old=keep_old,
        before_commit=require_same,
    )


def checked_takedowns(store: ObjectStore) -> tuple[Takedowns, Callable[[], None]]:
    """Return the takedowns to obey, and a check that raises Conflict if requests came since."""
    found = Takedowns.read(store, use="removal")
    return found, partial(require_same_takedowns, store, found, now=None)


def index_facets(store: ObjectStore, day: str, field: str) -> Mapping[str, int]:
    """Return how many articles of a day's index have each value of a field, most first."""
    marker = read_markers(store, DATASET).get(day)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reader = open_build(store, place_of(marker), Path(folder)) if marker else None
        return reader.facets(DayRange(day, day), field) if reader is not None else {}


def index_problems(store: ObjectStore, day: str) -> Iterator[str]:
    """Yield what is wrong with the stored index of a day, one sentence each."""
    marker = read_markers(store, DATASET).get(day)
    if marker is None:
        return
    place = place_of(marker)
    stored = sum(1 for _ in store.list(index_folder(place.key, place.build)))
    report = read_report(store, marker)
    if stored != report["files"]:
        yield f"{day}: {stored} files, expected {report['files']} by its marker"
    if marker.inputs != wanted_inputs(store, SEARCH_INDEX).get(day):
        return  # out of date: the sensor builds it again
    hashes = {key for table in DELTA_TABLES for key in _hashes(store, table, day)}
    if len(hashes) != report["articles"]:
        yield f"{day}: {report['articles']} articles, expected {len(hashes)} by the tables"


def search_days(
    cache: IndexCache,
    query: str,
    options: SearchOptions,
    *,
    default_days: int,
    today: date = date.max,
    clusters_of: ClustersOf | None = None,
    hidden: Takedowns = NO_TAKEDOWNS,
) -> SearchAnswer:
    """Search the days of the options, by default the newest ones up to today that have an index.

    `clusters_of` is needed if the options ask for one article per cluster. What is `hidden` is
    neither returned nor counted.
    """
    days = cache.days()
    if not days:
        raise InputError(
            "there is no search index: run `news-platform corpus build`, then "
            "`news-platform search --build`"
        )
    newest = max((day for day in days if day <= str(today)), default=max(days))
    options = within_window(options, newest=newest, default_days=default_days)
    condition = condition_of(query, options)
    wanted = {day: one for day, one in days.items() if options.first_day <= day <= options.last_day}
    readers: Iterable[IndexReader] = read_current(cache, wanted)
    if hidden:
        covers, domains = hidden.covers, hidden.registrable_domains
        readers = (reader.without(covers, domains) for reader in readers)
    chosen = clusters_of if options.one_per_cluster else None
    return search(readers, condition, options, clusters_of=chosen)


def within_window(options: SearchOptions, *, newest: str, default_days: int) -> SearchOptions:
    """Return the options with both ends of the days that are searched."""
    last = options.last_day or newest
    first = options.first_day
    if not first:
        first = (date.fromisoformat(last) - timedelta(days=default_days - 1)).isoformat()
    if first > last:
        raise InputError(f"invalid days {first} to {last}: the first is after the last")
    return replace(options, first_day=first, last_day=last)


def with_snippets(query: str, hits: Sequence[Hit], read: ReadRows) -> Iterator[FoundArticle]:
    """Yield the hits with a part of their text; `read` runs a query over both article tables."""
    if not hits:
        return
    phrases = list(query_words(condition_of(query, SearchOptions())))
    rows = read(lambda rows: _texts_of(rows, hits))
    texts = {(day, key): text or "" for day, key, text in rows.iter_rows()}
    part = max(_LEAST_READ_CHARACTERS, min(MOST_READ_CHARACTERS, _READ_CHARACTERS // len(hits)))
    for hit in hits:
        text = texts.get((hit.day, hit.url_hash), "")
        yield FoundArticle(hit, snippet(text, phrases, read=part, language=hit.language))


def read_rows(store: ObjectStore, query: Query) -> pl.DataFrame:
    """Run a query over both article tables."""
    return query(pl.concat(_dataset(store, table).scan() for table in DELTA_TABLES)).collect()


def _texts_of(rows: pl.LazyFrame, hits: Sequence[Hit]) -> pl.LazyFrame:
    """Select day, hash and text of the hits; the text of a feed comes last, and counts."""
    # Day and domain prune files and row groups; hashes have no statistics.
    wanted = (
        pl.col("day").is_in({hit.day for hit in hits})
        & pl.col("domain").is_in({hit.domain for hit in hits})
        & pl.col("url_hash").is_in({hit.url_hash for hit in hits})
    )
    by_source = rows.filter(wanted).sort(pl.col("source") == FEED_SOURCE)
    return by_source.select("day", "url_hash", "text")


def iter_articles(
    store: ObjectStore, day: str, takedowns: Takedowns
) -> Iterator[SearchableArticle]:
    """Yield the articles of a day of both tables, each address once, none that is taken down."""
    seen: set[str] = set()
    for table in _FRESHEST_FIRST:
        for row in _rows(store, _dataset(store, table), day):
            if row["url_hash"] not in seen and not takedowns.covers(row["canonical_url"]):
                seen.add(row["url_hash"])
                yield _searchable(row, day)


def _rows(store: ObjectStore, dataset: DeltaDataset, day: str) -> Iterator[dict[str, Any]]:
    for file in dataset.files():
        if file.partition == day:
            for frame in iter_frames(store, file.path, columns=_COLUMNS):
                yield from frame.iter_rows(named=True)


def _hashes(store: ObjectStore, table: Dataset, day: str) -> Iterator[str]:
    rows = _dataset(store, table).scan().filter(pl.col("day") == day)
    yield from rows.select("url_hash").collect()["url_hash"]


def _searchable(row: Mapping[str, Any], day: str) -> SearchableArticle:
    return SearchableArticle(
        url=row["url"],
        canonical_url=row["canonical_url"],
        url_hash=row["url_hash"],
        domain=row["domain"],
        language=row["language"] or "unknown",
        day=day,
        source=row["source"],
        at=row["published_at"] or row["fetched_at"],
        title=row["title"] or "",
        text=row["text"],
        authors=row["authors"] or (),
        section=row["section"] or "",
    )


def _dataset(store: ObjectStore, table: Dataset) -> DeltaDataset:
    return DeltaDataset(store, table, STATISTICS_COLUMNS)


MONTHS_DATASET = f"{SEARCH_INDEX.name}_months"
_MONTH_CHARS = len("2025-11")
# The snippets of one answer read so many characters together, which takes a second at most.
_READ_CHARACTERS, _LEAST_READ_CHARACTERS = 150_000, 1_000


def month_of(day: str) -> str:
    """Return the month of a day, as `2025-11`."""
    return day[:_MONTH_CHARS]


def wanted_months(store: ObjectStore, *, after_days: int) -> Mapping[str, str]:
    """Return the fingerprint that the index of each old month should be built from.

    A month is old if it ended `after_days` before the newest day; with 0, no month is.
    """
    days = _wanted_days(store)
    if not days or after_days < 1:
        return {}
    limit = date.fromisoformat(max(days)) - timedelta(days=after_days)
    found: dict[str, list[str]] = {}
    for day, inputs in sorted(days.items()):
        if _month_end(month_of(day)) <= limit:
            found.setdefault(month_of(day), []).append(f"{day} {inputs}")
    return {month: fingerprint(parts) for month, parts in found.items()}


def _wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that the index of each day with articles should be built from."""
    wanted = wanted_inputs(store, SEARCH_INDEX)
    return {day: inputs for day, inputs in wanted.items() if inputs != REMOVED}


def join_months(
    store: ObjectStore, *, after_days: int, now: datetime
) -> Iterator[tuple[str, IndexReport | None]]:
    """Build the indexes of old months that are out of date, then delete unused builds."""
    wanted = wanted_months(store, after_days=after_days)
    for month in sorted(stale_partitions(wanted, read_inputs(store, MONTHS_DATASET))):
        yield month, build_month(store, month, now=now)
    delete_unused_builds(store, now=now)


def build_month(
    store: ObjectStore,
    month: str,
    *,
    now: datetime,
    keep_old: bool = True,
) -> IndexReport | None:
    """Build the days of a month as one index; return None if the month has no articles.

    Without `keep_old` all older builds of the month and its days are deleted at once.
    """
    # Before reading: a day that changes meanwhile leaves the month stale, not wrong.
    wanted = {
        day: one for day, one in sorted(_wanted_days(store).items()) if month_of(day) == month
    }
    if not wanted:
        return None
    refused, require_same = checked_takedowns(store)
    inputs = fingerprint([f"{day} {one}" for day, one in wanted.items()])
    counted: Counter[str] = Counter()
    articles = _counted(store, list(wanted), refused, counted)
    place, report = upload_index(store, month, articles, inputs=inputs, before_commit=require_same)
    for day, one in wanted.items():
        mine = IndexReport(counted[day], report.files, report.size_bytes)
        point_day(store, day, place, inputs=one, report=mine)
    require_complete(store, place, report)
    # Last: without it the month counts as never built, whatever its days say.
    write_marker(
        store, MONTHS_DATASET, month, inputs=inputs, report=report.as_fields(), scope=place.build
    )
    before = now - GRACE if keep_old else None
    delete_old_builds(store, month, keep=place.build, before=before)
    for day in wanted:
        delete_old_builds(store, day, keep=None, before=before)
    return report


def _counted(
    store: ObjectStore, days: Sequence[str], refused: Takedowns, counted: Counter[str]
) -> Iterator[SearchableArticle]:
    for day in days:
        for article in iter_articles(store, day, refused):
            counted[day] += 1
            yield article


def _month_end(month: str) -> date:
    """Return the last day of a month."""
    after = date.fromisoformat(f"{month}-01") + timedelta(days=31)
    return after.replace(day=1) - timedelta(days=1)
