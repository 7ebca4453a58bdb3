"""Tell the pool how far a worker is, without a message per record.

The number of the record in work is in a small mapped file, where the pool finds it after the worker
hung or died. Messages, which cost both processes time, are sent twice per second at most: while
bytes are awaited or published, and when another record is in work than at the last message. So a
page that hangs is found by its silence, and a slow network is never mistaken for a bad page.
"""

import mmap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING

from news_platform.ccnews.gzip_members import ByteSource
from news_platform.isolation.worker import report

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
