"""The worker process's side of collecting: open the stores, collect one WARC, say where it is.

The pool kills a worker that is silent for too long. While a page is worked on nothing is said after
its number, so a page that hangs is found; while bytes are awaited or published a heartbeat speaks,
so a slow network is never taken for a bad page.
"""

import gc
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from news_platform.ccnews.gzip_members import ByteSource
from news_platform.ccnews.page import PageOptions
from news_platform.ccnews.pipeline import Attempt, collect_warc
from news_platform.ccnews.warc import WarcResponse
from news_platform.datasets.collected import Collected
from news_platform.errors import StorageError
from news_platform.isolation.worker import report
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
