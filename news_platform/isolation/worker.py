"""The worker's side: import one function, call it for each item, send the result, exit at EOF.

The process is started by `process.py` and imports only this module and the target, to start fast.
Requests come by its stdin, answers go to its original stdout, as the frames defined here.
"""

import ctypes
import importlib
import json
import os
import pickle
import resource
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, BinaryIO

from news_platform.logs import bind_process, configure_logging

# The variables that Python and native libraries need: locale, time zone, folders, certificates,
# Python's own switches, limits. None of them holds a secret; a proxy's URL may, and is not here.
_ALLOWED = """
PATH HOME USER LOGNAME LANG LANGUAGE LC_* TZ TZDIR TMPDIR XDG_CACHE_HOME SSL_CERT_FILE SSL_CERT_DIR
PYTHON* VIRTUAL_ENV LD_LIBRARY_PATH LD_PRELOAD MALLOC_* OMP_NUM_THREADS POLARS_MAX_THREADS
RAYON_NUM_THREADS TOKIO_WORKER_THREADS
"""
_PR_SET_PDEATHSIG = 1
_PICKLE_PROTOCOL = 5
_SHORTEST_SECRET = 16

# Messages between the pool and a worker are frames: a kind byte, a length and the payload.
HEADER = struct.Struct("<cQ")
START = b"S"  # environment variables and log options, sent once before the target's import
CONTEXT = b"C"  # what the log lines of the following items are about
REQUEST = b"Q"  # an item for the target
READY = b"R"  # the target is imported; items may be sent
UNUSABLE = b"U"  # the target cannot be imported
REPORT = b"P"  # a progress value from the target
DONE = b"D"  # the value the target returned
ERROR = b"E"  # the exception the target raised, as text
MEMORY = b"M"  # an allocation failed; the worker exits


def worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every worker starts with.

    Anything else, such as a key or password, must not be found there by a page that takes a worker
    over, nor be readable in /proc. A pool may send a worker the few others it needs by its pipe.
    """
    return named_variables(environ, _ALLOWED.split())


def named_variables(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Return the variables whose names match one of the patterns, such as `LC_*`."""
    wanted = tuple(patterns)
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(name, pattern) for pattern in wanted)
    }


def forbid_core_dumps() -> None:
    """Let no crash of this process, or of one that it starts, leave a core file.

    A core file holds the environment and the settings, and with them every secret.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # The hard limit stays: whoever debugs a process may raise the soft one again.
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def frame_parts(kind: bytes, payload: bytes) -> list[memoryview]:
    """Return what one frame consists of."""
    return [memoryview(HEADER.pack(kind, len(payload))), memoryview(payload)]


def unwritten(parts: list[memoryview], count: int) -> list[memoryview]:
    """Return the rest of the parts after `count` bytes; a pipe may accept only a part."""
    left = []
    for part in parts:
        if count < len(part):
            left.append(part[count:])
        count = max(0, count - len(part))
    return left


class FrameBuffer:
    """Collect bytes as they arrive and return them as whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Append the next bytes of the stream."""
        self._bytes += data

    def pop(self) -> tuple[bytes, bytes] | None:
        """Return the next whole frame as (kind, payload), or None if it is incomplete."""
        if len(self._bytes) < HEADER.size:
            return None
        kind, length = HEADER.unpack_from(self._bytes)
        end = HEADER.size + length
        if len(self._bytes) < end:
            return None
        with memoryview(self._bytes) as view:
            payload = bytes(view[HEADER.size : end])
        del self._bytes[:end]
        return kind, payload


class _Channel:
    """The pipe for answers, with a lock because the target may report from several threads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def send(self, kind: bytes, payload: bytes) -> None:
        parts = frame_parts(kind, payload)
        with self._lock:
            while parts:
                parts = unwritten(parts, os.writev(self._fd, parts))


_channel: _Channel | None = None


def report(value: object) -> None:
    """Send a progress value to the pool and restart the deadline; outside a worker, do nothing."""
    if _channel is not None:
        _channel.send(REPORT, pickle.dumps(value, _PICKLE_PROTOCOL))


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
        channel.send(UNUSABLE, _described(error))
        return
    _channel = channel
    channel.send(READY, b"")
    while (frame := _read_frame(requests)) is not None:
        if frame[0] == CONTEXT:
            bind_process(**json.loads(frame[1]))
        else:
            _answer(function, frame[1], channel)


def _start(given: dict[str, Any]) -> None:
    """Set the variables of the target, and write log lines as the process of the pool does."""
    os.environ.update(given["variables"])
    # Their values must not be in a line; shorter ones are names of regions and the like.
    secrets = [value for value in given["variables"].values() if len(value) >= _SHORTEST_SECRET]
    configure_logging(*given["logs"], secrets=secrets)


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
        channel.send(MEMORY, _described(error))
        os._exit(1)
    except BaseException as error:  # noqa: BLE001 - native panics are not Exceptions
        channel.send(ERROR, _described(error))
    else:
        channel.send(DONE, payload)


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
    header = requests.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, length = HEADER.unpack(header)
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
