"""Write data files: gzip members of JSON lines, spooled and uploaded in the background.

A member holds at most 1 MB of lines of one domain. A file is a sequence of members, which any gzip
reader understands, so the bytes of a domain can be copied from file to file without decoding.
"""

import io
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from typing import BinaryIO, cast

from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.errors import StorageError
from news_platform.storage.objects.error_mapping import mapped_error
from news_platform.storage.objects.store import ObjectStore

# Large enough to compress well, small enough to inflate for a single record.
MEMBER_BYTES = 1_000_000
# isal at level 1 writes 627 MB/s where zlib writes 51, for a size within a few percent.
LEVEL = 1
# The window size with which zlib and isal write and expect a gzip header.
GZIP = 31
END_OF_LINE = ord("\n")


@dataclass(frozen=True, slots=True)
class DomainRange:
    """The byte range of all records of one domain in a file: a whole number of gzip members."""

    domain: str
    offset: int
    length: int
    records: int


class MemberWriter:
    """Writes lines that are sorted by domain; each domain starts a new member."""

    def __init__(self, sink: BinaryIO) -> None:
        self.ranges: list[DomainRange] = []
        self.size_bytes = 0
        self.records = 0
        self._sink = sink
        self._domain: str | None = None
        self._domain_start = 0
        self._domain_records = 0
        # One buffer for all members: a new one each time would cost a tenth of the codec's time.
        self._buffer = bytearray(MEMBER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0

    def add(self, domain: str, lines: Iterable[bytes]) -> None:
        """Append lines, each without its line end, to a domain."""
        if domain != self._domain:
            self.end_domain()
            self._domain = domain
        buffer, view, filled = self._buffer, self._view, self._filled
        for line in lines:
            self._domain_records += 1
            end = filled + len(line)
            # `>=` leaves room for the line end.
            if end >= MEMBER_BYTES:
                self._write_member(view[:filled])
                filled, end = 0, len(line)
                if end >= MEMBER_BYTES:
                    self._write_large(line + b"\n")
                    continue
            view[filled:end] = line
            buffer[end] = END_OF_LINE
            filled = end + 1
        self._filled = filled

    def end_domain(self) -> None:
        """End the current domain, if there is one."""
        self._write_member(self._view[: self._filled])
        self._filled = 0
        if self._domain is not None:
            length = self.size_bytes - self._domain_start
            self.ranges.append(
                DomainRange(self._domain, self._domain_start, length, self._domain_records)
            )
            self.records += self._domain_records
        self._domain, self._domain_start, self._domain_records = None, self.size_bytes, 0

    def _write_large(self, raw: bytes) -> None:
        """Write a record that is larger than a member as several members."""
        for start in range(0, len(raw), MEMBER_BYTES):
            self._write_member(raw[start : start + MEMBER_BYTES])

    def _write_member(self, raw: bytes | memoryview) -> None:
        if raw:
            self.size_bytes += self._sink.write(isal_zlib.compress(raw, LEVEL, GZIP))


def iter_inflated(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the content of concatenated gzip members; raise StorageError on damaged ones."""
    member = isal_zlib.decompressobj(GZIP)
    is_between = True
    for piece in pieces:
        rest = piece
        while rest:
            is_between = False
            try:
                content = member.decompress(rest)
            except IsalError as error:  # type: ignore[misc] # its stub names no class
                raise StorageError(f"cannot inflate a gzip member: {error}") from error
            yield content
            rest = b""
            if member.eof:
                rest, member, is_between = member.unused_data, isal_zlib.decompressobj(GZIP), True
    # A truncated stream ends inside a member, without an error from the codec.
    if not is_between:
        raise StorageError("cannot inflate a gzip member: it is truncated")


def iter_lines(contents: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their line ends, holding one line and one piece at most."""
    open_line: list[bytes] = []
    for content in contents:
        *lines, rest = content.split(b"\n")
        if lines and open_line:
            lines[0] = b"".join([*open_line, lines[0]])
            open_line = []
        yield from lines
        if rest:
            open_line.append(rest)
    if open_line:
        raise StorageError("the last record has no line end: it is truncated")


def rewrite_run(raw: bytes, kept: Sequence[bool]) -> bytes:
    """Encode a run again without some records; `kept` says for each, in order, whether it stays."""
    sink = io.BytesIO()
    writer = MemberWriter(sink)
    writer.add("", compress(iter_lines(iter_inflated([raw])), kept))
    writer.end_domain()
    return sink.getvalue()


# A larger file waits for its upload on disk, not in memory.
SPOOL_BYTES = 4 << 20


class Uploads:
    """Uploads files in the background; at most `workers` files wait at a time."""

    def __init__(self, store: ObjectStore, pool: ThreadPoolExecutor, *, workers: int) -> None:
        self.paths: set[str] = set()
        self._spools: set[BinaryIO] = set()
        self._store = store
        self._pool = pool
        self._workers = workers
        self._pending: deque[Future[None]] = deque()

    def new_spool(self, scratch: str | None = None) -> BinaryIO:
        """Return an unnamed file that starts in memory and moves to disk when it grows."""
        file = tempfile.SpooledTemporaryFile(SPOOL_BYTES, dir=scratch)  # noqa: SIM115 - closed by `close`
        spool = cast(BinaryIO, file)
        self._spools.add(spool)
        return spool

    def put(self, path: str, body: bytes | BinaryIO) -> None:
        """Upload a file soon and close it; an earlier failure is raised here or by `finish`."""
        self.paths.add(path)
        # Finished files take memory or disk until they are uploaded, so the builder waits here.
        while len(self._pending) >= self._workers:
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(self._put, path, body))

    def finish(self) -> None:
        """Wait until every file is uploaded."""
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        """Close the spools that were never uploaded."""
        for spool in self._spools:
            spool.close()

    def _put(self, path: str, body: bytes | BinaryIO) -> None:
        if isinstance(body, bytes):
            self._store.put(path, body)
            return
        with body:
            body.seek(0)
            self._store.put(path, body)
        self._spools.discard(body)


@contextmanager
def scratch_errors(scratch: str | None) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the scratch folder."""
    try:
        yield
    except OSError as error:
        # The object store raises our own errors, so this one comes from the scratch folder.
        said = mapped_error(error, "write to the scratch folder", scratch or tempfile.gettempdir())
        raise StorageError(str(said), thing=scratch) from error


@contextmanager
def open_uploads(store: ObjectStore, workers: int) -> Iterator[Uploads]:
    """Yield an `Uploads`; leaving without an error waits until every file is uploaded."""
    with ThreadPoolExecutor(workers, thread_name_prefix="upload") as pool:
        uploads = Uploads(store, pool, workers=workers)
        try:
            yield uploads
            uploads.finish()
        finally:
            uploads.close()
