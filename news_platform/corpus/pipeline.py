"""Build the two tables of the corpus, one day at a time.

`build_crawl_day` reads a collected day of raw_news, classifies each page in a killable worker,
sorts the articles and replaces the day in crawl_articles. `build_feed_day` does the same for the
articles of feeds, which are extracted already. A marker says what each day was built from.
"""

import hashlib
import io
import logging
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import polars as pl

from news_platform.corpus.crawl_pages import (
    CorpusOptions,
    Covers,
    CrawlPages,
    ExpiredRows,
)
from news_platform.corpus.rows import (
    NO_TEXT,
    NOT_AN_ARTICLE,
    ArticleRow,
    ClassifiedPage,
    CrawlPage,
    PagePlace,
    crawl_frame,
    dated_row,
    feed_frame,
)
from news_platform.corpus.sorted_rows import iter_runs, merge_runs
from news_platform.datasets import versions
from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    FEED_ARTICLES,
    SORT_COLUMNS,
    STATISTICS_COLUMNS,
)
from news_platform.datasets.feeds import ARTICLES, articles_path
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import StorageError
from news_platform.isolation.pool import Done, Pool
from news_platform.storage.chunks import chunked
from news_platform.storage.commit import collected
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    change_report,
    content_part,
    fingerprint_of,
    read_markers,
    read_report,
    write_marker,
)
from news_platform.storage.delta import DeltaDataset, DeltaEngine, ReplacedPartition
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, read_table
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform.takedowns.build_filters import build_obeying

_log = logging.getLogger(__name__)

DUPLICATE_ADDRESS = "duplicate_address"
# Rows that become one frame; a Polars column takes far less memory than Python objects.
_FRAME_ROWS = 256
_MERGE_KEYS = (*SORT_COLUMNS, "fetched_at", "warc", "record_offset")
_SHOWN_DOMAINS = 20
# Columns that contain the root's path, or that change whenever a feed is polled.
_PASSING = ("full_text_ref", "full_text_len", "last_seen_rss", "sources_list", "aliases")
NO_TEXT_OR_TWICE = "no_text_or_address_twice"


@dataclass(frozen=True, slots=True)
class CorpusDay:
    """What a day of a table holds: pages read, articles, and pages dropped by reason.

    `languages` and `top_domains` count articles. `source_bytes` is the size of what was read.
    `pages_before` and `articles_before` are those of the build that this one replaced.
    """

    day: str
    pages: int
    articles: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    top_domains: Mapping[str, int] = field(default_factory=dict)
    words: int = 0
    bytes: int = 0
    files: int = 0
    source_bytes: int = 0
    version: int = 0
    pages_before: int = 0
    articles_before: int = 0

    @property
    def article_share(self) -> float:
        """Return the share of pages that are articles."""
        return self.articles / self.pages if self.pages else 0.0


def crawl_dataset(store: ObjectStore) -> DeltaDataset:
    """Return the Delta table of the crawl's articles."""
    return DeltaDataset(store, CRAWL_ARTICLES, STATISTICS_COLUMNS)


def feed_dataset(store: ObjectStore) -> DeltaDataset:
    """Return the Delta table of the feeds' articles."""
    return DeltaDataset(store, FEED_ARTICLES, STATISTICS_COLUMNS)


def outdated_crawl_days(store: ObjectStore, *, newest: int | None = None) -> list[str]:
    """Return the days whose articles another version made, oldest first.

    `newest` limits this to so many of the newest days that are built.
    """
    markers = read_markers(store, CRAWL_ARTICLES.name)
    chosen = sorted(sorted(markers, reverse=True)[:newest])
    return [day for day in chosen if markers[day].scope != versions.CRAWL_ARTICLES]


def build_crawl_day(
    store: ObjectStore,
    day: str,
    *,
    options: CorpusOptions,
    covers: Covers | None = None,
    expired_rows: ExpiredRows | None = None,
) -> CorpusDay | None:
    """Replace a day of crawl_articles; return None if the day has no pages (see `remove_gone`).

    `covers` says which canonical addresses are left out, by default those that are taken down.
    """
    if covers is None:
        return obeying_build(
            crawl_dataset(store),
            lambda found: build_crawl_day(
                store, day, options=options, covers=found, expired_rows=expired_rows
            ),
        )
    # Before reading: a WARC that arrives meanwhile leaves the day stale, not wrong.
    inputs = wanted_inputs(store, CRAWL_ARTICLES, options).get(day, REMOVED)
    units = collected.list_collected_day(store, date.fromisoformat(day))
    if not units:
        return None
    markers = collected.parse_listed(store, units)
    pages = CrawlPages(store, markers, options=options, covers=covers, expired_rows=expired_rows)
    report = _build(
        store, day, pages, options=options, source_bytes=sum(one.bytes for one in markers)
    )
    if before := read_markers(store, CRAWL_ARTICLES.name).get(day):
        held = read_report(store, before)
        counts = (int(str(held.get(name, 0))) for name in ("pages", "articles"))
        report = replace(report, pages_before=next(counts), articles_before=next(counts))
    write_marker(
        store,
        CRAWL_ARTICLES.name,
        day,
        inputs=inputs,
        report=asdict(report),
        scope=versions.CRAWL_ARTICLES,
    )
    return report


def obeying_build(
    dataset: DeltaDataset, build: Callable[[Covers], CorpusDay | None]
) -> CorpusDay | None:
    """Build a day without what is taken down, again if requests come meanwhile."""
    return build_obeying(
        dataset.store,
        lambda takedowns: build(takedowns.covers),
        # What was built from older requests may hold too much.
        after_repeat=dataset.delete_replaced,
    )


def _build(
    store: ObjectStore, day: str, pages: CrawlPages, *, options: CorpusOptions, source_bytes: int
) -> CorpusDay:
    articles = _ClassifiedDay(pages, options)
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        frames = articles.frames()
        runs = list(iter_runs(frames, folder, keys=_MERGE_KEYS, run_bytes=options.run_bytes))
        _require_judged(day, articles.dropped, pages.pages)
        counts = TableCounts()
        rows = counts.counted(_once_each(merge_runs(runs, keys=SORT_COLUMNS), articles.dropped))
        done = crawl_dataset(store).replace(day, rows, scratch=folder)
    dropped = articles.dropped + pages.dropped
    return counts.report(day, done, pages=pages.pages, dropped=dropped, source_bytes=source_bytes)


def _require_judged(day: str, dropped: Counter[str], pages: int) -> None:
    """Raise StorageError if most pages could not be judged: the day stays as it is."""
    failed = {why: n for why, n in dropped.items() if why not in (NO_TEXT, NOT_AN_ARTICLE)}
    if 2 * sum(failed.values()) > pages:
        causes = ", ".join(f"{why} {count}" for why, count in sorted(failed.items()))
        message = f"most pages of {day} failed ({causes} of {pages}): nothing was replaced; the log"
        raise StorageError(f"{message} names the pages; build the day again", thing=day)


def _once_each(frames: Iterable[pl.DataFrame], dropped: Counter[str]) -> Iterator[pl.DataFrame]:
    """Yield of each address the row that was fetched last, and count the others."""
    for frame in frames:
        ordered = frame.sort(_MERGE_KEYS, maintain_order=True)
        kept = ordered.unique(list(SORT_COLUMNS), keep="last", maintain_order=True)
        if kept.height < frame.height:
            dropped[DUPLICATE_ADDRESS] += frame.height - kept.height
        yield kept


class _ClassifiedDay:
    """The articles of a day as frames, in the order of the pages."""

    def __init__(self, pages: CrawlPages, options: CorpusOptions) -> None:
        self.dropped: Counter[str] = Counter()
        self._pages = pages
        self._options = options
        self._waiting: deque[tuple[CrawlPage, PagePlace]] = deque()

    def frames(self) -> Iterator[pl.DataFrame]:
        for batch in chunked(self._rows(), _FRAME_ROWS):
            yield crawl_frame([row for row, _ in batch], [place for _, place in batch])

    def _rows(self) -> Iterator[tuple[ArticleRow, PagePlace]]:
        with closing(self._to_classify()) as pages:
            for found in classify_pages(pages, self._options):
                page, place = self._waiting.popleft()
                if found.row is not None:
                    yield dated_row(found.row, place.fetched_at), place
                    continue
                self.dropped[found.reason] += 1
                if found.detail:
                    _log.warning("%s: %s: %s", page.url, found.reason, found.detail)

    def _to_classify(self) -> Generator[CrawlPage, None, None]:
        for page, place in self._pages:
            self._waiting.append((page, place))
            yield page


def classify_pages(
    pages: Iterable[CrawlPage], options: CorpusOptions
) -> Generator[ClassifiedPage, None, None]:
    """Classify pages in killable workers, in their order; a page that a worker lost has no row."""
    with Pool(
        options.target,
        workers=options.workers,
        deadline_seconds=options.page_seconds,
        memory_bytes=options.memory_bytes,
    ) as pool:
        for outcome in pool.map(pages):
            if isinstance(outcome, Done):
                yield outcome.value
            else:
                yield ClassifiedPage(None, outcome.reason, outcome.detail)


class TableCounts:
    """Counts of the rows that pass on their way into a table."""

    def __init__(self) -> None:
        self._languages: Counter[str] = Counter()
        self._domains: Counter[str] = Counter()
        self._words = 0

    def counted(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Yield the frames unchanged, and count them."""
        for frame in frames:
            self._languages.update(frame["language"].fill_null(""))
            self._domains.update(frame["domain"])
            self._words += int(frame["word_count"].sum() or 0)
            yield frame

    def as_fields(self) -> dict[str, Any]:
        """Return the counts as fields of a day's report."""
        # By name where counts are equal: the same day gives the same report.
        top = sorted(self._domains.items(), key=lambda item: (-item[1], item[0]))
        return {
            "languages": dict(sorted(self._languages.items())),
            "top_domains": dict(top[:_SHOWN_DOMAINS]),
            "words": self._words,
        }

    def report(
        self,
        day: str,
        done: ReplacedPartition,
        *,
        pages: int,
        dropped: Mapping[str, int],
        source_bytes: int,
    ) -> CorpusDay:
        """Return the report of the day."""
        return CorpusDay(
            day,
            pages=pages,
            articles=done.rows,
            dropped={reason: count for reason, count in sorted(dropped.items()) if count},
            bytes=sum(done.file_bytes),
            files=len(done.file_bytes),
            source_bytes=source_bytes,
            version=done.version,
            **self.as_fields(),
        )


def recount_day(engine: DeltaEngine, day: str) -> None:
    """Let the marker of a day count the articles that are left after some were removed.

    The fingerprint stays, so nothing becomes stale.
    """
    marker = read_markers(engine.store, engine.dataset.name).get(day)
    if marker is None:
        return
    files = [file for file in engine.table.files() if file.partition == day]
    counts = TableCounts()
    rows = engine.scan([day]).select("language", "domain", "word_count").collect()
    articles = sum(frame.height for frame in counts.counted([rows]))
    own = {
        **counts.as_fields(),
        "articles": articles,
        "bytes": sum(file.size_bytes for file in files),
        "files": len(files),
        "version": engine.table.version(),
    }

    def change(report: Mapping[str, object]) -> Mapping[str, object]:
        dropped = Counter(cast(Mapping[str, int], report.get("dropped", {})))
        dropped[TAKEN_DOWN] += int(str(report.get("articles", 0))) - articles
        return {**report, **own, "dropped": dict(sorted((+dropped).items()))}

    change_report(engine.store, marker, change)


def wanted_feed_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that each day should be built from: that of its exported file.

    A built day whose file is gone maps to REMOVED.
    """
    # The folder also contains the full texts of articles.
    files = store.list("articles", name_prefix="date=")
    wanted = {path_values(info.path)["date"]: _feed_inputs(store, info) for info in files}
    gone = [day for day in built_inputs(store, FEED_ARTICLES) if day not in wanted]
    return wanted | dict.fromkeys(gone, REMOVED)


def build_feed_day(
    store: ObjectStore, day: str, *, covers: Covers | None = None, scratch: str | None = None
) -> CorpusDay | None:
    """Replace a day of feed_articles; return None if its articles are gone (see `remove_gone`)."""
    if covers is None:
        return obeying_build(
            feed_dataset(store),
            lambda found: build_feed_day(store, day, covers=found, scratch=scratch),
        )
    info = store.find(articles_path(day))
    if info is None:
        return None
    inputs = _feed_inputs(store, info)
    articles = read_table(store, info.path, ARTICLES)
    rows = feed_frame(articles)
    kept = rows.filter(
        pl.Series([not covers(url) for url in rows["canonical_url"]], dtype=pl.Boolean)
    )
    counts = TableCounts()
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        done = feed_dataset(store).replace(day, counts.counted([kept]), scratch=Path(folder))
    dropped = {
        NO_TEXT_OR_TWICE: articles.height - rows.height,
        TAKEN_DOWN: rows.height - kept.height,
    }
    report = counts.report(
        day, done, pages=articles.height, dropped=dropped, source_bytes=info.size_bytes
    )
    write_marker(store, FEED_ARTICLES.name, day, inputs=inputs, report=asdict(report))
    return report


def _feed_inputs(store: ObjectStore, info: ObjectInfo) -> str:
    return fingerprint_of([info], content_part(store, _row_digest))


def _row_digest(body: bytes) -> str:
    """Return the SHA-256 of the columns that the table depends on."""
    try:
        rows = pl.read_parquet(io.BytesIO(body))
        body = rows.drop(_PASSING, strict=False).write_ndjson().encode()
    except (pl.exceptions.PolarsError, OSError):
        pass  # The run that reads the damaged file reports it; a sensor only compares.
    return hashlib.sha256(body).hexdigest()
