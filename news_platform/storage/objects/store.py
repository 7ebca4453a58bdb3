"""The one door to bytes: open a folder, bucket or web host by URL; read, put, list, delete.

Paths are relative to the URL the store was opened with and '/'-separated. A put is atomic on every
backend: a reader sees the old object or the new one, never a part.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path

from news_platform.errors import Conflict, StorageError
from news_platform.storage.objects.backend import Backend, backend_of
from news_platform.storage.objects.credentials import polars_options
from news_platform.storage.objects.error_mapping import NotFound, explained
from news_platform.storage.objects.info import ObjectInfo
from news_platform.storage.objects.interfaces import Body
from news_platform.storage.objects.keys import joined, joined_folder
from news_platform.storage.objects.options import DEFAULT_OPTIONS, StoreOptions
from news_platform.storage.objects.streams import ByteStream

__all__ = ["ByteStream", "NotFound", "ObjectInfo", "ObjectStore", "StoreOptions", "open_store"]


def open_store(url: str, *, options: StoreOptions = DEFAULT_OPTIONS) -> "ObjectStore":
    """Open a local path, file://, s3://bucket/prefix, gs://bucket/prefix or https://host/prefix."""
    backend, prefix = backend_of(url, options)
    return ObjectStore(backend, prefix)


class ObjectStore:
    """Objects under one URL; safe to share between threads."""

    def __init__(self, backend: Backend, prefix: str = "") -> None:
        self._backend = backend
        self._reader, self._writer = backend.reader, backend.writer
        self._prefix = prefix

    def __repr__(self) -> str:
        return f"ObjectStore({self.url!r})"

    @property
    def url(self) -> str:
        """Return the folder or URL that paths are relative to."""
        return f"{self._backend.root}/{self._prefix}" if self._prefix else self._backend.root

    @property
    def local_folder(self) -> Path | None:
        """Return the folder that paths are relative to, None when the store is remote."""
        folder = self._backend.folder
        return folder / self._prefix if folder is not None else None

    @property
    def options(self) -> StoreOptions:
        """Return the options it was opened with."""
        return self._backend.options

    def uri(self, path: str) -> str:
        """Return the full path or URL that Polars, pyarrow or a person can open."""
        return f"{self._backend.root}/{joined(self._prefix, path)}"

    def child(self, prefix: str) -> "ObjectStore":
        """Return the store of what lies under `prefix`."""
        return ObjectStore(self._backend, joined_folder(self._prefix, prefix))

    def read(self, path: str, *, expected_size: int | None = None) -> bytes:
        """Return the whole object; raise NotFound when there is none.

        `expected_size`, as a listing told it, unmasks a body that was silently cut short.
        """
        body, info = self.read_with_info(path)
        self._expect(path, len(body), info.size_bytes if expected_size is None else expected_size)
        return body

    def read_with_info(self, path: str) -> tuple[bytes, ObjectInfo]:
        """Return the whole object and the facts of that very version, as compare_and_set needs."""
        with self._explained("read", path), closing(self._reader.open(self._key(path))) as opened:
            return opened.read(), opened.info.under(self._prefix)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return exactly `length` bytes from `start`; raise StorageError when there are fewer."""
        return self.read_ranges(path, [start], [length])[0]

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return each range, as `read_range` does, in as few requests as possible."""
        wanted = [pair for pair in zip(starts, lengths, strict=True) if pair[1] > 0]
        found: Iterator[bytes] = iter(())
        if wanted:
            with self._explained("read", path):
                found = iter(self._reader.ranges(self._key(path), *zip(*wanted, strict=True)))
        pieces = [next(found) if length > 0 else b"" for length in lengths]
        for piece, length in zip(pieces, lengths, strict=True):
            self._expect(path, len(piece), length)
        return pieces

    def head(self, path: str) -> ObjectInfo:
        """Return the facts of an object; raise NotFound when there is none."""
        with self._explained("read", path):
            return self._reader.head(self._key(path)).under(self._prefix)

    def find(self, path: str) -> ObjectInfo | None:
        """Return the facts of an object, None when there is none."""
        try:
            return self.head(path)
        except NotFound:
            return None

    def exists(self, path: str) -> bool:
        """Return whether there is such an object."""
        return self.find(path) is not None

    def stream(self, path: str, *, start: int = 0, expected_size: int | None = None) -> ByteStream:
        """Open the object from `start` on.

        `expected_size` is the size of the whole object as a listing told it; without it the
        store's own answer is believed, which a silent truncation can forge.
        """
        with self._explained("read", path):
            return ByteStream(
                self._thing(path),
                partial(self._reader.open, self._key(path)),
                start=start,
                expected_size=expected_size,
                backoff_seconds=self._backend.backoff_seconds,
            )

    def put(self, path: str, body: Body) -> ObjectInfo:
        """Write the object atomically and return the facts of what is now there."""
        with self._explained("write", path):
            return self._writer.put(self._key(path), body).under(self._prefix)

    def put_if_absent(self, path: str, body: bytes) -> bool:
        """Write the object unless there is one; return whether this body was written.

        After a lost acknowledgement the object is read back and our own bytes count as written,
        so whoever must tell writers apart puts an attempt id into the body.
        """
        with self._explained("write", path):
            return self._writer.put_if_absent(self._key(path), body) is not None

    def compare_and_set(self, path: str, body: bytes, *, etag: str | None) -> str:
        """Replace the version with this tag (None: there must be none) and return the new tag.

        Raise Conflict when somebody else was first. Take the tag from `read_with_info`, or from a
        `head` before the `read`. Object stores tag by content: A, B, A again looks unchanged.
        """
        writer, key, thing = self._writer, self._key(path), self._thing(path)
        with self._explained("write", path):
            if etag is None:
                written = writer.put_if_absent(key, body)
            else:
                written = writer.put_if_match(key, body, etag=etag)
        if written is None:
            raise Conflict(f"cannot replace {thing!r}: somebody else changed it first", thing=thing)
        return written

    def list_folders(self, prefix: str = "") -> list[str]:
        """Return the folders right under `prefix`, as paths, sorted."""
        cut = len(self._prefix) + 1 if self._prefix else 0
        with suppress(NotFound), self._explained("list", prefix):
            found = self._reader.folders(joined_folder(self._prefix, prefix))
            return [path[cut:] for path in found]
        return []

    def list(self, prefix: str = "", *, name_prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield everything under the folder `prefix`, sorted by path in UTF-8 byte order.

        `name_prefix` narrows it to paths whose part after `prefix/` begins so. A folder that does
        not exist is empty.
        """
        folder = joined_folder(self._prefix, prefix)
        start = f"{folder}/{name_prefix}" if folder else name_prefix
        with suppress(NotFound), self._explained("list", prefix):
            for info in self._reader.iter_objects(folder, start=start if name_prefix else ""):
                yield info.under(self._prefix)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove the objects; missing ones are fine."""
        keys = [self._key(path) for path in paths]
        with self._explained("delete from", ""):
            self._writer.delete(keys)

    def polars_options(self) -> dict[str, str]:
        """Return the storage_options with which Polars reads this store by itself."""
        return polars_options(self._backend.root, self.options)

    def _key(self, path: str) -> str:
        return joined(self._prefix, path)

    def _thing(self, path: str) -> str:
        return f"{self.url}/{path}" if path else self.url

    def _explained(self, action: str, path: str) -> AbstractContextManager[None]:
        return explained(action, self._thing(path))

    def _expect(self, path: str, found: int, expected: int) -> None:
        if found != expected:
            thing = self._thing(path)
            cause = f"{found} bytes came, expected {expected}"
            raise StorageError(f"cannot read {thing!r}: {cause}", thing=thing)
