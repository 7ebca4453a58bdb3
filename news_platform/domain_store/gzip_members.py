"""Pure: write the records of domains as gzip members and read them back.

A member holds at most 1 MB of lines of one domain. A file is a sequence of members, which any gzip
reader understands, so the bytes of a domain can be copied from file to file without decoding.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.errors import StorageError

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
