"""Write the pages of one WARC to Parquet files: one per language, and one per side table.

One writer per language stays open. Rows are buffered until a language fills a row group or all
languages together exceed the budget; then the largest is written. Memory stays flat, and a WARC
gives one file per language however its languages are mixed. (The partitioned sink of Polars took
1.2 GB and made 250 files.)
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from struct import Struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from news_platform.ccnews.captures import CaptureRun, WrittenFile, arrow_schema
from news_platform.ccnews.page import CrawledPage
from news_platform.ccnews.pool import EXTRACTOR_VERSION
from news_platform.ccnews.warc import DroppedWarcRecord
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.raw_news import (
    DROPPED_RESPONSES,
    FEED_CANDIDATES,
    PAGE_METADATA,
    RAW_NEWS,
)
from news_platform.html.links import FeedLink
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns

# Each row group costs about 1 ms: groups of 8 MB and 4 MB were slower (docs/benchmarks/ccnews.md).
_ROW_GROUP_BYTES = 16 << 20
# Half of what the pages of a 60 MB WARC take, so that a 1 GB WARC needs no more memory.
_BUFFER_BYTES = 32 << 20
# Statistics and dictionaries of whole pages cost time and help no query. For a few short values the
# set-up of zstd costs more than compressing them, so the narrow columns use Snappy.
_BULKY = ("tree", "text")
_OFFSETS = Struct("=ii")
# Columns with few distinct values, for which a dictionary pays.
_REPEATED = (
    "reason",
    "host",
    "http_charset",
    "fetch_status",
    "mime_type",
)


@dataclass(frozen=True, slots=True)
class WrittenWarc:
    """All finished files of a WARC: raw_news by language, and one of each side table."""

    news: Mapping[str, WrittenFile]
    side: Mapping[Dataset, WrittenFile]

    @property
    def rows(self) -> int:
        """Return the number of rows of raw_news."""
        return sum(part.rows for part in self.news.values())

    @property
    def bytes(self) -> int:
        """Return the total size of the files but that of dropped_responses, which expires."""
        kept = (file for table, file in self.side.items() if table is not DROPPED_RESPONSES)
        return sum(file.path.stat().st_size for file in (*self.news.values(), *kept))


class WarcWriter:
    """Write the pages and captures of one WARC to all datasets; call `close` last."""

    def __init__(
        self, folder: Path, *, warc_name: str, takedowns: Takedowns = NO_TAKEDOWNS
    ) -> None:
        self._folder = folder
        self._takedowns = takedowns
        self._warc_name = warc_name
        self._news = NewsWriter(folder, warc_name=warc_name)
        self._metadata: list[tuple[object, ...]] = []
        self._feeds = FeedTally()
        self._dropped: list[tuple[str | None, str, int]] = []
        self._found: list[Mapping[tuple[str, str], FeedLink]] = []
        self.captures = CaptureRun()
        self.rows = 0

    def write(self, page: CrawledPage) -> None:
        """Add one page to all datasets; a page that raises an error is added to none.

        Call `flush_full` after it.
        """
        # Whatever the page can make fail comes before the first change.
        record, stated = page.record, page.stated
        row = (record.uri, record.offset, stated.title, stated.published_at, stated.author)
        feeds = feed_urls(page, self._takedowns)
        self._news.write(page)
        # Only additions to buffers follow, without a call that could fail half-way.
        self._metadata.append(row)
        self._found.append(feeds)
        self.rows += 1

    def flush_full(self) -> None:
        """Count the feeds of the last page, and write the buffers that are full."""
        while self._found:
            self._feeds.add(self._found.pop())
        self._news.flush_full()

    def drop(self, record: DroppedWarcRecord) -> None:
        """Add a record that gave no page."""
        self._dropped.append((record.uri or None, record.reason, record.offset))

    def close(self, shared: Mapping[str, str], *, index_only: bool = False) -> WrittenWarc:
        """Finish all files and return them; `shared` has the columns of captures by their WARC."""
        path = self._folder / f"_{CAPTURES.name}"
        run = self.captures.write(path, shared, **_file_metadata(self._warc_name))
        if index_only:
            return WrittenWarc({}, {CAPTURES: run})
        self.flush_full()
        rows: Mapping[Dataset, Sequence[tuple[object, ...]]] = {
            PAGE_METADATA: self._metadata,
            FEED_CANDIDATES: self._feeds.rows(),
            DROPPED_RESPONSES: self._dropped,
        }
        side = {table: self._write_rows(table, found) for table, found in rows.items()}
        return WrittenWarc(self._news.close(), {CAPTURES: run, **side})

    def _write_rows(self, table: Dataset, rows: Sequence[tuple[object, ...]]) -> WrittenFile:
        path = self._folder / f"_{table.name}"
        with _open_writer(path, table, warc_name=self._warc_name) as writer:
            writer.write_batch(_batch(rows, table))
        return WrittenFile(path, len(rows))


@dataclass(slots=True)
class _LanguageFile:
    """The open file of one language and its buffered rows."""

    path: Path
    writer: pq.ParquetWriter
    buffered: list[CrawledPage] = field(default_factory=list)
    buffered_bytes: int = 0
    rows: int = 0


class NewsWriter:
    """Write the pages of one WARC to one file per language; call `close` last."""

    def __init__(self, folder: Path, *, warc_name: str) -> None:
        self._folder = folder
        self._warc_name = warc_name
        self._parts: dict[str, _LanguageFile] = {}
        self._last: _LanguageFile | None = None
        self._buffered_bytes = 0

    def write(self, page: CrawledPage) -> None:
        """Add one page to its buffer; call `flush_full` after it."""
        self._last = part = self._parts.get(page.main_lang) or self._open(page.main_lang)
        size = len(page.tree) + len(page.text)
        part.buffered.append(page)
        part.buffered_bytes += size
        self._buffered_bytes += size

    def flush_full(self) -> None:
        """Write the buffer of the last page if it is full, or the largest if all are."""
        if self._last and self._last.buffered_bytes >= _ROW_GROUP_BYTES:
            self._flush(self._last)
        elif self._buffered_bytes >= _BUFFER_BYTES:
            self._flush(max(self._parts.values(), key=lambda part: part.buffered_bytes))

    def close(self) -> Mapping[str, WrittenFile]:
        """Write the buffered rows and return the finished file of each language."""
        for part in self._parts.values():
            self._flush(part)
            part.writer.close()
        return {name: WrittenFile(part.path, part.rows) for name, part in self._parts.items()}

    def _open(self, language: str) -> _LanguageFile:
        path = self._folder / f"{language}.parquet"
        writer = _open_writer(path, RAW_NEWS, warc_name=self._warc_name)
        part = self._parts[language] = _LanguageFile(path, writer)
        return part

    def _flush(self, part: _LanguageFile) -> None:
        if part.buffered:
            part.writer.write_table(_news_table(part.buffered))
        part.rows += len(part.buffered)
        self._buffered_bytes -= part.buffered_bytes
        part.buffered, part.buffered_bytes = [], 0


class FeedTally:
    """Count the feeds that the pages of each host link to; a WARC has a few thousand."""

    def __init__(self) -> None:
        self._pages: Counter[tuple[str, str]] = Counter()
        self._links: dict[tuple[str, str], FeedLink] = {}

    def add(self, feeds: Mapping[tuple[str, str], FeedLink]) -> None:
        """Count the feeds of one page, given by host and URL."""
        self._pages.update(feeds.keys())
        for key, link in feeds.items():
            self._links.setdefault(key, link)

    def rows(self) -> list[tuple[object, ...]]:
        """Return all candidates in the order of host and URL."""
        return [
            (*key, self._links[key].mime_type, self._links[key].title, pages)
            for key, pages in sorted(self._pages.items())
        ]


def feed_urls(
    page: CrawledPage, takedowns: Takedowns = NO_TAKEDOWNS
) -> dict[tuple[str, str], FeedLink]:
    """Return the feeds that a page links to, by the page's host and their URL.

    Those that are taken down are left out.
    """
    return {(page.host, one.url): one for one in page.feeds if not takedowns.covers_url(one.url)}


def _open_writer(path: Path, table: Dataset, *, warc_name: str) -> pq.ParquetWriter:
    schema = arrow_schema(table)
    return pq.ParquetWriter(
        path,
        schema.with_metadata(_file_metadata(warc_name)),
        **writer_options(schema.names),
    )


def _file_metadata(warc_name: str) -> dict[str, str]:
    return {"extractor_version": EXTRACTOR_VERSION, "warc": warc_name}


def writer_options(names: Sequence[str]) -> dict[str, Any]:
    """Return how the columns of a file are encoded."""
    return {
        "compression": {name: "zstd" if name in _BULKY else "snappy" for name in names},
        "compression_level": {name: 1 for name in names if name in _BULKY} or None,
        "use_dictionary": [name for name in names if name in _REPEATED],
        "write_statistics": [name for name in names if name not in _BULKY],
    }


def _news_table(pages: list[CrawledPage]) -> pa.Table:
    """Return the pages as a table of raw_news, with those of a site next to each other.

    They share a template, which zstd then compresses well, and a filter on `host` skips row groups.
    """
    pages = sorted(pages, key=attrgetter("surt_uri"))
    columns = {
        "uri": [page.record.uri for page in pages],
        "tree": pa.chunked_array([_wrapped(page.tree) for page in pages], pa.string()),
        "text": [page.text for page in pages],
        "langs": [page.langs for page in pages],
        "confs": [page.confs for page in pages],
        "http_date": [page.http.date for page in pages],
        "http_last_modified": [page.http.last_modified for page in pages],
        "http_charset": [page.http.charset for page in pages],
        "surt_uri": [page.surt_uri for page in pages],
        "host": [page.host for page in pages],
        "warc_record_offset": [page.record.offset for page in pages],
        "fetch_status": [page.http.status for page in pages],
    }
    schema = arrow_schema(RAW_NEWS)
    arrays = [
        values if isinstance(values, pa.ChunkedArray) else pa.array(values, field.type)
        for field in schema
        for values in (columns[field.name],)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _wrapped(utf8: bytes) -> pa.Array:
    """Return a column of one value without copying it.

    One chunk per page also keeps the data pages of Parquet near 1 MB, within the CPU caches: the
    writer checks their size after each chunk.
    """
    offsets = pa.py_buffer(_OFFSETS.pack(0, len(utf8)))
    return pa.StringArray.from_buffers(1, offsets, pa.py_buffer(utf8))


def _batch(rows: Iterable[tuple[object, ...]], table: Dataset) -> pa.RecordBatch:
    schema = arrow_schema(table)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
