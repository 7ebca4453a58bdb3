"""A byte stream over one object that resumes after a drop and refuses to end early."""

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from obstore.exceptions import BaseError, PreconditionError

from news_platform.errors import StorageError
from news_platform.storage.objects.interfaces import Download

# Large enough that Python's part of a download is lost in the noise, small enough to stay flat.
_CHUNK_BYTES = 1024 * 1024
# Resumes in a row that bring no byte before we give up.
_FRUITLESS_RESUMES = 3


class Opener(Protocol):
    """How a stream reaches its object, at first and again after a drop."""

    def __call__(self, *, offset: int, etag: str | None) -> Download:
        """Open the object from `offset` on, if it still has this tag."""


class ByteStream:
    """Read one object from front to back with `read` and `tell`; use it as a context manager.

    The end is believed only when `size_bytes` have come. After a drop or an early end the rest is
    asked for by Range, and only of the same version of the object.
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
        # A Range may not begin at the very end, so we begin one byte early and skip it.
        self._received = self._told = max(start - 1, 0)
        self._chunk, self._chunk_at = b"", 0
        self._download = opener(offset=self._received, etag=None)
        self._chunks: Iterator[bytes] = self._download.chunks(_CHUNK_BYTES)
        self.etag = self._download.info.etag
        found = self._download.info.size_bytes
        self.size_bytes = found if expected_size is None else expected_size
        self._refuse_a_longer_object(found)
        self.read(start - self._told)

    def read(self, n: int = -1) -> bytes:
        """Return the next `n` bytes, fewer only at the end; all the rest when `n` < 0."""
        wanted = self.size_bytes - self._told if n < 0 else min(n, self.size_bytes - self._told)
        pieces: list[bytes] = []
        while wanted > 0:
            piece = self._take(wanted)
            pieces.append(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def tell(self) -> int:
        """Return the offset in the object of the next byte to be read."""
        return self._told

    def close(self) -> None:
        """Let go of the connection."""
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
        self._told += len(piece)
        return piece

    def _next_chunk(self) -> bytes:
        cause: BaseException | None = None
        for attempt in range(_FRUITLESS_RESUMES + 1):
            try:
                if attempt:
                    self._resume(attempt)
                chunk = next(self._chunks, b"")
            except PreconditionError as error:
                raise self._broken("it changed while it was read; start again") from error
            except (BaseError, OSError, ValueError) as error:
                cause = error
                continue
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
        if self._download.info.etag != self.etag:
            raise self._broken("it changed while it was read; start again")

    def _refuse_a_longer_object(self, size: int) -> None:
        if size > self.size_bytes:
            raise self._broken(f"it has {size} bytes, expected {self.size_bytes}")

    def _broken(self, cause: str) -> StorageError:
        return StorageError(f"cannot read {self._thing!r}: {cause}", thing=self._thing)
