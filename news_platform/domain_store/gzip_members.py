"""Pure: records of a domain to gzip members and back; any gzip reader understands the result.

A member holds at most 1 MB of lines of one domain. Members are only ever concatenated, so the bytes
of a domain can be copied from file to file without being decoded.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.errors import StorageError

# A megabyte keeps the codec's tables warm, and what a reader of one record inflates small.
MEMBER_BYTES = 1_000_000
# Level 1 writes ten times faster than zlib for a size within a few percent.
LEVEL = 1
GZIP = 31
END_OF_LINE = ord("\n")


@dataclass(frozen=True, slots=True)
class DomainRange:
    """Where all records of one domain lie in a file: a whole number of gzip members."""

    domain: str
    offset: int
    length: int
    records: int


class MemberWriter:
    """Writes lines that come sorted by domain; each change of domain begins a new member."""

    def __init__(self, sink: BinaryIO) -> None:
        self.runs: list[DomainRange] = []
        self.size_bytes = 0
        self.records = 0
        self._sink = sink
        self._domain: str | None = None
        self._run_start = 0
        self._run_records = 0
        # One buffer for all members: a new one for each would cost a tenth of the codec's time.
        self._buffer = bytearray(MEMBER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0

    def add(self, domain: str, lines: Iterable[bytes]) -> None:
        """Append lines, each without its end, to the run of a domain."""
        if domain != self._domain:
            self.end_run()
            self._domain = domain
        buffer, view, filled = self._buffer, self._view, self._filled
        for line in lines:
            self._run_records += 1
            end = filled + len(line)
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

    def end_run(self) -> None:
        """Close the run of the present domain, if there is one."""
        self._write_member(self._view[: self._filled])
        self._filled = 0
        if self._domain is not None:
            length = self.size_bytes - self._run_start
            self.runs.append(DomainRange(self._domain, self._run_start, length, self._run_records))
            self.records += self._run_records
        self._domain, self._run_start, self._run_records = None, self.size_bytes, 0

    def _write_large(self, raw: bytes) -> None:
        """Write a record that no member can hold as several."""
        for start in range(0, len(raw), MEMBER_BYTES):
            self._write_member(raw[start : start + MEMBER_BYTES])

    def _write_member(self, raw: bytes | memoryview) -> None:
        if raw:
            self.size_bytes += self._sink.write(isal_zlib.compress(raw, LEVEL, GZIP))


def iter_inflated(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the content of concatenated gzip members; raise StorageError when they are broken."""
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
    if not is_between:
        raise StorageError("cannot inflate a gzip member: it ends early")


def iter_lines(contents: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends, holding no more than one line and one piece."""
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
        raise StorageError("the last record has no end of line")
