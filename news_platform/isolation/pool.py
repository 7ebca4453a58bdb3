"""Run a function on items in killable processes: a hang, crash or memory hog costs one item.

    with Pool("news_platform.articles.extract:extract", workers=2, deadline_seconds=20) as pool:
        for outcome in pool.map(pages):
            match outcome:
                case Done(article): ...
                case Lost(reason, detail, _): ...

Workers are plain subprocesses, because the children of a Celery worker may not use multiprocessing.
They start when first needed and end with the pool or its process, even if that is killed.
"""

import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self

from news_platform.errors import ConfigError, InputError
from news_platform.isolation.process import Done, Lost, Outcome, WorkerFailed, WorkerProcess
from news_platform.isolation.worker import load_target, named_variables
from news_platform.logs import carried

__all__ = ["Done", "Lost", "Outcome", "Pool"]

# Items that `map` submits ahead per worker: one runs, the others keep the worker busy when items
# differ in duration.
_LOOK_AHEAD = 4
# A worker may be killed from outside while it imports; a target that dies every time is broken.
_START_ATTEMPTS = 3


def run_here(target: str, item: object) -> Outcome:
    """Call the target in this process; an exception becomes the outcome that a worker gives."""
    try:
        return Done(load_target(target)(item))
    except Exception as error:  # noqa: BLE001 - as in a worker, the item's failure is its outcome
        return Lost("error", f"{type(error).__name__}: {error}")


class Pool:
    """Run `target`, a "package.module:function" with one picklable argument, on each item.

    `deadline_seconds` counts from the start of the item or its last report; `memory_bytes` limits
    the worker's resident memory. `on_report(item, value)` is called from a thread of the pool. A
    target that cannot be imported raises ConfigError from the item's future. At most `max_pending`
    items are unfinished at any time. Workers do not inherit our environment: a target that needs
    more of it than `isolation/worker.py` allows gets the `variables` of these names.

    With `workers=0` items run in this process, one at a time and without protection: for debuggers,
    and for tests in which starting processes would take most of the time.
    """

    def __init__(
        self,
        target: str,
        *,
        workers: int,
        deadline_seconds: float,
        memory_bytes: int | None = None,
        on_report: Callable[[Any, Any], None] | None = None,
        max_pending: int = 256,
        variables: Collection[str] = (),
    ) -> None:
        module, _, function = target.partition(":")
        if not (module and function):
            raise InputError(
                f"invalid target {target!r}: expected 'package.module:function'", thing=target
            )
        self._target = target
        self._workers = workers
        self._deadline_seconds = deadline_seconds
        self._memory_bytes = memory_bytes
        self._on_report = on_report
        self._variables = named_variables(os.environ, variables)
        # One thread per worker starts it: Linux kills a child together with the starting thread.
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="isolation")
        self._pending = threading.BoundedSemaphore(max(max_pending, workers, 1))
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._threads.shutdown(wait=True)
        self.close()

    def submit(self, item: object) -> Future[Outcome]:
        """Queue one item; block while `max_pending` others are unfinished.

        In asyncio, await `asyncio.wrap_future(pool.submit(item))` with fewer items at once, since
        blocking would stop the event loop.
        """
        self._pending.acquire()
        try:
            future = self._threads.submit(carried(self._run), item)
        except RuntimeError:  # the pool is closed
            self._pending.release()
            raise
        future.add_done_callback(self._release)
        return future

    def map(self, items: Iterable[object]) -> Iterator[Outcome]:
        """Return the outcomes in the order of the items, reading only a few items ahead."""
        ahead: deque[Future[Outcome]] = deque()
        try:
            for item in items:
                ahead.append(self.submit(item))
                if len(ahead) >= _LOOK_AHEAD * max(1, self._workers):
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()

    def close(self) -> None:
        """Cancel waiting items, kill running ones, and leave no process behind."""
        with self._lock:
            self._is_closed = True
            running = tuple(self._busy)
        for worker in running:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        while self._idle:
            self._idle.pop().discard()

    def _release(self, _: Future[Outcome]) -> None:
        self._pending.release()

    def _run(self, item: object) -> Outcome:
        if not self._workers:
            return run_here(self._target, item)
        request = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        worker = self._idle_worker() or self._started_worker()
        is_reusable = False
        try:
            outcome, is_reusable = worker.run(
                request,
                on_report=partial(self._on_report, item) if self._on_report else None,
            )
            return outcome
        finally:
            self._give_back(worker, is_reusable=is_reusable)

    def _idle_worker(self) -> WorkerProcess | None:
        """Return the worker used last that is still usable, if any; discard the others."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                worker = self._idle.pop()
                self._busy.add(worker)
            if worker.is_fit():
                return worker
            self._give_back(worker, is_reusable=False)

    def _started_worker(self) -> WorkerProcess:
        """Return a new worker that is ready; raise ConfigError if none can start."""
        failure: WorkerFailed | None = None
        for _ in range(_START_ATTEMPTS):
            worker = self._fresh_worker()
            try:
                worker.await_ready()
                return worker
            except WorkerFailed as failed:
                failure = failed
                self._give_back(worker, is_reusable=False)
            except ConfigError:
                self._give_back(worker, is_reusable=False)
                raise
        message = f"cannot start a worker for {self._target!r}: {failure}"
        raise ConfigError(message, thing=self._target) from failure

    def _fresh_worker(self) -> WorkerProcess:
        worker = WorkerProcess(
            self._target,
            deadline_seconds=self._deadline_seconds,
            memory_bytes=self._memory_bytes,
            variables=self._variables,
        )
        with self._lock:
            self._busy.add(worker)
            is_closed = self._is_closed
        if is_closed:  # `close` may not have seen this one
            self._give_back(worker, is_reusable=False)
            raise CancelledError
        return worker

    def _give_back(self, worker: WorkerProcess, *, is_reusable: bool) -> None:
        with self._lock:
            self._busy.discard(worker)
            if is_reusable:
                self._idle.append(worker)
        if not is_reusable:
            worker.discard()
