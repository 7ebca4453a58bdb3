"""Collect many WARCs at once in killable worker processes; a bad page costs itself, a bad WARC too.

A worker that hangs or dies over a record is replaced and its WARC starts again; a record that ends
two tries is put on the skip list. That is rare, so isolation costs next to nothing; the WARC's
marker counts it.
"""

import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from news_platform.ccnews.worker import CollectTask, WarcProgress
from news_platform.datasets.collected import Collected
from news_platform.isolation.pool import Done, Lost, Pool

_TARGET = "news_platform.ccnews.worker:collect_task"
_SCRATCH_NAME = "news-platform-ccnews-"
_TRIES_A_RECORD = 2
# More bad pages than this in one file mean that something else is wrong.
_MOST_SUSPECTS = 20
_MOST_RESTARTS = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrewOptions:
    """How many workers, how long one page may take, how much memory a worker may hold."""

    workers: int = 1
    page_seconds: float = 30.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class CollectFailure:
    """A WARC that was not collected, and why."""

    warc: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectReport:
    """What became of the WARCs, in the order given."""

    collected: tuple[Collected, ...]
    failed: tuple[CollectFailure, ...]


OnProgress = Callable[[CollectTask, WarcProgress], None]
OnDone = Callable[[Collected | CollectFailure], None]


def collect_warcs(
    tasks: Sequence[CollectTask],
    *,
    options: CrewOptions,
    on_progress: OnProgress = lambda task, progress: None,
    on_done: OnDone = lambda outcome: None,
) -> CollectReport:
    """Collect every WARC; one that fails does not keep the others. The callbacks run in threads."""
    workers = min(options.workers, len(tasks))
    with (
        Pool(
            _TARGET,
            workers=workers,
            deadline_seconds=options.page_seconds,
            memory_bytes=options.memory_bytes,
            on_report=on_progress,
        ) as pool,
        ThreadPoolExecutor(workers, thread_name_prefix="ccnews") as threads,
    ):
        outcomes = list(threads.map(partial(_collect, pool, on_done), tasks))
    return CollectReport(
        tuple(outcome for outcome in outcomes if isinstance(outcome, Collected)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, CollectFailure)),
    )


def _collect(pool: Pool, on_done: OnDone, task: CollectTask) -> Collected | CollectFailure:
    outcome = _collect_restarting(pool, task)
    if isinstance(outcome, CollectFailure):
        _log.info("%s failed: %s", outcome.warc, outcome.reason)
    else:
        _log.info("%s: %s rows, %s bytes", outcome.warc, outcome.rows, outcome.bytes)
    on_done(outcome)
    return outcome


def _collect_restarting(pool: Pool, task: CollectTask) -> Collected | CollectFailure:
    """Run the task until it is done; a record that ended two tries is left out of the next.

    Two, since a worker may also be killed from outside, over a record that is innocent.
    """
    ended_by: Counter[int | None] = Counter()
    while True:
        outcome = pool.submit(task).result()
        if isinstance(outcome, Done):
            collected: Collected = outcome.value
            return collected
        record = _record_in_hand(outcome)
        ended_by[record] += 1
        if record is not None and ended_by[record] == _TRIES_A_RECORD:
            task = replace(task, skip={**task.skip, record: f"extractor_{outcome.reason}"})
        is_hopeless = ended_by[None] > _MOST_RESTARTS or len(ended_by) > _MOST_SUSPECTS
        if outcome.reason == "error" or is_hopeless:
            return CollectFailure(task.name, _told(outcome))
        _log.warning("%s: %s at record %s; starting again", task.name, outcome.reason, record)


def _record_in_hand(lost: Lost) -> int | None:
    progress = lost.last_report
    return progress.number if isinstance(progress, WarcProgress) else None


def _told(lost: Lost) -> str:
    """Return the message without the name of our own error type."""
    kind, _, message = lost.detail.partition(": ")
    return message if lost.reason == "error" and kind.endswith("Error") else lost.detail


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a temporary folder; those that killed processes left behind are swept first."""
    for folder in Path(gettempdir()).glob(f"{_SCRATCH_NAME}*"):
        if not _is_alive(folder.name.removeprefix(_SCRATCH_NAME).partition("-")[0]):
            shutil.rmtree(folder, ignore_errors=True)
    with TemporaryDirectory(prefix=f"{_SCRATCH_NAME}{os.getpid()}-") as fresh:
        yield Path(fresh)


def _is_alive(pid: str) -> bool:
    with suppress(ValueError, ProcessLookupError):
        try:
            os.kill(int(pid), 0)
        except PermissionError:
            return True
        return True
    return False
