"""Read an object as a byte stream that resumes after a dropped connection.

The stream raises StoreUnavailable instead of ending early.
"""

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from obstore.exceptions import BaseError, PreconditionError

from news_platform.errors import StoreUnavailable
from news_platform.storage.objects.local import LocalDownload
from news_platform.storage.objects.remote import RemoteDownload

# Large enough that Python's share of a download is negligible, small enough for flat memory.
_CHUNK_BYTES = 1024 * 1024
# Consecutive resumes without a new byte before the stream gives up.
_FRUITLESS_RESUMES = 3


Opener = Callable[..., LocalDownload | RemoteDownload]
"""Open the object from `offset` on if it still has the tag `etag`: first, and after a lost line."""


class ByteStream:
    """Read one object from front to back with `read` and `tell`; use it as a context manager.

    The stream ends only after `size_bytes` bytes. After a dropped connection or an early end, the
    rest is requested by Range, and only from the same version of the object.
    """

    def __init__(
        self,
        thing: str,
        opener: Opener,
        *,
        start: int,
        expected_size: int | None,
        backoff_seconds: float,
    ) -> None:
        self._thing = thing
        self._opener = opener
        self._backoff_seconds = backoff_seconds
        # A Range may not start at the very end, so start one byte early and skip it.
        self._received = self._position = max(start - 1, 0)
        self._chunk, self._chunk_at = b"", 0
        self._download = opener(offset=self._received, etag=None)
        self._chunks: Iterator[bytes] = self._download.chunks(_CHUNK_BYTES)
        self.etag = self._download.info.etag
        found = self._download.info.size_bytes
        self.size_bytes = found if expected_size is None else expected_size
        self._refuse_a_longer_object(found)
        self.read(start - self._position)

    def read(self, n: int = -1) -> bytes:
        """Return the next `n` bytes, fewer only at the end; all the rest if `n` < 0."""
        left = self.size_bytes - self._position
        wanted = left if n < 0 else min(n, left)
        pieces: list[bytes] = []
        while wanted > 0:
            piece = self._take(wanted)
            pieces.append(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def tell(self) -> int:
        """Return the offset of the next byte in the object."""
        return self._position

    def close(self) -> None:
        """Release the connection."""
        self._download.close()
        self._chunks, self._chunk = iter(()), b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take(self, wanted: int) -> bytes:
        if self._chunk_at >= len(self._chunk):
            self._chunk, self._chunk_at = self._next_chunk(), 0
        piece = self._chunk[self._chunk_at : self._chunk_at + wanted]
        self._chunk_at += len(piece)
        self._position += len(piece)
        return piece

    def _next_chunk(self) -> bytes:
        cause: BaseException | None = None
        for attempt in range(_FRUITLESS_RESUMES + 1):
            try:
                if attempt:
                    self._resume(attempt)
                chunk = next(self._chunks, b"")
            # A new version of the object: the bytes read so far belong to the old one.
            except PreconditionError as error:
                raise self._broken("it changed while it was read; start over") from error
            except (BaseError, OSError, ValueError) as error:
                cause = error
                continue
            # An empty chunk before the end is a truncated body: resume as after an error.
            if chunk:
                self._received += len(chunk)
                self._refuse_a_longer_object(self._received)
                return chunk
        raise self._broken(
            f"it ended after {self._received} of {self.size_bytes} bytes; try again"
        ) from cause

    def _resume(self, attempt: int) -> None:
        time.sleep(self._backoff_seconds * 2 ** (attempt - 1))
        self._download.close()
        self._download = self._opener(offset=self._received, etag=self.etag or None)
        self._chunks = self._download.chunks(_CHUNK_BYTES)
        # A server may ignore If-Match.
        if self._download.info.etag != self.etag:
            raise self._broken("it changed while it was read; start over")

    def _refuse_a_longer_object(self, size: int) -> None:
        if size > self.size_bytes:
            raise self._broken(f"it has {size} bytes, expected {self.size_bytes}")

    def _broken(self, cause: str) -> StoreUnavailable:
        return StoreUnavailable(f"cannot read {self._thing!r}: {cause}", thing=self._thing)
