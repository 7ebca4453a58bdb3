"""What a backend must be able to do; `store.ObjectStore` is the same door over all of them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from news_platform.storage.objects.info import ObjectInfo

Body = bytes | Path | BinaryIO


class Download(Protocol):
    """An open object: the facts of this very version, and its bytes from where it was opened."""

    @property
    def info(self) -> ObjectInfo:
        """Return the facts of the whole object."""

    def read(self) -> bytes:
        """Return all bytes at once."""

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of about this size."""

    def close(self) -> None:
        """Let go of file or connection."""


class Reader(Protocol):
    """Reading of one folder, bucket or host, by full key."""

    def open(self, key: str, *, offset: int = 0, etag: str | None = None) -> Download:
        """Open the object from `offset` on, if it still has this tag."""

    def head(self, key: str) -> ObjectInfo:
        """Return the facts of an object."""

    def ranges(self, key: str, starts: Sequence[int], lengths: Sequence[int]) -> Sequence[bytes]:
        """Return these ranges, cut off at the end of the object."""

    def iter_objects(self, folder: str, *, start: str = "") -> Iterator[ObjectInfo]:
        """Yield what lies under `folder` in UTF-8 byte order, only keys beginning with `start`."""

    def folders(self, folder: str) -> list[str]:
        """Return the folders right under `folder`, sorted."""


class Writer(Protocol):
    """Writing, by full key; None for a tag means that the condition did not hold."""

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Replace the object atomically."""

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Create the object and return its tag."""

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Replace the object if it still has this tag, and return the new one."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove the objects; missing ones are fine."""
