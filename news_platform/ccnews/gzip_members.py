"""A gzip stream in, its record frames out: each read lazily, then known as sound or damaged.

One gzip member is one WARC record in every file of Common Crawl, so a damaged one costs that record
and no other. igzip checks every checksum and is faster than zlib, so the care costs nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from isal import igzip_lib

_T = TypeVar("_T")
# The stub declares an instance where the module has a class.
_INFLATE_ERROR: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]
GZIP_MAGIC = b"\x1f\x8b"
_MEMBER_MAGIC = GZIP_MAGIC + b"\x08"
_RECORD_MAGIC = b"WARC/"
# Read ahead this much, inflate from slices of it: a slice is what a member's end leaves over.
_READ_BYTES = 256 << 10
_SLICE_BYTES = 32 << 10
_CHUNK_BYTES = 64 << 10
# Members up to this size, nearly all, are inflated in one go.
_WHOLE_BYTES = 4 << 20
_STEP_BYTES = 1 << 20
# Enough compressed bytes for any gzip header and the first five characters of a record.
_PROBE_BYTES = 4096
# A damaged member is searched for the next one from its own start; a giant one only in its end.
_KEPT_SLICES = 512


class ByteSource(Protocol):
    """What a WARC is read from: a file, or an object store's stream."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


class PushbackReader:
    """Hand out a stream's bytes in slices and take unused ones back."""

    def __init__(self, stream: ByteSource) -> None:
        self._stream = stream
        self._window = b""
        self._at = 0
        self.position = 0

    def take(self) -> memoryview:
        """Return the next bytes, none at the end."""
        if self._at == len(self._window):
            self._window, self._at = self._stream.read(_READ_BYTES), 0
        data = memoryview(self._window)[self._at : self._at + _SLICE_BYTES]
        self._at += len(data)
        self.position += len(data)
        return data

    def give_back(self, data: bytes | memoryview) -> None:
        """Put bytes back in front of what comes next."""
        if len(data) > self._at:
            self._window, self._at = b"".join((data, self._window[self._at :])), len(data)
        self._at -= len(data)
        self.position -= len(data)

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes without taking them; fewer at the end."""
        data = bytes(self.take())
        while len(data) < size and (more := self.take()):
            data += more
        self.give_back(data)
        return data[:size]


class _GzipMember:
    """One gzip member as a readable stream; `read` never raises, the state tells what happened."""

    def __init__(self, source: PushbackReader) -> None:
        self.offset = source.position
        self.is_damaged = False
        self.is_cut = False
        self._source = source
        self._inflate = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        self._seen: deque[memoryview] = deque(maxlen=_KEPT_SLICES)
        self.ahead = self._inflated(_STEP_BYTES)

    def whole(self) -> bytes | None:
        """Return all of a sound member of usual size before any is read; None for another."""
        parts = [self.ahead]
        size = len(self.ahead)
        while size < _WHOLE_BYTES and (part := self._inflated(_STEP_BYTES)):
            parts.append(part)
            size += len(part)
        self.ahead = b"".join(parts) if len(parts) > 1 else self.ahead
        return self.ahead if self._inflate.eof and self.is_sound else None

    def read(self, size: int) -> bytes:
        """Return inflated bytes, none at the end of the member or at its damage."""
        if self.ahead:
            data, self.ahead = self.ahead[:size], self.ahead[size:]
            return data
        return self._inflated(size)

    @property
    def is_sound(self) -> bool:
        """Say whether no damage was met so far."""
        return not (self.is_damaged or self.is_cut)

    def _inflated(self, size: int) -> bytes:
        while self.is_sound and not self._inflate.eof:
            if data := self._step(size):
                return data
        return b""

    def _step(self, size: int) -> bytes:
        fresh = memoryview(b"")
        if self._inflate.needs_input:
            fresh = self._source.take()
            self._seen.append(fresh)
            self.is_cut = not fresh
        try:
            data: bytes = self._inflate.decompress(fresh, size)
        except _INFLATE_ERROR:
            self.is_damaged = True
            return b""
        return data

    def leave(self) -> None:
        """Move the source behind the member, or behind its damage to the next sound one.

        Damage may swallow the rest of the stream, so what looks cut off is searched as well.
        """
        if self.is_sound:
            self._source.give_back(self._inflate.unused_data)
        else:
            self.is_damaged = True
            self.is_cut = not _seek_next_member(self._source, b"".join(self._seen))


class MemberGroup:
    """A readable run of members of which only the first starts a record.

    Common Crawl has one member a frame; other writers flush a record in pieces. After `drain` the
    frame is sound, or damaged, or cut: the stream ends within it with nothing to go on from.
    """

    def __init__(self, member: _GzipMember, source: PushbackReader) -> None:
        self.offset = member.offset
        self.length = 0
        self.head = member.ahead[:64]
        self.follower: _GzipMember | None = None
        self.is_damaged = False
        self.is_cut = False
        self._member: _GzipMember | None = member
        self._source = source
        self._unread = b""
        self._size = 0

    def parsed(self, parse: Callable[[bytes], _T | None]) -> _T | None:
        """Return what `parse` makes of all of a sound frame of one member of usual size.

        None when the frame is another or `parse` says None: then `read` gives it from its start.
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
        """Return inflated bytes, none at the end of the frame or at its damage."""
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
        """Read to the end, so that the frame's state and length are known."""
        while self.read(_CHUNK_BYTES):
            pass

    def _close_member(self, member: _GzipMember) -> None:
        member.leave()
        self._member = None
        self.length = self._source.position - self.offset
        self.is_damaged, self.is_cut = member.is_damaged, member.is_cut
        if not self.is_cut and self._source.peek(1):
            self.follower = _GzipMember(self._source)
            if self.follower.is_sound and not self.follower.ahead.startswith(_RECORD_MAGIC):
                self._member, self.follower = self.follower, None


def iter_member_groups(source: PushbackReader) -> Iterator[MemberGroup]:
    """Yield the frames one after another; what the caller leaves unread is drained."""
    member = _GzipMember(source) if source.peek(1) else None
    while member:
        frame = MemberGroup(member, source)
        yield frame
        frame.drain()
        member = frame.follower


def _seek_next_member(source: PushbackReader, window: bytes) -> bool:
    """Move the source to the next member that starts a WARC record after the window's first byte.

    False when the stream ends without one: then the damage reaches its end.
    """
    start = 1
    while True:
        at = window.find(_MEMBER_MAGIC, start)
        if at < 0 or len(window) - at < _PROBE_BYTES:
            keep = at if at >= 0 else max(start, len(window) - len(_MEMBER_MAGIC) + 1)
            if more := source.take():
                window, start = window[keep:] + more, 0
                continue
            if at < 0:
                return False
        if _starts_record(window[at : at + _PROBE_BYTES]):
            source.give_back(window[at:])
            return True
        start = at + 1


def _starts_record(data: bytes) -> bool:
    inflate = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
    try:
        head: bytes = inflate.decompress(data, len(_RECORD_MAGIC))
    except _INFLATE_ERROR:
        return False
    return head == _RECORD_MAGIC
