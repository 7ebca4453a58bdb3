"""Collect one WARC in a worker process: read its records, write the pages, publish the files.

Files are built in a scratch folder and published under names that follow from the WARC alone, the
marker last. A second attempt therefore replaces the first, and a reader that goes by the markers
never sees a part.

The pool kills a worker that is silent for too long. While a page is in work nothing is sent after
its number, so a page that hangs is found; while bytes are awaited or published, heartbeats are
sent, so a slow network is never mistaken for a bad page.
"""

import gc
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from news_platform.ccnews.gzip_members import ByteSource
from news_platform.ccnews.options import EXTRACTOR_VERSION
from news_platform.ccnews.page import CrawledPage, read_page
from news_platform.ccnews.pool import CollectTask, StoreAddress, WarcProgress
from news_platform.ccnews.warc import (
    DroppedWarcRecord,
    WarcResponse,
    first_record_day,
    iter_responses,
)
from news_platform.ccnews.writer import WarcWriter, WrittenWarc
from news_platform.datasets.captures import captures_path, feed_candidates_path
from news_platform.datasets.collected import (
    Collected,
    collected_path,
    dump_collected,
    parse_collected,
)
from news_platform.datasets.raw_news import raw_news_day_prefix, raw_news_path
from news_platform.datasets.warc_paths import warc_day
from news_platform.errors import InputError, StorageError
from news_platform.isolation.worker import report
from news_platform.storage.commit.markers import content_tag
from news_platform.storage.commit.publish import publish
from news_platform.storage.objects.store import ObjectStore, open_store

_HEARTBEAT_SECONDS = 0.5
# Pages leave no reference cycles behind. With Python's default of 700, the objects of the public
# suffix list alone cost a second of garbage collection.
_GC_THRESHOLD = 50_000
_log = logging.getLogger(__name__)


def collect_task(task: CollectTask) -> Collected:
    """Collect the task's WARC from its first source, or from the next when that cannot be read."""
    gc.set_threshold(_GC_THRESHOLD)
    for address in task.sources[:-1]:
        try:
            return _collect_from(address, task)
        except StorageError as error:
            _log.warning("%s: %s; trying the next source", task.warc_name, error)
    return _collect_from(task.sources[-1], task)


def _collect_from(address: StoreAddress, task: CollectTask) -> Collected:
    progress = ProgressReporter()
    with TemporaryDirectory(dir=task.scratch) as scratch, progress.heartbeat():
        return collect_warc(
            task,
            source=_opened(address),
            root=_opened(task.root),
            scratch=Path(scratch),
            progress=progress,
        )


# All tasks of a worker share a few stores.
@lru_cache(maxsize=8)
def _opened(address: StoreAddress) -> ObjectStore:
    return open_store(address.url, options=address.options)


class ProgressReporter:
    """Send the number of the record in work, and heartbeats while no record is in work."""

    def __init__(self, send: Callable[[WarcProgress], None] = report) -> None:
        self._send = send
        self._progress = WarcProgress(None, 0, 0)
        self._is_waiting = True

    def begin_record(self, response: WarcResponse, rows: int) -> None:
        """Send that work on this response begins, with the rows written so far."""
        self._is_waiting = False
        record = response.record
        self._progress = WarcProgress(record.number, record.offset, rows)
        self._send(self._progress)

    def begin_wait(self) -> None:
        """Send that no record is in work until the next one begins."""
        if not self._is_waiting:
            self._is_waiting = True
            self._progress = replace(self._progress, number=None)
            self._send(self._progress)

    def wrap(self, stream: ByteSource) -> ByteSource:
        """Return the stream with its reads reported as waits."""
        return _WaitingStream(stream, self)

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Repeat the progress in the background while no record is in work."""
        done = threading.Event()
        thread = threading.Thread(target=self._beat, args=(done,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _beat(self, done: threading.Event) -> None:
        while not done.wait(_HEARTBEAT_SECONDS):
            if self._is_waiting:
                self._send(self._progress)


class _WaitingStream:
    def __init__(self, stream: ByteSource, progress: ProgressReporter) -> None:
        self._stream = stream
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        self._progress.begin_wait()
        return self._stream.read(size)


def collect_warc(
    task: CollectTask,
    *,
    source: ObjectStore,
    root: ObjectStore,
    scratch: Path,
    progress: ProgressReporter,
) -> Collected:
    """Collect the task's WARC from an open source and return its marker."""
    day = _read_day(task, source)
    # A truncated download ends like a complete one in obstore and in fastwarc; the size reveals it.
    with source.stream(task.path, expected_size=task.size_bytes) as stream:
        written, dropped = write_pages(
            progress.wrap(stream), task, scratch=scratch, progress=progress
        )
        marker = Collected(
            warc=task.warc_name,
            day=day,
            source=source.uri(task.path),
            source_etag=_source_tag(task, source, etag=stream.etag or "", root=root, day=day),
            source_bytes=stream.size_bytes,
            rows=written.rows,
            duplicates=written.duplicates,
            bytes=written.bytes,
            languages={language: part.rows for language, part in sorted(written.news.items())},
            dropped=dict(sorted(dropped.items())),
            captures=written.captures.rows if written.captures else None,
            feed_candidates=written.feeds.rows if written.feeds else None,
            extractor_version=EXTRACTOR_VERSION,
            attempt=task.attempt,
            collected_at=task.now.isoformat(),
        )
    publish_warc(root, marker, written)
    return marker


def write_pages(
    stream: ByteSource, task: CollectTask, *, scratch: Path, progress: ProgressReporter
) -> tuple[WrittenWarc, Mapping[str, int]]:
    """Write the pages of a WARC to the scratch folder; also return dropped records by reason."""
    writer = WarcWriter(scratch, warc_name=task.warc_name, options=task.options)
    dropped: Counter[str] = Counter()
    limit = task.options.max_page_bytes
    for item in iter_responses(stream, warc_name=task.warc_name, max_body_bytes=limit):
        found: CrawledPage | DroppedWarcRecord
        if isinstance(item, DroppedWarcRecord):
            found = item
        elif item.record.number in task.skip:
            found = DroppedWarcRecord(task.skip[item.record.number], item.record.offset)
        else:
            progress.begin_record(item, writer.rows)
            found = read_page(item, task.options)
        if isinstance(found, DroppedWarcRecord):
            dropped[found.reason] += 1
        else:
            writer.write(found)
    progress.begin_wait()
    return writer.close(), dropped


def publish_warc(root: ObjectStore, marker: Collected, written: WrittenWarc) -> None:
    """Make the stored files of the WARC equal to those written, then write its marker.

    A marker that would say the same is kept, so that nothing downstream is built again.
    """
    day, warc_name = marker.day, marker.warc
    files = {
        raw_news_path(day, language, filename=warc_name): part.path
        for language, part in written.news.items()
    }
    if written.captures:
        files[captures_path(day, warc_name)] = written.captures.path
    if written.feeds:
        files[feed_candidates_path(day, warc_name)] = written.feeds.path
    # Another version or other options may have written other languages: those files are strays.
    publish(
        root,
        files,
        marker=collected_path(day, warc_name),
        marker_body=_equal_marker(root, marker) or dump_collected(marker),
        replaces=_stored_folders(root, day, warc_name),
    )


def _source_tag(
    task: CollectTask, source: ObjectStore, *, etag: str, root: ObjectStore, day: date
) -> str:
    """Return a tag that changes with the content of the WARC.

    Version 0.1.0 stored the ETag of local files too; a marker with such a tag keeps it.
    """
    old_path = collected_path(day, task.warc_name)
    with suppress(StorageError):  # there is no marker, or it cannot be parsed
        if parse_collected(root.read(old_path), path=old_path).source_etag == etag:
            return etag
    return content_tag(source, task.path, etag)


def _equal_marker(root: ObjectStore, marker: Collected) -> bytes | None:
    """Return the stored marker when it differs in nothing but attempt and time."""
    path = collected_path(marker.day, marker.warc)
    with suppress(StorageError):  # there is no marker, or it cannot be parsed
        body = root.read(path)
        old = parse_collected(body, path=path)
        if replace(old, attempt=marker.attempt, collected_at=marker.collected_at) == marker:
            return body
    return None


def _stored_folders(root: ObjectStore, day: date, warc_name: str) -> list[str]:
    """Return the folders that may hold files of this WARC from an earlier attempt."""
    own = f"/filename={quote(warc_name, safe='')}"
    found = {info.path.rpartition("/")[0] for info in root.list(raw_news_day_prefix(day))}
    side = (captures_path(day, warc_name), feed_candidates_path(day, warc_name))
    return [
        *sorted(folder for folder in found if folder.endswith(own)),
        *(path.rpartition("/")[0] for path in side),
    ]


def _read_day(task: CollectTask, source: ObjectStore) -> date:
    """Return the day in the WARC's name, or else that of its first record."""
    if day := warc_day(task.warc_name):
        return day
    with source.stream(task.path) as stream:
        if day := first_record_day(stream):
            return day
    raise InputError(
        f"WARC {task.warc_name!r} has no day: expected a timestamp in its name or a WARC-Date in "
        "its first record",
        thing=task.warc_name,
    )
