"""Split a gzip stream into groups of members, each of which starts a WARC record.

Every file of Common Crawl has one gzip member per WARC record, so a damaged member costs that
record and no other. igzip verifies every checksum and is still faster than zlib.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from isal import igzip_lib

_T = TypeVar("_T")
# The stub of isal declares an instance where the module has a class.
_INFLATE_ERROR: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]
GZIP_MAGIC = b"\x1f\x8b"
_MEMBER_MAGIC = GZIP_MAGIC + b"\x08"
_RECORD_MAGIC = b"WARC/"
# Bytes are read in large pieces and inflated in slices: what follows the end of a member is given
# back to the reader, and a slice bounds how much that is.
_READ_BYTES = 256 << 10
_SLICE_BYTES = 32 << 10
_CHUNK_BYTES = 64 << 10
# Members up to this size, which is nearly all of them, are inflated at once.
_WHOLE_BYTES = 4 << 20
_STEP_BYTES = 1 << 20
# Enough compressed bytes for any gzip header and the first five characters of a record.
_PROBE_BYTES = 4096
# The slices of a member that are kept: after damage, the next member is searched for in them, from
# the start of the damaged one; of a member larger than 16 MB only the end is searched.
_KEPT_SLICES = 512


class ByteSource(Protocol):
    """A stream of bytes: a file, or an object in a store."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


class PushbackReader:
    """Read a stream in slices and take unused bytes back."""

    def __init__(self, stream: ByteSource) -> None:
        self._stream = stream
        self._window = b""
        self._at = 0
        self.position = 0

    def take(self) -> memoryview:
        """Return the next slice, empty at the end."""
        if self._at == len(self._window):
            self._window, self._at = self._stream.read(_READ_BYTES), 0
        data = memoryview(self._window)[self._at : self._at + _SLICE_BYTES]
        self._at += len(data)
        self.position += len(data)
        return data

    def give_back(self, data: bytes | memoryview) -> None:
        """Put bytes back, to be returned first by the next `take`."""
        if len(data) > self._at:
            self._window, self._at = b"".join((data, self._window[self._at :])), len(data)
        self._at -= len(data)
        self.position -= len(data)

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them; fewer at the end."""
        data = bytes(self.take())
        while len(data) < size and (more := self.take()):
            data += more
        self.give_back(data)
        return data[:size]


class _GzipMember:
    """One gzip member as a readable stream; damage sets a flag instead of raising."""

    def __init__(self, reader: PushbackReader) -> None:
        self.offset = reader.position
        self.is_damaged = False
        self.is_cut = False
        self._reader = reader
        self._inflate = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        self._seen: deque[memoryview] = deque(maxlen=_KEPT_SLICES)
        self.ahead = self._inflated(_STEP_BYTES)

    def whole(self) -> bytes | None:
        """Return all bytes of a sound member of usual size, before any `read`; None for others."""
        parts = [self.ahead]
        size = len(self.ahead)
        while size < _WHOLE_BYTES and (part := self._inflated(_STEP_BYTES)):
            parts.append(part)
            size += len(part)
        self.ahead = b"".join(parts) if len(parts) > 1 else self.ahead
        return self.ahead if self._inflate.eof and self.is_sound else None

    def read(self, size: int) -> bytes:
        """Return inflated bytes, none at the end of the member or where it is damaged."""
        if self.ahead:
            data, self.ahead = self.ahead[:size], self.ahead[size:]
            return data
        return self._inflated(size)

    @property
    def is_sound(self) -> bool:
        """Return whether no damage was found so far."""
        return not (self.is_damaged or self.is_cut)

    def _inflated(self, size: int) -> bytes:
        while self.is_sound and not self._inflate.eof:
            if data := self._step(size):
                return data
        return b""

    def _step(self, size: int) -> bytes:
        fresh = memoryview(b"")
        if self._inflate.needs_input:
            fresh = self._reader.take()
            self._seen.append(fresh)
            self.is_cut = not fresh
        try:
            data: bytes = self._inflate.decompress(fresh, size)
        except _INFLATE_ERROR:
            self.is_damaged = True
            return b""
        return data

    def leave(self) -> None:
        """Move the reader to the end of the member, or past its damage to the next sound one.

        Damage can make the inflater consume the rest of the stream, so a member that looks cut off
        is searched as well.
        """
        if self.is_sound:
            self._reader.give_back(self._inflate.unused_data)
        else:
            self.is_damaged = True
            self.is_cut = not _seek_next_member(self._reader, b"".join(self._seen))


class MemberGroup:
    """Consecutive gzip members, as one readable stream, of which only the first starts a record.

    Common Crawl has one member per group; other writers flush a record in several members. After
    `drain` the group is sound, damaged, or cut: the stream ends within it and no member follows.
    """

    def __init__(self, member: _GzipMember, reader: PushbackReader) -> None:
        self.offset = member.offset
        self.length = 0
        self.head = member.ahead[:64]
        self.follower: _GzipMember | None = None
        self.is_damaged = False
        self.is_cut = False
        self._member: _GzipMember | None = member
        self._reader = reader
        self._unread = b""
        self._size = 0

    def parsed(self, parse: Callable[[bytes], _T | None]) -> _T | None:
        """Return `parse` of all bytes if the group is one sound member of usual size.

        None if the group is different or `parse` returns None; `read` then starts at the beginning.
        """
        member = self._member
        data = member.whole() if member else None
        if member is None or data is None:
            return None
        self._close_member(member)
        found = parse(data) if self._member is None else None
        self._unread = data if found is None else b""
        return found

    def read(self, size: int = -1) -> bytes:
        """Return inflated bytes, none at the end of the group or where it is damaged."""
        if self._unread:
            data, self._unread = self._unread[:size], self._unread[size:]
            self._size += len(data)
            return data
        while self._member:
            if data := self._member.read(size):
                self._size += len(data)
                return data
            self._close_member(self._member)
        return b""

    def tell(self) -> int:
        """Return how many inflated bytes were read."""
        return self._size

    def drain(self) -> None:
        """Read to the end, so that the state and length of the group are known."""
        while self.read(_CHUNK_BYTES):
            pass

    def _close_member(self, member: _GzipMember) -> None:
        member.leave()
        self._member = None
        self.length = self._reader.position - self.offset
        self.is_damaged, self.is_cut = member.is_damaged, member.is_cut
        if not self.is_cut and self._reader.peek(1):
            self.follower = _GzipMember(self._reader)
            if self.follower.is_sound and not self.follower.ahead.startswith(_RECORD_MAGIC):
                self._member, self.follower = self.follower, None


def iter_member_groups(reader: PushbackReader) -> Iterator[MemberGroup]:
    """Yield the groups one after another; what the caller leaves unread is drained."""
    member = _GzipMember(reader) if reader.peek(1) else None
    while member:
        group = MemberGroup(member, reader)
        yield group
        group.drain()
        member = group.follower


def _seek_next_member(reader: PushbackReader, window: bytes) -> bool:
    """Move the reader to the next member that starts a WARC record after the window's first byte.

    Return False when the stream ends without one: the damage then reaches its end.
    """
    start = 1
    while True:
        at = window.find(_MEMBER_MAGIC, start)
        if at < 0 or len(window) - at < _PROBE_BYTES:
            keep = at if at >= 0 else max(start, len(window) - len(_MEMBER_MAGIC) + 1)
            if more := reader.take():
                window, start = window[keep:] + more, 0
                continue
            if at < 0:
                return False
        if _starts_record(window[at : at + _PROBE_BYTES]):
            reader.give_back(window[at:])
            return True
        start = at + 1


def _starts_record(data: bytes) -> bool:
    inflate = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
    try:
        head: bytes = inflate.decompress(data, len(_RECORD_MAGIC))
    except _INFLATE_ERROR:
        return False
    return head == _RECORD_MAGIC
