"""Targets of the workers in these tests: good, slow, memory-hungry and deadly ones."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from news_platform.isolation.worker import report


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


def act(order: tuple[Any, ...]) -> Any:
    """Execute the order: its first item is the name, the rest are arguments."""
    return _ACTIONS[order[0]](*order[1:])


def _fill(size_bytes: int) -> int:
    kept: list[bytes] = []
    while len(kept) * 5_000_000 < size_bytes:
        kept.append(b"x" * 5_000_000)
        time.sleep(0.001)
    return len(kept)


def _gossip(megabytes: int) -> None:
    kept: list[bytes] = []
    for _ in range(megabytes):
        kept.append(b"x" * 1_000_000)
        for _ in range(10):
            report("fatter")


def _leak(size_bytes: int) -> int:
    _LEAKED.append(b"x" * size_bytes)
    return os.getpid()


def _report_then(values: list[Any], *order: Any) -> Any:
    for value in values:
        report(value)
    return act(order)


def _report_pid(seconds: float) -> None:
    report(os.getpid())
    time.sleep(seconds)


def _steps(count: int, seconds: float) -> int:
    for step in range(count):
        time.sleep(seconds)
        report(step)
    return count


def _chatter(text: str) -> str:
    print(text, flush=True)  # noqa: T201 - printing is what this target is for
    os.write(1, text.encode())
    sys.stdout.write("no newline")
    return sys.stdin.read()


def _raise(error: BaseException) -> None:
    raise error


def _spawn() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


def _spawn_and_hang() -> None:
    report(_spawn())
    time.sleep(600)


_LEAKED: list[bytes] = []
_ACTIONS: dict[str, Callable[..., Any]] = {
    "double": double,
    "echo": lambda value: value,
    "size": len,
    "environment": lambda: (os.getpid(), dict(os.environ)),
    "pid": lambda *_: os.getpid(),
    "bytes": lambda size: bytes(size),
    "sleep": time.sleep,
    "busy": lambda: all(iter(lambda: True, False)),
    "exit": os._exit,
    "segfault": lambda *_: ctypes.string_at(0),
    "raise": _raise,
    "fill": _fill,
    "gossip": _gossip,
    "absurd": lambda: len(bytearray(1 << 45)),
    "leak": _leak,
    "report": _report_then,
    "report pid": _report_pid,
    "steps": _steps,
    "chatter": _chatter,
    "unpicklable": lambda *_: lambda: None,
    "hang children": _spawn_and_hang,
}
