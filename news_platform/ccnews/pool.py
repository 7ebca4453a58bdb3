"""Collect many WARCs at once in killable worker processes, one task per WARC.

A worker that hangs or dies while it works on a record is replaced and its WARC starts again; a
record that ends two tries is skipped and counted in the WARC's marker. This is rare, so isolation
costs next to nothing.

The number of the record in work is in a small mapped file, where the pool finds it after the worker
hung or died. Messages, which cost both processes time, are sent twice per second at most: while
bytes are awaited or published, and when another record is in work than at the last message. So a
page that hangs is found by its silence, and a slow network is never mistaken for a bad page.
"""

import hashlib
import logging
import mmap
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

from news_platform.ccnews.gzip_members import ByteSource
from news_platform.datasets import versions
from news_platform.datasets.collected import Collected, recipe
from news_platform.errors import StorageError
from news_platform.isolation.pool import Done, Lost, Pool
from news_platform.isolation.worker import report
from news_platform.logs import bound, carried
from news_platform.storage.objects.backends import CREDENTIAL_VARIABLES
from news_platform.storage.objects.store import ObjectStore, StoreOptions
from news_platform.text.readable import bytes_text

# Raise this when the same WARC would give other rows; `ccnews collect --older-than` then collects
# again what an older version wrote. 2: pages are decoded as browsers do, in `html.decode`.
EXTRACTOR_VERSION = versions.CRAWL_EXTRACTOR
# The options that decide which rows a WARC gives.
INDEX_ONLY = "index_only"
_RECORDED = ("max_page_bytes", "hosts", "languages", INDEX_ONLY)


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How WARCs are collected: workers and their limits, what is written, which pages are kept.

    `page_seconds` is the longest time one page may take and `memory_mb` the most memory a worker
    may hold. `max_warcs` caps the WARCs of a day; None collects all. An empty filter keeps every
    page; `hosts` are registrable domains in natural order (`bbc.co.uk`).
    """

    workers: int = 1
    # Real pages take milliseconds: what takes longer hangs.
    page_seconds: float = 30.0
    memory_mb: int = 1024
    max_warcs: int | None = None
    # Equal failures of the same file after which what can be read of it is published; 0: never.
    # Downloads are retried within each: five rule out a passing fault of the network.
    accept_after: int = 5
    max_page_bytes: int = 32 << 20
    hosts: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    # Write captures alone, without extracting or storing pages.
    index_only: bool = False

    def recorded(self) -> Mapping[str, object]:
        """Return what a marker records: the options that decide on rows and are not defaults."""
        defaults = {field.name: field.default for field in fields(self)}
        given = {name: getattr(self, name) for name in _RECORDED}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in given.items()
            if value != defaults[name]
        }

    @property
    def recipe(self) -> str:
        """Return the end of the fingerprint of every WARC collected with these options."""
        return recipe(EXTRACTOR_VERSION, self.recorded())


if TYPE_CHECKING:
    # The pool, which plans, loads no reader of WARCs.
    from news_platform.ccnews.warc import WarcResponse

_HEARTBEAT_SECONDS = 0.5
# The number of the record in work plus one; zero while the worker reads or publishes.
_IN_WORK = Struct("=q")


@dataclass(frozen=True, slots=True)
class WarcProgress:
    """How far a worker is; `number` is the record in work, None while it reads or publishes."""

    number: int | None
    read_bytes: int
    rows: int


def read_record_in_work(path: Path) -> int | None:
    """Return the record that a worker was working on when it ended, or None."""
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return None
    number: int = _IN_WORK.unpack(body)[0] - 1 if len(body) == _IN_WORK.size else -1
    return number if number >= 0 else None


class ProgressReporter:
    """Record the number of the record in work, and send how far the worker is."""

    def __init__(self, send: Callable[[WarcProgress], None] = report) -> None:
        self._send = send
        self._progress = WarcProgress(None, 0, 0)
        self._sent: WarcProgress | None = None
        self._file: mmap.mmap | None = None

    def begin_record(self, response: "WarcResponse", rows: int) -> None:
        """Record that work on this response begins, with the rows written so far."""
        record = response.record
        self._note(record.number + 1)
        self._progress = WarcProgress(record.number, record.offset, rows)

    def begin_wait(self) -> None:
        """Record that no record is in work until the next one begins."""
        if self._progress.number is not None:
            self._note(0)
            self._progress = replace(self._progress, number=None)

    def _note(self, in_work: int) -> None:
        if self._file is not None:
            _IN_WORK.pack_into(self._file, 0, in_work)

    def wrap(self, stream: ByteSource) -> ByteSource:
        """Return the stream with its reads recorded as waits."""
        return _WaitingStream(stream, self)

    @contextmanager
    def heartbeat(self, path: Path) -> Iterator[None]:
        """Record the progress in a file, and send it in the background while there is some."""
        path.write_bytes(_IN_WORK.pack(0))
        done = threading.Event()
        thread = threading.Thread(target=self._beat, args=(done,), daemon=True)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), _IN_WORK.size) as self._file:
            thread.start()
            try:
                yield
            finally:
                done.set()
                thread.join()
                self._file = None
        # Not after an error: the pool then asks which record was in work.
        path.unlink()

    def _beat(self, done: threading.Event) -> None:
        while not done.wait(_HEARTBEAT_SECONDS):
            found = self._progress
            if found.number is None or found != self._sent:
                self._send(found)
            self._sent = found
        # A WARC that took less than a heartbeat is shown with its rows, too.
        self._send(self._progress)


class _WaitingStream:
    def __init__(self, stream: ByteSource, progress: ProgressReporter) -> None:
        self._stream = stream
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        self._progress.begin_wait()
        return self._stream.read(size)


# By name, so that only the worker processes import the extractors.
_TARGET = "news_platform.ccnews.worker:collect_task"
_SCRATCH_NAME = "news-platform-ccnews-"
# Two, because a worker may also be killed from outside while it works on an innocent record.
_TRIES_PER_RECORD = 2
# More bad pages than this in one file mean that something else is wrong.
_MAX_SUSPECTS = 20
# Restarts without a record to blame: the worker ended while it read or published.
_MAX_RESTARTS = 2
# Measured on CC-NEWS of 2025 (about 18 files per day); used where a size is unknown.
_USUAL_WARC_BYTES = 1_070_000_000
# The rows take about as much space as the WARC they come from; a tenth more to be safe.
_OUTPUT_SHARE = 1.1
# A capture takes about 100 bytes, and its record 20,000.
_INDEX_SHARE = 0.02
# Captures alone take a sixth of the time (docs/benchmarks/captures.md).
_INDEX_SPEED = 6
# Compressed bytes that one worker reads; half of what the benchmark shows on a busy core.
_BYTES_PER_SECOND = 5_000_000
# Not StorageError: a listed WARC may be missing, or be overwritten, while it is uploaded. Not
# BrokenWarc either: it is accepted after a number of equal failures.
_FINAL = frozenset({"ConfigError", "InputError"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The URL and options of a store, from which another process opens it."""

    url: str
    options: StoreOptions


@dataclass(frozen=True, slots=True)
class CollectTask:
    """One WARC to collect: `path` in the first of `sources` that can be read.

    `size_bytes` is the expected size, which reveals a silent truncation; None if unknown. `attempt`
    and `now` go into the marker. `skip` maps the number of a record that ended earlier tries to the
    reason that it is counted under. With `accepts_broken` what can be read of a broken file counts.
    """

    path: str
    size_bytes: int | None
    sources: tuple[StoreAddress, ...]
    root: StoreAddress
    scratch: str
    options: CollectOptions
    attempt: str
    now: datetime
    skip: Mapping[int, str]
    accepts_broken: bool = False

    @property
    def warc_name(self) -> str:
        """Return the WARC's file name."""
        return self.path.rpartition("/")[2]

    @property
    def progress_path(self) -> Path:
        """Return the file in which the worker says which record it works on."""
        name = hashlib.sha256(self.path.encode()).hexdigest()[:16]
        return Path(self.scratch) / f"{name}.progress"


@dataclass(frozen=True, slots=True)
class CollectFailure:
    """A WARC that was not collected, and why; `is_broken` if its source itself is at fault.

    A retry does not help if it `is_final`.
    """

    warc: str
    reason: str
    is_broken: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """What collecting some WARCs will need."""

    warcs: int
    download_bytes: int
    output_bytes: int
    scratch_bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.warcs} WARCs, {bytes_text(self.download_bytes)} to read, "
            f"{bytes_text(self.output_bytes)} to write, about {self.seconds / 60:.0f} min"
        )


class CollectListener:
    """Receive the progress of a run; all methods but `start` are called from several threads."""

    def start(self, estimate: Estimate) -> None:
        """Receive the estimate before the first WARC is read."""

    def advance(self, warc_name: str, progress: WarcProgress) -> None:
        """Receive how far a WARC is."""

    def finish(self, outcome: Collected | CollectFailure) -> None:
        """Receive the marker of a WARC, or why it was not collected."""


def estimate(sizes: Sequence[int | None], *, workers: int, index_only: bool = False) -> Estimate:
    """Estimate time and disk space from the sizes of the WARCs; None stands for the usual size."""
    share = _INDEX_SHARE if index_only else _OUTPUT_SHARE
    speed = _BYTES_PER_SECOND * (_INDEX_SPEED if index_only else 1)
    known = [_USUAL_WARC_BYTES if size is None else size for size in sizes]
    total, largest = sum(known), max(known, default=0)
    at_once = max(1, min(workers, len(known)))
    return Estimate(
        warcs=len(known),
        download_bytes=total,
        output_bytes=int(total * share),
        scratch_bytes=int(largest * at_once * share),
        seconds=total / (speed * at_once),
    )


def require_free_space(
    needed: Estimate,
    *,
    scratch: Path,
    root: ObjectStore,
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> None:
    """Raise StorageError when the scratch disk or a local root cannot hold the output."""
    needs = {scratch: needed.scratch_bytes}
    if root.local_folder is not None:
        nearest = (root.local_folder, *root.local_folder.parents)
        folder = next(path for path in nearest if path.exists())
        needs[folder] = needs.get(folder, 0) + needed.output_bytes
    for folder, needed_bytes in needs.items():
        if (free := free_bytes(folder)) < needed_bytes:
            raise StorageError(
                f"not enough space in {str(folder)!r}: {bytes_text(needed_bytes)} needed, "
                f"{bytes_text(free)} free; free some space or limit the WARCs per day",
                thing=str(folder),
            )


def run_tasks(
    tasks: Sequence[CollectTask], *, options: CollectOptions, listener: CollectListener
) -> list[Collected | CollectFailure]:
    """Run every task and return the outcomes in order; one that fails does not stop the others."""
    workers = min(options.workers, len(tasks))
    with (
        Pool(
            _TARGET,
            workers=workers,
            deadline_seconds=options.page_seconds,
            memory_bytes=options.memory_mb << 20,
            variables=_variables(tasks),
            on_report=lambda task, progress: listener.advance(task.warc_name, progress),
        ) as pool,
        ThreadPoolExecutor(max(1, workers), thread_name_prefix="ccnews") as threads,
    ):
        try:
            return list(threads.map(carried(partial(_run_task, pool, listener)), tasks))
        except BaseException:
            # A canceled run ends at once: its threads wait for workers, which are killed first.
            threads.shutdown(wait=False, cancel_futures=True)
            pool.close()
            raise


def _variables(tasks: Sequence[CollectTask]) -> tuple[str, ...]:
    """Return which variables the workers need to open the stores of these tasks themselves."""
    addresses = {place.url for task in tasks for place in (*task.sources, task.root)}
    return CREDENTIAL_VARIABLES if any("://" in url for url in addresses) else ()


def _run_task(
    pool: Pool, listener: CollectListener, task: CollectTask
) -> Collected | CollectFailure:
    with bound(warc=task.warc_name):
        outcome = _run_with_restarts(pool, task)
        if isinstance(outcome, CollectFailure):
            _log.info("%s failed: %s", outcome.warc, outcome.reason)
        else:
            _log.info("%s: %s rows, %s bytes", outcome.warc, outcome.rows, outcome.bytes)
        listener.finish(outcome)
    return outcome


def _run_with_restarts(pool: Pool, task: CollectTask) -> Collected | CollectFailure:
    """Run the task until it is done or hopeless, skipping records that ended two tries."""
    ended_by: Counter[int | None] = Counter()
    while True:
        outcome = pool.submit(task).result()
        if isinstance(outcome, Done):
            collected: Collected = outcome.value
            return collected
        record = read_record_in_work(task.progress_path)
        ended_by[record] += 1
        if record is not None and ended_by[record] == _TRIES_PER_RECORD:
            task = replace(task, skip={**task.skip, record: f"extractor_{outcome.reason}"})
        is_hopeless = ended_by[None] > _MAX_RESTARTS or len(ended_by) > _MAX_SUSPECTS
        # An exception, such as that of a truncated WARC, would occur again.
        if outcome.reason == "error" or is_hopeless:
            is_broken = outcome.detail.startswith("BrokenWarc: ")
            is_final = _is_final(outcome)
            return CollectFailure(task.warc_name, _message(outcome), is_broken, is_final)
        _log.warning("%s: %s at record %s; starting again", task.warc_name, outcome.reason, record)


def _is_final(lost: Lost) -> bool:
    """Return whether the worker's error is one that a retry cannot mend."""
    kind = lost.detail.partition(": ")[0].rpartition(".")[2]
    return lost.reason == "error" and kind in _FINAL


def _message(lost: Lost) -> str:
    """Return the error message without the name of its exception type."""
    kind, _, message = lost.detail.partition(": ")
    is_type = kind.endswith("Error") or kind == "BrokenWarc"
    return message if lost.reason == "error" and is_type else lost.detail


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Provide a temporary folder, after removing those that killed processes left behind."""
    for folder in Path(gettempdir()).glob(f"{_SCRATCH_NAME}*"):
        if not _is_alive(folder.name.removeprefix(_SCRATCH_NAME).partition("-")[0]):
            shutil.rmtree(folder, ignore_errors=True)
    with TemporaryDirectory(prefix=f"{_SCRATCH_NAME}{os.getpid()}-") as fresh:
        yield Path(fresh)


def _is_alive(pid: str) -> bool:
    with suppress(ValueError, ProcessLookupError):
        # Signal 0 only checks the process; a process of another user is alive all the same.
        with suppress(PermissionError):
            os.kill(int(pid), 0)
        return True
    return False
