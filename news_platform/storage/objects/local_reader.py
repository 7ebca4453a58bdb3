"""Read from a local folder: plain file calls for bytes, obstore for listings.

Through obstore a local range costs 200 µs and a stream 180 MB/s; plain calls are tenfold faster.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from pathlib import Path

import obstore
from obstore.exceptions import PreconditionError
from obstore.store import LocalStore

from news_platform.storage.objects.info import ObjectInfo
from news_platform.storage.objects.keys import is_hidden

_LIST_CHUNK = 10_000


class LocalDownload:
    """An open file, positioned at the offset it was asked for."""

    def __init__(self, path: Path, key: str, *, offset: int) -> None:
        self._handle = _open(path)
        self.info = ObjectInfo.of_file(key, os.fstat(self._handle))
        if offset and offset >= self.info.size_bytes:
            self.close()
            raise ValueError(f"offset {offset} lies beyond the {self.info.size_bytes} bytes")
        os.lseek(self._handle, offset, os.SEEK_SET)

    def read(self) -> bytes:
        """Return all bytes from the offset on."""
        return b"".join(self.chunks(max(self.info.size_bytes, 1)))

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of this size."""
        while chunk := os.read(self._handle, size_bytes):
            yield chunk

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        with suppress(AttributeError):  # the file could not be opened
            self.close()


class LocalReader:
    """Reading under one folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, key: str, *, offset: int = 0, etag: str | None = None) -> LocalDownload:
        """Open the file from `offset` on, if it still has this tag."""
        download = LocalDownload(self._folder / key, key, offset=offset)
        if etag is not None and download.info.etag != etag:
            download.close()
            raise PreconditionError(f"{key!r} has another tag")
        return download

    def head(self, key: str) -> ObjectInfo:
        """Return the facts of a file; a folder is not one."""
        facts = (self._folder / key).stat()
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(key)
        return ObjectInfo.of_file(key, facts)

    def ranges(self, key: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return these ranges, cut off at the end of the file."""
        handle = _open(self._folder / key)
        try:
            pairs = zip(lengths, starts, strict=True)
            return [os.pread(handle, length, start) for length, start in pairs]
        finally:
            os.close(handle)

    def iter_objects(self, folder: str, *, start: str = "") -> Iterator[ObjectInfo]:
        """Yield what lies under `folder`, sorted; a folder is read whole before the first."""
        pages = obstore.list(self._client, folder or None, chunk_size=_LIST_CHUNK)
        found = [m for page in pages for m in page if m["path"].startswith(start)]
        found.sort(key=itemgetter("path"))
        return (ObjectInfo.of_meta(meta) for meta in found if not is_hidden(meta["path"]))

    def folders(self, folder: str) -> list[str]:
        """Return the folders right under `folder`, sorted."""
        prefix = f"{folder}/" if folder else ""
        with os.scandir(self._folder / folder) as entries:
            found = [prefix + entry.name for entry in entries if entry.is_dir()]
        return sorted(path for path in found if not is_hidden(path))

    @cached_property
    def _client(self) -> LocalStore:
        self._folder.stat()  # obstore's own error for a missing folder has no type to catch
        return LocalStore(self._folder)


def _open(path: Path) -> int:
    # Without O_NONBLOCK a named pipe would hold us for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise FileNotFoundError(path)
