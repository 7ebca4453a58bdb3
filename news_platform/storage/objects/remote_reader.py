"""Read from S3, Google or a web host through obstore."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, takewhile
from typing import TYPE_CHECKING

import obstore
from obstore.store import GCSStore, HTTPStore, S3Store

from news_platform.storage.objects.info import ObjectInfo

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta

# One page of an S3 or Google listing.
_PAGE = 1000


class RemoteDownload:
    """One response of the store."""

    def __init__(self, answer: "GetResult") -> None:
        self._answer = answer
        self.info = ObjectInfo.of_meta(answer.meta)

    def read(self) -> bytes:
        """Return all bytes at once."""
        return bytes(self._answer.bytes())

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of at least this size."""
        return self._answer.stream(size_bytes)

    def close(self) -> None:
        """Leave it to the client, which closes what nobody holds."""


class RemoteReader:
    """Reading of one bucket or host."""

    def __init__(self, client: S3Store | GCSStore | HTTPStore) -> None:
        self._client = client

    def open(self, key: str, *, offset: int = 0, etag: str | None = None) -> RemoteDownload:
        """Ask for the object from `offset` on, if it still has this tag."""
        options: GetOptions = {}
        if etag:
            options["if_match"] = etag
        if offset:
            options["range"] = {"offset": offset}
        return RemoteDownload(obstore.get(self._client, key, options=options))

    def head(self, key: str) -> ObjectInfo:
        """Return the facts of an object."""
        return ObjectInfo.of_meta(obstore.head(self._client, key))

    def ranges(self, key: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return these ranges, cut off at the end of the object; near ones share a request."""
        found = obstore.get_ranges(self._client, key, starts=starts, lengths=lengths)
        return [bytes(piece) for piece in found]

    def iter_objects(self, folder: str, *, start: str = "") -> Iterator[ObjectInfo]:
        """Yield what lies under `folder`, page by page, as the store sorts it."""
        self._refuse_the_web()
        # An offset is exclusive, so it lies one character before what we want.
        offset = start[:-1] or None
        pages = obstore.list(self._client, folder or None, offset=offset, chunk_size=_PAGE)
        metas: Iterable[ObjectMeta] = chain.from_iterable(pages)
        if start:
            metas = dropwhile(lambda meta: meta["path"] < start, metas)
            metas = takewhile(lambda meta: meta["path"].startswith(start), metas)
        return (ObjectInfo.of_meta(meta) for meta in metas)

    def folders(self, folder: str) -> list[str]:
        """Return the folders right under `folder`, sorted."""
        self._refuse_the_web()
        return sorted(obstore.list_with_delimiter(self._client, folder or None)["common_prefixes"])

    def _refuse_the_web(self) -> None:
        if isinstance(self._client, HTTPStore):
            raise OSError(errno.ENOTSUP, "a web address cannot be listed")
