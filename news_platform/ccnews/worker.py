"""The worker process's side of collecting: open the stores, collect one WARC, say where it is.

The pool kills a worker that is silent for too long. While a page is worked on nothing is said after
its number, so a page that hangs is found; while bytes are awaited or published a heartbeat speaks,
so a slow network is never taken for a bad page.
"""

import gc
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import quote

from news_platform.ccnews.gzip_members import ByteSource
from news_platform.ccnews.page import EXTRACTOR_VERSION, CrawledPage, PageOptions, read_page
from news_platform.ccnews.warc import DroppedRecord, WarcResponse, first_record_day, iter_responses
from news_platform.ccnews.writer import WarcWriter, WrittenWarc
from news_platform.datasets.captures import captures_path
from news_platform.datasets.collected import (
    Collected,
    collected_path,
    dump_collected,
    parse_collected,
)
from news_platform.datasets.feed_candidates import feed_candidates_path
from news_platform.datasets.raw_news import raw_news_day_prefix, raw_news_path
from news_platform.datasets.warc_paths import warc_day
from news_platform.errors import InputError, StorageError
from news_platform.isolation.worker import report
from news_platform.storage.commit.markers import content_tag
from news_platform.storage.commit.publish import publish
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store

_HEARTBEAT_SECONDS = 0.5
# Pages leave no cycles behind, and with the usual 700 the suffix list alone costs a second of them.
_GC_THRESHOLD = 50_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A store, told so that another process can open it."""

    url: str
    options: StoreOptions


@dataclass(frozen=True, slots=True)
class CollectTask:
    """One WARC to collect: `path` in the first of `sources` that gives it; size None if unknown."""

    path: str
    size_bytes: int | None
    sources: tuple[StoreAddress, ...]
    root: StoreAddress
    scratch: str
    options: PageOptions
    attempt: str
    now: datetime
    skip: Mapping[int, str]

    @property
    def name(self) -> str:
        """Return the WARC's file name."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class WarcProgress:
    """Where a worker is; `number` is the record being worked on, None while it waits for bytes."""

    number: int | None
    read_bytes: int
    rows: int


def collect_task(task: CollectTask) -> Collected:
    """Collect the task's WARC from its first source, or the next one when that cannot be read."""
    gc.set_threshold(_GC_THRESHOLD)
    for place in task.sources[:-1]:
        try:
            return _collect_from(place, task)
        except StorageError as error:
            _log.warning("%s: %s; trying the next source", task.name, error)
    return _collect_from(task.sources[-1], task)


def _collect_from(place: StoreAddress, task: CollectTask) -> Collected:
    watch = Watch()
    with TemporaryDirectory(dir=task.scratch) as scratch, watch.beating():
        return collect_warc(
            task.path,
            source=_opened(place),
            root=_opened(task.root),
            options=task.options,
            attempt=Attempt(
                task.attempt, task.now, Path(scratch), task.skip, expected_bytes=task.size_bytes
            ),
            watcher=watch,
        )


@lru_cache(maxsize=8)
def _opened(place: StoreAddress) -> ObjectStore:
    return open_store(place.url, options=place.options)


class Watch:
    """Say which record is worked on, and that we live while none is."""

    def __init__(self) -> None:
        self._progress = WarcProgress(None, 0, 0)
        self._is_waiting = True

    def tell_record(self, response: WarcResponse, rows: int) -> None:
        """Say that work on this response begins."""
        self._is_waiting = False
        record = response.record
        self._progress = WarcProgress(record.number, record.offset, rows)
        report(self._progress)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Say every few seconds that we live, unless a record is worked on."""
        done = threading.Event()
        heart = threading.Thread(target=self._beat, args=(done,), daemon=True)
        heart.start()
        try:
            yield
        finally:
            done.set()
            heart.join()

    def watched(self, stream: ByteSource) -> ByteSource:
        """Return the stream, with its waits known as waits."""
        return _WatchedStream(stream, self)

    def begin_wait(self) -> None:
        """Say that no record is worked on until the next one is told."""
        if not self._is_waiting:
            self._is_waiting = True
            self._progress = WarcProgress(None, self._progress.read_bytes, self._progress.rows)
            report(self._progress)

    def _beat(self, done: threading.Event) -> None:
        while not done.wait(_HEARTBEAT_SECONDS):
            if self._is_waiting:
                report(self._progress)


class _WatchedStream:
    def __init__(self, stream: ByteSource, watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    def read(self, size: int = -1) -> bytes:
        self._watch.begin_wait()
        return self._stream.read(size)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a WARC: its id, its moment, its scratch folder and the records to leave out.

    `skip` maps the number of a record that broke an earlier try to the reason it is counted under;
    `expected_bytes` is the WARC's size as told beforehand, which unmasks a silent truncation.
    """

    id: str
    now: datetime
    scratch: Path
    skip: Mapping[int, str]
    expected_bytes: int | None = None


class Watcher(Protocol):
    """Who is told how collecting gets on."""

    def watched(self, stream: ByteSource) -> ByteSource:
        """Return the stream to read from."""
        ...

    def tell_record(self, response: WarcResponse, rows: int) -> None:
        """Hear that work on this response begins, with the rows so far."""
        ...

    def begin_wait(self) -> None:
        """Hear that no response is worked on until the next one is told."""
        ...


class Unwatched:
    """Nobody: the stream as it is, and no one listens."""

    def watched(self, stream: ByteSource) -> ByteSource:
        """Return the stream itself."""
        return stream

    def tell_record(self, response: WarcResponse, rows: int) -> None:
        """Tell nobody."""

    def begin_wait(self) -> None:
        """Tell nobody."""


_NOBODY = Unwatched()


def collect_warc(
    path: str,
    *,
    source: ObjectStore,
    root: ObjectStore,
    options: PageOptions,
    attempt: Attempt,
    watcher: Watcher = _NOBODY,
) -> Collected:
    """Collect the WARC at `path` of the source and return its marker."""
    name = path.rpartition("/")[2]
    day = _day(path, source)
    with source.stream(path, expected_size=attempt.expected_bytes) as stream:
        found, dropped = extract_pages(
            watcher.watched(stream), name=name, options=options, attempt=attempt, watcher=watcher
        )
        marker = Collected(
            warc=name,
            day=day,
            source=source.uri(path),
            source_etag=_source_tag(source, path, etag=stream.etag or "", root=root, day=day),
            source_bytes=stream.size_bytes,
            rows=found.rows,
            duplicates=found.duplicates,
            bytes=found.bytes,
            languages={language: part.rows for language, part in sorted(found.news.items())},
            dropped=dict(sorted(dropped.items())),
            captures=found.captures.rows if found.captures else None,
            feed_candidates=found.feeds.rows if found.feeds else None,
            extractor_version=EXTRACTOR_VERSION,
            attempt=attempt.id,
            collected_at=attempt.now.isoformat(),
        )
    publish_warc(root, marker, found)
    return marker


def extract_pages(
    stream: ByteSource, *, name: str, options: PageOptions, attempt: Attempt, watcher: Watcher
) -> tuple[WrittenWarc, Mapping[str, int]]:
    """Write the pages of a WARC to the scratch folder; also return what was dropped, by reason."""
    writer = WarcWriter(attempt.scratch, warc=name, options=options)
    dropped: Counter[str] = Counter()
    for item in iter_responses(stream, name=name, max_body_bytes=options.max_page_bytes):
        found: CrawledPage | DroppedRecord
        if isinstance(item, DroppedRecord):
            found = item
        elif item.record.number in attempt.skip:
            found = DroppedRecord(attempt.skip[item.record.number], item.record.offset)
        else:
            watcher.tell_record(item, writer.rows)
            found = read_page(item, options)
        if isinstance(found, DroppedRecord):
            dropped[found.reason] += 1
        else:
            writer.write(found)
    watcher.begin_wait()
    return writer.close(), dropped


def publish_warc(root: ObjectStore, marker: Collected, written: WrittenWarc) -> None:
    """Make the stored files of the WARC equal to those written, then write its marker.

    A marker that says the same already stays, so that nothing that follows it is built again.
    """
    day, name = marker.day, marker.warc
    files = {
        raw_news_path(day, language, filename=name): part.path
        for language, part in written.news.items()
    }
    if written.captures:
        files[captures_path(day, name)] = written.captures.path
    if written.feeds:
        files[feed_candidates_path(day, name)] = written.feeds.path
    publish(
        root,
        files,
        marker=collected_path(day, name),
        marker_body=_kept_marker(root, marker) or dump_collected(marker),
        replaces=_folders_of(root, day, name),
    )


def _source_tag(source: ObjectStore, path: str, *, etag: str, root: ObjectStore, day: date) -> str:
    """Return what tells this content of the WARC from another.

    Version 0.1.0 took the ETag of a local file, too; a marker with that tag stays as it is.
    """
    old_path = collected_path(day, path.rpartition("/")[2])
    with suppress(StorageError):  # none there, or none that can be read
        if parse_collected(root.read(old_path), path=old_path).source_etag == etag:
            return etag
    return content_tag(source, path, etag)


def _kept_marker(root: ObjectStore, marker: Collected) -> bytes | None:
    path = collected_path(marker.day, marker.warc)
    with suppress(StorageError):  # none there, or none that can be read
        body = root.read(path)
        old = parse_collected(body, path=path)
        if replace(old, attempt=marker.attempt, collected_at=marker.collected_at) == marker:
            return body
    return None


def _folders_of(root: ObjectStore, day: date, name: str) -> list[str]:
    """Return the folders that hold files of this WARC, from whichever attempt."""
    own = f"/filename={quote(name, safe='')}"
    found = {info.path.rpartition("/")[0] for info in root.list(raw_news_day_prefix(day))}
    side = (captures_path(day, name), feed_candidates_path(day, name))
    return [
        *sorted(folder for folder in found if folder.endswith(own)),
        *(path.rpartition("/")[0] for path in side),
    ]


def _day(path: str, source: ObjectStore) -> date:
    """Return the day in the WARC's name, else that of its first record."""
    name = path.rpartition("/")[2]
    if day := warc_day(name):
        return day
    with source.stream(path) as stream:
        if day := first_record_day(stream):
            return day
    raise InputError(
        f"WARC {name!r} has no day: no timestamp in its name, no WARC-Date in its first record",
        thing=name,
    )
