"""Reads forward through one file, many neighbouring ranges with one request."""

from collections.abc import Iterator

from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore

LEAST_BYTES, MOST_BYTES = 1 << 16, 8 << 20
GZIP_MAGIC = b"\x1f\x8b"


class Window:
    """A part of a file held in memory, moved on when a range beyond it is asked for."""

    def __init__(
        self, store: ObjectStore, path: str, *, size_bytes: int, window_bytes: int = MOST_BYTES
    ) -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes
        self._window_bytes = max(LEAST_BYTES, min(window_bytes, MOST_BYTES))
        self._start = 0
        self._held = memoryview(b"")

    def pieces(self, offset: int, length: int) -> Iterator[memoryview]:
        """Yield the bytes of a range; they must begin a gzip member."""
        end = offset + length
        is_first = True
        while offset < end:
            piece = self._from(offset, end - offset)
            if is_first and piece[:2] != GZIP_MAGIC:
                where = self._store.uri(self._path)
                raise StorageError(f"no gzip member at byte {offset} of {where!r}", thing=where)
            yield piece
            offset, is_first = offset + len(piece), False

    def _from(self, offset: int, length: int) -> memoryview:
        at = offset - self._start
        if not 0 <= at < len(self._held):
            size = min(self._window_bytes, self._size_bytes - offset)
            self._held = memoryview(self._store.read_range(self._path, offset, size))
            self._start, at = offset, 0
        return self._held[at : at + length]
