"""The worker's side: import one function, call it for each item, send the result, exit at EOF.

The process is started by `process.py`. It imports only this module, its two neighbours and the
target, to start fast.
"""

import ctypes
import importlib
import json
import os
import pickle
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from news_platform.isolation import frames
from news_platform.isolation.environment import forbid_core_dumps
from news_platform.logs import LogOptions, bind_process, configure_logging

_PR_SET_PDEATHSIG = 1
_PICKLE_PROTOCOL = 5
_SHORTEST_SECRET = 16


class _Channel:
    """The pipe for answers, with a lock because the target may report from several threads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def send(self, kind: bytes, payload: bytes) -> None:
        with self._lock:
            frames.write_frame(self._fd, kind, payload)


_channel: _Channel | None = None


def report(value: object) -> None:
    """Send a progress value to the pool and restart the deadline; outside a worker, do nothing."""
    if _channel is not None:
        _channel.send(frames.REPORT, pickle.dumps(value, _PICKLE_PROTOCOL))


def main(target: str, *, parent_pid: int, data_limit_bytes: int | None) -> None:
    """Serve items until the parent closes the pipe or dies."""
    global _channel
    requests, channel = _take_pipes()
    _die_with(parent_pid)
    _limit(data_limit_bytes)
    start = _read_frame(requests)
    if start is None:
        return
    _start(json.loads(start[1]))
    try:
        function = load_target(target)
    except BaseException as error:  # noqa: BLE001 - an import may raise anything; the pool reports it
        channel.send(frames.UNUSABLE, _described(error))
        return
    _channel = channel
    channel.send(frames.READY, b"")
    while (frame := _read_frame(requests)) is not None:
        if frame[0] == frames.CONTEXT:
            bind_process(**json.loads(frame[1]))
        else:
            _answer(function, frame[1], channel)


def _start(given: dict[str, dict[str, str]]) -> None:
    """Set the variables of the target, and write log lines as the process of the pool does."""
    os.environ.update(given["variables"])
    # Their values must not be in a line; shorter ones are names of regions and the like.
    secrets = [value for value in given["variables"].values() if len(value) >= _SHORTEST_SECRET]
    configure_logging(LogOptions(**given["logs"]), secrets=secrets)  # type: ignore[arg-type] # the pool sends its own options


def load_target(target: str) -> Callable[[Any], Any]:
    """Import `package.module:function`."""
    module, _, name = target.partition(":")
    function: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return function


def _answer(function: Callable[[Any], Any], request: bytes, channel: _Channel) -> None:
    try:
        payload = pickle.dumps(function(pickle.loads(request)), _PICKLE_PROTOCOL)
    except MemoryError as error:
        # After a failed allocation, this process is not reliable enough for another item.
        channel.send(frames.MEMORY, _described(error))
        os._exit(1)
    except BaseException as error:  # noqa: BLE001 - native panics are not Exceptions
        channel.send(frames.ERROR, _described(error))
    else:
        channel.send(frames.DONE, payload)


def _described(error: BaseException) -> bytes:
    return f"{type(error).__name__}: {error}".encode("utf-8", "replace")


def _take_pipes() -> tuple[BinaryIO, _Channel]:
    """Move the pipes away from 0 and 1, where prints and prompts of the target would go."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, _Channel(answers)


def _read_frame(requests: BinaryIO) -> tuple[bytes, bytes] | None:
    header = requests.read(frames.HEADER.size)
    if len(header) < frames.HEADER.size:
        return None
    kind, length = frames.HEADER.unpack(header)
    payload = requests.read(length)
    return (kind, payload) if len(payload) == length else None


def _limit(data_bytes: int | None) -> None:
    forbid_core_dumps()
    if data_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))


def _die_with(parent_pid: int) -> None:
    """Let Linux kill this process when its parent dies; elsewhere the closed pipe ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent died before the call
        os._exit(1)
