"""Collect one WARC in a worker process: read its records, write the pages, publish the files.

Files are built in a scratch folder and published under names that follow from the WARC alone, the
marker last. A second attempt therefore replaces the first, and a reader that goes by the markers
never sees a part. The pool kills a worker that is silent for too long (`pool.py`).
"""

import gc
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from news_platform.ccnews.captures import SNIFFED_BYTES, capture_row, iso_639_3
from news_platform.ccnews.gzip_members import ByteSource
from news_platform.ccnews.page import CrawledPage, parse_head, read_page
from news_platform.ccnews.pool import (
    EXTRACTOR_VERSION,
    INDEX_ONLY,
    CollectTask,
    ProgressReporter,
    StoreAddress,
)
from news_platform.ccnews.warc import (
    BrokenWarc,
    DroppedWarcRecord,
    WarcResponse,
    first_record_day,
    iter_responses,
)
from news_platform.ccnews.writer import WarcWriter, WrittenWarc
from news_platform.datasets.captures import CAPTURES, MAX_OFFSET, crawl_fields, run_key
from news_platform.datasets.collected import (
    Collected,
    collected_path,
    dump_collected,
)
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.raw_news import (
    DROPPED_RESPONSES,
    FEED_CANDIDATES,
    PAGE_METADATA,
    RAW_NEWS,
    last_day,
    raw_news_day_prefix,
    raw_news_path,
    side_path,
    warc_day,
)
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import InputError, StorageError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary
from news_platform.storage.commit.collected import (
    delete_other_markers,
    find_collected,
    list_collected,
    retract_collected,
)
from news_platform.storage.commit.markers import delete_marker, publish, write_marker
from news_platform.storage.objects.store import ByteStream, ObjectStore, open_store
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.takedowns.requests import mark_late

SIDE_TABLES = (CAPTURES, PAGE_METADATA, FEED_CANDIDATES, DROPPED_RESPONSES)
_REST_BYTES = 1 << 20
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
    with (
        TemporaryDirectory(dir=task.scratch) as scratch,
        progress.heartbeat(task.progress_path),
    ):
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


class DigestingStream:
    """A stream that hashes what is read from it.

    SHA-256 takes about a second per gigabyte, and half an hour of work per core follows from each.
    """

    def __init__(self, stream: ByteSource) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, none at the end."""
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        """Read what is left and return the SHA-256 of the whole stream."""
        while self.read(_REST_BYTES):
            pass
        return self._digest.hexdigest()


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
    with _unchanged_stream(task, source) as stream:
        digesting = DigestingStream(stream)
        takedowns = Takedowns.read(root, now=task.now)
        written, dropped, truncated_at = write_pages(
            progress.wrap(digesting),
            task,
            shared=crawl_fields(day, source.uri(task.path)),
            scratch=scratch,
            progress=progress,
            takedowns=takedowns,
        )
        digest = digesting.hexdigest()
        marker = Collected(
            warc=task.warc_name,
            day=day,
            source=source.uri(task.path),
            # The ETag of a local file names its inode, which differs in every copy.
            source_etag=digest if source.local_folder else stream.etag or "",
            source_bytes=stream.size_bytes,
            rows=written.rows,
            bytes=written.bytes,
            languages={language: part.rows for language, part in sorted(written.news.items())},
            dropped=dict(sorted(dropped.items())),
            captures=written.side[CAPTURES].rows,
            feed_candidates=_rows(written, FEED_CANDIDATES),
            extractor_version=EXTRACTOR_VERSION,
            attempt=task.attempt,
            collected_at=task.now.isoformat(),
            source_digest=digest,
            options=task.options.recorded(),
            truncated_at=truncated_at,
            dropped_responses=_rows(written, DROPPED_RESPONSES),
        )
    publish_warc(root, marker, written)
    _obey_later(root, task, takedowns, day)
    return marker


def _obey_later(root: ObjectStore, task: CollectTask, known: Takedowns, day: date) -> None:
    """Let what was taken down since `known` was read be removed, by whoever is first."""
    # Half an hour may have passed.
    if Takedowns.read(root, now=task.now).fingerprint != known.fingerprint:
        for table in (RAW_NEWS, *SIDE_TABLES):
            mark_late(root, table.name, [day.isoformat()])


def _rows(written: WrittenWarc, table: Dataset) -> int:
    return written.side[table].rows if table in written.side else 0


def _require_offsets(task: CollectTask, stream: ByteStream) -> None:
    if stream.size_bytes > MAX_OFFSET:
        raise InputError(
            f"WARC {task.warc_name!r} has {stream.size_bytes} bytes: split it, because "
            f"the URL index has 32-bit offsets: expected at most {MAX_OFFSET}",
            thing=task.warc_name,
        )


@contextmanager
def _unchanged_stream(task: CollectTask, source: ObjectStore) -> Iterator[ByteStream]:
    """Open the WARC; raise StorageError if it is replaced, cut or deleted while it is read.

    A file overwritten in place ends without an error, but its rows belong to two versions.
    """
    # A truncated download ends like a complete one in obstore and in fastwarc; the size reveals it.
    with source.stream(task.path, expected_size=task.size_bytes) as stream:
        _require_offsets(task, stream)
        try:
            yield stream
        except InputError:
            # A mix of two versions looks damaged, which no retry would cure.
            _require_version(source, task.path, stream)
            raise
        _require_version(source, task.path, stream)


def _require_version(source: ObjectStore, path: str, stream: ByteStream) -> None:
    found = source.find(path)
    # A web server may send no tag; then only the size can be compared.
    tags = {stream.etag, found.etag if found else ""} - {""}
    if found is None or found.size_bytes != stream.size_bytes or len(tags) > 1:
        raise StorageError(
            f"WARC {source.uri(path)!r} changed while it was read: collect it again", thing=path
        )


def write_pages(
    stream: ByteSource,
    task: CollectTask,
    *,
    shared: Mapping[str, str],
    scratch: Path,
    progress: ProgressReporter,
    takedowns: Takedowns = NO_TAKEDOWNS,
) -> tuple[WrittenWarc, Mapping[str, int], int | None]:
    """Write the pages and captures of a WARC, or its captures alone, to the scratch folder.

    Also return the dropped records by reason, and the byte at which an accepted broken file ends.
    """
    writer = WarcWriter(scratch, warc_name=task.warc_name, takedowns=takedowns)
    dropped: Counter[str] = Counter()
    index_only = task.options.index_only
    limit = SNIFFED_BYTES if index_only else task.options.max_page_bytes
    truncated_at = None
    try:
        for item in iter_responses(stream, warc_name=task.warc_name, max_body_bytes=limit):
            # Not written to dropped_responses, which would keep the address.
            if takedowns and takedowns.covers_url(_uri(item)):
                dropped[TAKEN_DOWN] += 1
                continue
            found = _write_page(item, task, writer=writer, progress=progress)
            if isinstance(found, DroppedWarcRecord):
                dropped[found.reason] += 1
                writer.drop(found)
            # Outside the page's boundary: full buffers hold the pages of others, too.
            writer.flush_full()
    except BrokenWarc as error:
        if not task.accepts_broken:
            raise
        truncated_at = error.offset
    progress.begin_wait()
    return writer.close(shared, index_only=index_only), dropped, truncated_at


def _uri(item: WarcResponse | DroppedWarcRecord) -> str:
    return item.uri if isinstance(item, DroppedWarcRecord) else item.record.uri


def _write_page(
    item: WarcResponse | DroppedWarcRecord,
    task: CollectTask,
    *,
    writer: WarcWriter,
    progress: ProgressReporter,
) -> CrawledPage | DroppedWarcRecord | None:
    """Write the capture of a response and its page.

    Return the page or why there is none; None if only captures are wanted.
    """
    if isinstance(item, DroppedWarcRecord):
        return item
    record, capture = item.record, None
    page: CrawledPage | DroppedWarcRecord | None = None
    with boundary("page", record.uri) as unit:
        http = parse_head(item.head)
        capture = capture_row(item, http) if record.uri else None
        if record.number in task.skip:
            page = DroppedWarcRecord(task.skip[record.number], record.offset, record.uri)
        elif not task.options.index_only:
            progress.begin_record(item, writer.rows)
            page = read_page(item, task.options, http)
        elif capture is None:
            page = DroppedWarcRecord("no_uri", record.offset)
        if isinstance(page, CrawledPage) and capture:
            capture = {**capture, "content_languages": iso_639_3(page.langs)}
            # Last: a page that raises an error is written nowhere.
            writer.write(page)
    # A record that the extractor cannot read is in the index all the same.
    if capture:
        writer.captures.add(capture)
    return DroppedWarcRecord(INTERNAL_ERROR, record.offset, record.uri) if unit.cause else page


def _read_day(task: CollectTask, source: ObjectStore) -> date:
    """Return the day in the WARC's name, or else that of its first record."""
    day = warc_day(task.warc_name)
    if day is None:
        with source.stream(task.path) as stream:
            day = first_record_day(stream, warc_name=task.warc_name)
    if day and day > last_day(task.now.date()):
        raise InputError(
            f"WARC {task.warc_name!r} is of {day}, which has not come: correct its name or the "
            "clock of this machine",
            thing=task.warc_name,
        )
    if day:
        return day
    raise InputError(
        f"WARC {task.warc_name!r} has no day: expected a timestamp in its name or a WARC-Date in "
        "its first record",
        thing=task.warc_name,
    )


def publish_warc(root: ObjectStore, marker: Collected, written: WrittenWarc) -> None:
    """Make the stored files of the WARC equal to those written, then write its marker.

    A marker that would say the same is kept, so that nothing downstream is built again.
    """
    day, warc_name = marker.day, marker.warc
    files = {
        raw_news_path(day, language, filename=warc_name): part.path
        for language, part in written.news.items()
    }
    files |= {side_path(table, day, warc_name): it.path for table, it in written.side.items()}
    if INDEX_ONLY in marker.options:
        _publish_run(root, marker, files)
        return
    old = find_collected(root, day=day, warc=warc_name)
    if old and replace(old, attempt=marker.attempt, collected_at=marker.collected_at) == marker:
        marker = old
    # Another version or other options may have written other languages: those files are strays.
    publish(
        root,
        files,
        marker=collected_path(day, warc_name, marker.fingerprint),
        marker_body=dump_collected(marker),
        replaces=_stored_folders(root, day, warc_name),
        retract=partial(retract_collected, root, day=day, warc=warc_name),
    )
    delete_other_markers(root, marker)
    delete_marker(root, CAPTURES.name, run_key(day, warc_name))
    if warc_day(warc_name) is None:
        _remove_from_other_days(root, marker)


def _publish_run(root: ObjectStore, marker: Collected, files: Mapping[str, Path]) -> None:
    """Replace the run of a WARC by one that was written alone, then write the marker of the run."""
    for path, file in files.items():
        root.put(path, file)
    report = json.loads(dump_collected(marker))
    key = run_key(marker.day, marker.warc)
    write_marker(root, CAPTURES.name, key, inputs=marker.fingerprint, report=report)


def _remove_from_other_days(root: ObjectStore, marker: Collected) -> None:
    """Remove what an earlier file of this name gave: without a day in it, its records decided."""
    for unit in list_collected(root):
        day = date.fromisoformat(unit.day)
        if unit.warc != marker.warc or day == marker.day:
            continue
        retract_collected(root, day=day, warc=unit.warc)
        folders = _stored_folders(root, day, unit.warc)
        root.delete([info.path for folder in folders for info in root.list(folder)])


def _stored_folders(root: ObjectStore, day: date, warc_name: str) -> list[str]:
    """Return the folders that may hold files of this WARC from an earlier attempt."""
    own = f"/filename={quote(warc_name, safe='')}"
    found = {info.path.rpartition("/")[0] for info in root.list(raw_news_day_prefix(day))}
    side = [side_path(table, day, warc_name) for table in SIDE_TABLES]
    return [
        *sorted(folder for folder in found if folder.endswith(own)),
        *(path.rpartition("/")[0] for path in side),
    ]
