"""Run fuzzed command lines in a process of their own, and report how each ended.

`python -m news_platform_tests.cli.fuzz_worker BOX SEED COUNT` prints one JSON document per
line. An audit hook, which cannot be removed from a process, records every write outside the root
and refuses every connection and name lookup that would leave this machine.
"""

import dataclasses
import io
import ipaddress
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from news_platform.cli.main import run_command
from news_platform_tests.cli.fuzz import Box, Line, commands, lines

# On an idle machine.
MAX_SECONDS = 5.0
# A line that reads an endless file ends with a MemoryError here, not with the machine's own.
_MAX_BYTES = 6 << 30
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Which arguments of an event are paths that change, and which are the folders they are relative to.
_CHANGES = {
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.link": ((1, 3),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a line ended; `code` is None if it crashed."""

    words: tuple[str, ...]
    must_fail: bool
    code: object
    stdout: str
    stderr: str
    seconds: float
    max_seconds: float
    crash: str
    strays: list[str]


class TookTooLong(BaseException):
    """A line did not end in time; no handler of the platform may catch this."""


@dataclass
class Watch:
    """The audit hook: what a line writes, and where it may."""

    box: Box
    may_write: tuple[str, ...] = ()
    strays: list[str] = field(default_factory=list)
    is_on: bool = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Look at one event of the interpreter."""
        if not self.is_on:
            return
        if event == "open" and isinstance(args[0], str | bytes) and args[2] & _WRITING:
            self._see(event, args[0])
        elif event in _CHANGES:
            for path, folder in _CHANGES[event]:
                self._see(event, args[path], args[folder] if folder is not None else -1)
        elif event == "sqlite3.connect" and args[0] != ":memory:":
            self._see(event, os.fsdecode(args[0]).removeprefix("file:").partition("?")[0])
        elif event == "socket.getaddrinfo":
            _refuse_abroad(args[0])
        elif event == "socket.connect" and isinstance(args[1], tuple):
            _refuse_abroad(args[1][0])

    def _see(self, event: str, path: "str | bytes | int", folder: int = -1) -> None:
        if isinstance(path, int):
            return
        base = f"/proc/self/fd/{folder}" if folder >= 0 else ""
        named = os.path.join(base, os.fsdecode(path))  # noqa: PTH118 - an event may hold bytes
        place = os.path.realpath(named)
        inside = (str(self.box.folder / "roots"), str(self.box.folder / "tmp"), *self.may_write)
        # `mkdir -p` tries what exists too, a dangling link for example, which changes nothing.
        is_vain = event == "os.mkdir" and os.path.lexists(named)
        if place != os.devnull and not is_vain and not place.startswith(inside):
            self.strays.append(f"{event} {place}")

    @contextmanager
    def watching(self, line: Line) -> Iterator[None]:
        """Record what one line writes elsewhere than to the root and the output that it names."""
        named = [after for word, after in zip(line.words, line.words[1:], strict=False)
                 if word in ("--root", "--output") and after]  # fmt: skip
        self.may_write = tuple(os.path.realpath(path) for path in named)
        self.strays = []
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


def _refuse_abroad(host: object) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    try:
        is_local = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise socket.gaierror(socket.EAI_NONAME, "the fuzz does not leave this machine")


def call(line: Line, watch: Watch) -> Outcome:
    """Run a line in this process with its own streams, and stop it when it takes too long."""
    outs = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(raw, "utf-8", write_through=True) for raw in outs)
    code: object = None
    crash = ""
    sys.argv = ["news-platform", *line.words]
    limit = MAX_SECONDS * _slowdown()
    started = time.monotonic()
    try:
        with redirect_stdout(out), redirect_stderr(err), watch.watching(line), _deadline(limit):
            sys.exit(run_command())
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - whatever a command raises is the finding
        crash = traceback.format_exc()[-3000:]
    seconds = time.monotonic() - started
    stdout, stderr = (raw.getvalue().decode(errors="replace") for raw in outs)
    return Outcome(
        words=line.words,
        must_fail=line.must_fail,
        code=code,
        stdout=stdout,
        stderr=stderr,
        seconds=seconds,
        max_seconds=limit,
        crash=crash,
        strays=list(watch.strays),
    )


def _slowdown() -> float:
    """Return how much slower the processes on this machine are for sharing its cores, up to 8."""
    return min(8.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    # Repeated, because an except clause of a library may swallow the first.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(words: list[str]) -> None:
    """Run the lines, one after the other."""
    folder, seed, count = Path(words[0]), *map(int, words[1:])
    # What a command or its children print on the real standard output is not a report.
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
    box = Box(folder)
    watch = Watch(box)
    sys.addaudithook(watch)
    list(commands())  # imports every command once, which no line is charged for
    for number in range(2):
        ensured = call(Line(("rss", "ensure", "--root", str(box.root(number))), False), watch)
        assert ensured.code == 0, ensured
    for line in lines(box, seed=seed, count=count):
        done = dataclasses.asdict(call(line, watch))
        reports.write(json.dumps(done, default=repr) + "\n")
        reports.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
