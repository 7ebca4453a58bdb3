"""Build the two tables of the corpus, one day at a time.

`build_crawl_day` reads a collected day of raw_news, judges each page in a killable worker, sorts
the articles and replaces the day in crawl_articles. `build_feed_day` does the same for the articles
of feeds, which are extracted already. A marker says what each day was built from.
"""

import logging
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.corpus.crawl_pages import Covers, CrawlPages, ExpiredRows, PlacedPage
from news_platform.corpus.options import CorpusOptions
from news_platform.corpus.page_version import PAGE_MODEL_VERSION
from news_platform.corpus.rows import ArticleRow, PagePlace, crawl_frame
from news_platform.corpus.sorted_rows import iter_runs, merge_runs
from news_platform.corpus.worker_types import CrawlPage, JudgedPage
from news_platform.datasets.collected import Collected
from news_platform.datasets.corpus import CRAWL_ARTICLES, SORT_COLUMNS, STATISTICS_COLUMNS
from news_platform.isolation.pool import Done, Pool
from news_platform.storage.commit import collected
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    delete_marker,
    read_markers,
    write_marker,
)
from news_platform.storage.delta import DeltaDataset, ReplacedPartition
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import build_obeying

_log = logging.getLogger(__name__)

DUPLICATE_ADDRESS = "duplicate_address"
# Rows that become one frame; a Polars column takes far less memory than Python objects.
_FRAME_ROWS = 256
_MERGE_KEYS = (*SORT_COLUMNS, "fetched_at", "warc", "record_offset")
SHOWN_DOMAINS = 20
# What made the articles of a day: the extractor, and the model that tells articles apart.
CRAWL_VERSION = f"{EXTRACTOR_VERSION}-{PAGE_MODEL_VERSION}"


@dataclass(frozen=True, slots=True)
class CorpusDay:
    """What a day of a table holds: pages read, articles, and pages dropped by reason.

    `languages` and `top_domains` count articles. `source_bytes` is the size of what was read.
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

    @property
    def article_share(self) -> float:
        """Return the share of pages that are articles."""
        return self.articles / self.pages if self.pages else 0.0


def crawl_dataset(store: ObjectStore) -> DeltaDataset:
    """Return the Delta table of the crawl's articles."""
    return DeltaDataset(store, CRAWL_ARTICLES, STATISTICS_COLUMNS)


def outdated_crawl_days(store: ObjectStore, *, newest: int | None = None) -> list[str]:
    """Return the days whose articles another version made, oldest first.

    `newest` limits this to so many of the newest days that are built.
    """
    markers = read_markers(store, CRAWL_ARTICLES.name)
    chosen = sorted(sorted(markers, reverse=True)[:newest])
    return [day for day in chosen if markers[day].scope != CRAWL_VERSION]


def build_crawl_day(
    store: ObjectStore,
    day: str,
    *,
    options: CorpusOptions,
    covers: Covers | None = None,
    expired_rows: ExpiredRows | None = None,
) -> CorpusDay | None:
    """Replace a day of crawl_articles; return None if the day has no pages any more.

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
        remove_day(crawl_dataset(store), day, scratch=options.scratch)
        return None
    markers = collected.parse_listed(store, units)
    pages = CrawlPages(store, markers, options=options, covers=covers, expired_rows=expired_rows)
    report = _build(store, day, pages, options=options, source_bytes=_raw_bytes(markers))
    write_marker(
        store,
        CRAWL_ARTICLES.name,
        day,
        inputs=inputs,
        report=asdict(report),
        scope=CRAWL_VERSION,
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


def remove_day(dataset: DeltaDataset, day: str, *, scratch: str | None) -> None:
    """Remove the rows and the marker of a day."""
    if day in dataset.partitions():
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            dataset.replace(day, [], scratch=Path(folder))
    delete_marker(dataset.store, dataset.table.name, day)


def _raw_bytes(markers: Iterable[Collected]) -> int:
    return sum(marker.bytes for marker in markers)


def _build(
    store: ObjectStore, day: str, pages: CrawlPages, *, options: CorpusOptions, source_bytes: int
) -> CorpusDay:
    judged = _JudgedDay(pages, options)
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        frames = judged.frames()
        runs = list(iter_runs(frames, folder, keys=_MERGE_KEYS, run_bytes=options.run_bytes))
        counts = TableCounts()
        rows = counts.counted(_once_each(merge_runs(runs, keys=SORT_COLUMNS), judged.dropped))
        done = crawl_dataset(store).replace(day, rows, scratch=folder)
    dropped = judged.dropped + pages.dropped
    return counts.report(day, done, pages=pages.pages, dropped=dropped, source_bytes=source_bytes)


def _once_each(frames: Iterable[pl.DataFrame], dropped: Counter[str]) -> Iterator[pl.DataFrame]:
    """Yield of each address the row that was fetched last, and count the others."""
    for frame in frames:
        ordered = frame.sort(_MERGE_KEYS, maintain_order=True)
        kept = ordered.unique(list(SORT_COLUMNS), keep="last", maintain_order=True)
        if kept.height < frame.height:
            dropped[DUPLICATE_ADDRESS] += frame.height - kept.height
        yield kept


class _JudgedDay:
    """The articles of a day as frames, in the order of the pages."""

    def __init__(self, pages: CrawlPages, options: CorpusOptions) -> None:
        self.dropped: Counter[str] = Counter()
        self._pages = pages
        self._options = options
        self._waiting: deque[PlacedPage] = deque()

    def frames(self) -> Iterator[pl.DataFrame]:
        rows: list[ArticleRow] = []
        places: list[PagePlace] = []
        for row, place in self._rows():
            rows.append(row)
            places.append(place)
            if len(rows) >= _FRAME_ROWS:
                yield crawl_frame(rows, places)
                rows, places = [], []
        if rows:
            yield crawl_frame(rows, places)

    def _rows(self) -> Iterator[tuple[ArticleRow, PagePlace]]:
        with (
            Pool(
                self._options.target,
                workers=self._options.workers,
                deadline_seconds=self._options.page_seconds,
                memory_bytes=self._options.memory_bytes,
            ) as pool,
            closing(self._to_judge()) as to_judge,
        ):
            for outcome in pool.map(to_judge):
                placed = self._waiting.popleft()
                if not isinstance(outcome, Done):
                    _log.warning("%s: %s: %s", placed.page.url, outcome.reason, outcome.detail)
                    self.dropped[outcome.reason] += 1
                    continue
                judged: JudgedPage = outcome.value
                _log.debug("%s: %s", placed.page.url, judged.reason or "article")
                if judged.row is None:
                    self.dropped[judged.reason] += 1
                else:
                    yield judged.row, placed.place

    def _to_judge(self) -> Generator[CrawlPage, None, None]:
        for placed in self._pages:
            # The pool returns outcomes in the order of the pages.
            self._waiting.append(placed)
            yield placed.page


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
        # By name where counts are equal: the same day gives the same report.
        top = sorted(self._domains.items(), key=lambda item: (-item[1], item[0]))
        return CorpusDay(
            day,
            pages=pages,
            articles=done.rows,
            dropped=dict(sorted(dropped.items())),
            languages=dict(sorted(self._languages.items())),
            top_domains=dict(top[:SHOWN_DOMAINS]),
            words=self._words,
            bytes=sum(done.file_bytes),
            files=len(done.file_bytes),
            source_bytes=source_bytes,
            version=done.version,
        )
