"""The pool's side of one worker process: start it, send it items, watch it and kill it."""

import contextlib
import fcntl
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import psutil

from news_platform.errors import ConfigError
from news_platform.isolation.worker import (
    CONTEXT,
    DONE,
    MEMORY,
    READY,
    REPORT,
    REQUEST,
    START,
    FrameBuffer,
    frame_parts,
    unwritten,
    worker_environment,
)
from news_platform.logs import bound_facts, options_in_force

Reason = Literal["timeout", "memory", "crash", "error"]

# The child gets our import path, so that it finds the same modules, installed or not.
_BOOT = (
    "import sys, json; target, parent, limit, path = sys.argv[1:]; sys.path[:] = json.loads(path); "
    "from news_platform.isolation.worker import main; "
    "main(target, parent_pid=int(parent), data_limit_bytes=int(limit) or None)"
)
# Importing native extractors takes seconds, and more on a busy machine.
_START_SECONDS = 120.0
# How often the resident size is read while an item runs. A process can fill about 2 GB per second;
# the next look comes when it may have filled half of the room that is left to its limit. Far from
# the limit this spares most looks, which otherwise take a hundredth of a core for each worker.
_WATCH_SECONDS = 0.02
_LONGEST_WATCH_SECONDS = 0.25
_FILLED_BYTES_PER_SECOND = 2_000_000_000
# Added to the cap on resident memory as a hard limit, which stops one huge allocation before a page
# of it is touched. Not tighter, because native libraries map far more memory than they use.
_DATA_SLACK_BYTES = 1 << 30
_PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Done:
    """The target returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class Lost:
    """The item has no result; other items are not affected.

    After `timeout`, `memory` and `crash` the worker process is replaced. `error` is an exception in
    the target, with `detail` as `Type: message`. `last_report` is the last value that the target
    reported, or None.
    """

    reason: Reason
    detail: str
    last_report: Any = None


Outcome = Done | Lost


class WorkerFailed(Exception):
    """The worker failed and has been killed."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class WorkerProcess:
    """One worker and its two pipes; used by one thread at a time, except for `kill`.

    `variables` are set in the worker before its target is imported; /proc does not show them.
    """

    def __init__(
        self,
        target: str,
        *,
        deadline_seconds: float,
        memory_bytes: int | None,
        variables: Mapping[str, str],
    ) -> None:
        self._target = target
        self._variables = variables
        self._deadline_seconds = deadline_seconds
        self._memory_bytes = memory_bytes
        limit = memory_bytes + _DATA_SLACK_BYTES if memory_bytes else 0
        arguments = [target, str(os.getpid()), str(limit), json.dumps(sys.path)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=worker_environment(os.environ),
            bufsize=0,
            process_group=0,  # Ctrl-C reaches only us, and a kill also the target's children
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._watched = psutil.Process(self.pid)
        self._requests = self._process.stdin.fileno()
        self._answers = self._process.stdout.fileno()
        os.set_blocking(self._requests, False)
        for pipe in (self._requests, self._answers):
            _widen(pipe)
        self._buffer = FrameBuffer()
        self._readable = select.poll()
        self._readable.register(self._answers, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(self._requests, select.POLLOUT)
        self._context: Mapping[str, str] = {}
        self._ready_bytes = 0  # resident size before the first item
        self._resident_bytes = 0
        self._watched_at = 0.0
        self._watch_seconds = _WATCH_SECONDS
        self._renew_deadline(_START_SECONDS)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    def await_ready(self) -> None:
        """Wait until the target is imported; raise ConfigError if it cannot be."""
        start = {"variables": dict(self._variables), "logs": options_in_force()}
        self._send(START, json.dumps(start).encode())
        kind, payload = self._next_frame()
        if kind != READY:
            raise ConfigError(
                f"cannot load {self._target!r}: {payload.decode()}", thing=self._target
            )
        self._watch_memory()
        self._ready_bytes = self._resident_bytes

    def is_fit(self) -> bool:
        """Return whether the worker is alive and has used at most half its room for growth.

        A worker that keeps memory of earlier items would let the next item exceed the limit.
        """
        if self._process.poll() is not None:
            return False
        if self._memory_bytes is None:
            return True
        room = self._memory_bytes - self._ready_bytes
        return 2 * (self._resident_bytes - self._ready_bytes) <= room

    def run(
        self, request: bytes, *, on_report: Callable[[Any], None] | None
    ) -> tuple[Outcome, bool]:
        """Return the outcome of the pickled item, and whether this worker can take another."""
        last_report = b""
        self._renew_deadline(self._deadline_seconds)
        try:
            self._send_context(bound_facts())
            self._send(REQUEST, request)
            while (frame := self._next_frame())[0] == REPORT:
                last_report = frame[1]
                if on_report is not None:
                    on_report(pickle.loads(last_report))
                self._renew_deadline(self._deadline_seconds)
        except WorkerFailed as failed:
            return Lost(failed.reason, failed.detail, _loaded_report(last_report)), False
        return _outcome(*frame, last_report=last_report), frame[0] != MEMORY

    def kill(self) -> None:
        """Kill the worker and the processes it started; safe from any thread."""
        if self._process.returncode is None:  # not yet reaped, so the process id is not reused
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def discard(self) -> None:
        """Kill the worker, reap it and close its pipes."""
        self.kill()
        with self._process:
            pass  # closes both pipes, then waits

    def _renew_deadline(self, seconds: float) -> None:
        self._allowed_seconds = seconds
        self._deadline = time.monotonic() + seconds

    def _send_context(self, facts: Mapping[str, str]) -> None:
        if facts != self._context:
            self._send(CONTEXT, json.dumps(facts).encode())
            self._context = facts

    def _send(self, kind: bytes, payload: bytes) -> None:
        parts = frame_parts(kind, payload)
        while parts:
            try:
                parts = unwritten(parts, os.writev(self._requests, parts))
            except BlockingIOError:
                self._wait(self._writable)
            except BrokenPipeError as error:
                raise self._gone() from error

    def _next_frame(self) -> tuple[bytes, bytes]:
        while (frame := self._buffer.pop()) is None:
            if not self._wait(self._readable):
                continue
            data = os.read(self._answers, _PIPE_BYTES)
            if not data:
                raise self._gone()
            self._buffer.feed(data)
        return frame

    def _wait(self, poll: select.poll) -> bool:
        """Wait briefly and return whether the pipe is ready; kill a worker over its limits."""
        now = time.monotonic()
        if now >= self._deadline:
            raise self._ended("timeout", f"silent for {self._allowed_seconds:g} s")
        if self._memory_bytes is None:
            return bool(poll.poll((self._deadline - now) * 1000))
        if now >= self._watched_at + self._watch_seconds:  # also while reports keep arriving
            self._watched_at = now
            self._watch_memory()
        return bool(poll.poll(min(self._deadline - now, self._watch_seconds) * 1000))

    def _watch_memory(self) -> None:
        if self._memory_bytes is None:
            return
        with contextlib.suppress(psutil.Error):  # the process is gone; the closed pipe shows it
            self._resident_bytes = self._watched.memory_info().rss
        if self._resident_bytes > self._memory_bytes:
            held = f"held {self._resident_bytes:,} of {self._memory_bytes:,} bytes"
            raise self._ended("memory", held)
        self._watch_seconds = _watch_seconds(self._memory_bytes - self._resident_bytes)

    def _ended(self, reason: Reason, detail: str) -> WorkerFailed:
        self.kill()
        return WorkerFailed(reason, detail)

    def _gone(self) -> WorkerFailed:
        """Return how the process ended; its pipe is closed, so its exit status is final."""
        self.kill()
        return WorkerFailed("crash", _ending(self._process.wait()))


def _watch_seconds(room_bytes: int) -> float:
    """Return how long a process with this room to its limit need not be looked at."""
    half_filled = room_bytes / 2 / _FILLED_BYTES_PER_SECOND
    return min(max(half_filled, _WATCH_SECONDS), _LONGEST_WATCH_SECONDS)


def _widen(pipe: int) -> None:
    """Enlarge the pipe, so that a whole page passes with few wake-ups, where supported."""
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _ending(status: int) -> str:
    """Describe an exit status; a negative one is the signal that killed the process."""
    if status >= 0:
        return f"exit {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # real-time signals have no name
        return f"killed by signal {-status}"


def _loaded_report(payload: bytes) -> Any:
    return pickle.loads(payload) if payload else None


def _outcome(kind: bytes, payload: bytes, *, last_report: bytes) -> Outcome:
    if kind == DONE:
        return Done(pickle.loads(payload))
    reason: Reason = "memory" if kind == MEMORY else "error"
    return Lost(reason, payload.decode(), _loaded_report(last_report))
