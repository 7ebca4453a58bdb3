"""Read and write the objects of a remote store through obstore.

A conditional put is sent without the client's own retries: only then does a first "exists" mean
that someone else wrote the object. After an error that leaves the outcome unknown, the put is sent
again, and from then on an object with our own bytes counts as our own write.
"""

import errno
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

from news_platform.storage.chunks import chunked
from news_platform.storage.objects.backends import Client
from news_platform.storage.objects.interfaces import Body, ObjectInfo

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta, PutMode, UpdateVersion

# The page size of an S3 or Google listing.
_PAGE = 1000
# S3 accepts at most 1000 keys per delete request.
_DELETE_BATCH = 1000


class RemoteDownload:
    """One response of the store."""

    def __init__(self, response: "GetResult") -> None:
        self._response = response
        self.info = ObjectInfo.of_meta(response.meta)

    def read(self) -> bytes:
        """Return all bytes at once."""
        return bytes(self._response.bytes())

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of at least this size."""
        return self._response.stream(size_bytes)

    def close(self) -> None:
        """Do nothing: obstore closes a connection when its response is garbage-collected."""


class RemoteReader:
    """Read one bucket or web host."""

    def __init__(self, client: Client, *, can_list: bool = True) -> None:
        self._client = client
        self._can_list = can_list

    def open(self, key: str, *, offset: int = 0, etag: str | None = None) -> RemoteDownload:
        """Request the object from `offset` on if it still has this tag."""
        options: GetOptions = {}
        # A server may send no tag; then the version cannot be checked.
        if etag:
            options["if_match"] = etag
        if offset:
            options["range"] = {"offset": offset}
        return RemoteDownload(obstore.get(self._client, key, options=options))

    def head(self, key: str) -> ObjectInfo:
        """Return the info of an object."""
        return ObjectInfo.of_meta(obstore.head(self._client, key))

    def ranges(self, key: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return these ranges, truncated at the end of the object; close ones share a request."""
        found = obstore.get_ranges(self._client, key, starts=starts, lengths=lengths)
        return [bytes(piece) for piece in found]

    def iter_objects(self, folder: str, *, start: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects under `folder` page by page, in the order of the store."""
        self._refuse_web_listing()
        # An offset is exclusive, so pass the wanted start without its last character.
        offset = start[:-1] or None
        pages = obstore.list(self._client, folder or None, offset=offset, chunk_size=_PAGE)
        metas: Iterable[ObjectMeta] = chain.from_iterable(pages)
        # The store sorts by key, so the wanted keys are adjacent.
        if start:
            metas = dropwhile(lambda meta: meta["path"] < start, metas)
            metas = takewhile(lambda meta: meta["path"].startswith(start), metas)
        return (ObjectInfo.of_meta(meta) for meta in metas)

    def folders(self, folder: str) -> list[str]:
        """Return the folders directly under `folder`, sorted."""
        self._refuse_web_listing()
        return sorted(obstore.list_with_delimiter(self._client, folder or None)["common_prefixes"])

    def _refuse_web_listing(self) -> None:
        if not self._can_list:
            raise OSError(errno.ENOTSUP, "a web address cannot be listed")


class RemoteWriter:
    """Write to one bucket; `once` is the same client without retries."""

    def __init__(
        self, store: Client, once: Client, *, retries: int, backoff_seconds: float
    ) -> None:
        self._store = store
        self._once = once
        self._retries = retries
        self._backoff_seconds = backoff_seconds

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Replace the object, then check the stored size: an upload may be truncated too."""
        sent = _size(body)
        etag = obstore.put(self._store, key, body)["e_tag"]
        info = ObjectInfo.of_meta(obstore.head(self._store, key))
        # With another tag, someone else has replaced the object since, and its size is not ours.
        if info.etag == etag and sent not in (None, info.size_bytes):
            raise OSError(errno.EIO, f"sent {sent} bytes, the store holds {info.size_bytes}")
        return info

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Create the object and return its tag, or None if someone else's exists."""
        return self._put_once(key, body, mode="create")

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Replace the object if it still has this tag; return the new tag, or None."""
        try:
            found = obstore.head(self._store, key)
        except FileNotFoundError:
            return None
        if found["e_tag"] != etag:
            return None
        # S3 compares the tag, Google the generation; the client sends what its store understands.
        version: UpdateVersion = {"e_tag": etag}
        if found["version"]:
            version["version"] = found["version"]
        return self._put_once(key, body, mode=version)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects; missing ones are ignored."""
        for part in chunked(keys, _DELETE_BATCH):
            self._delete_batch(part)

    def _delete_batch(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError:
            # Google reports a missing key and stops there, so delete the rest one by one.
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)

    def _put_once(self, key: str, body: bytes, *, mode: "PutMode") -> str | None:
        for attempt in range(self._retries + 1):
            try:
                return obstore.put(self._once, key, body, mode=mode)["e_tag"]
            except (AlreadyExistsError, PreconditionError):
                # On the first attempt another writer was first; later it may have been our own put.
                return self._own_tag(key, body) if attempt else None
            except GenericError:
                # The put may or may not have happened.
                if attempt == self._retries:
                    raise
                time.sleep(self._backoff_seconds * 2**attempt)
        return None

    def _own_tag(self, key: str, body: bytes) -> str | None:
        with suppress(FileNotFoundError):
            response = obstore.get(self._store, key)
            return response.meta["e_tag"] if response.bytes() == body else None
        return None


def _size(body: Body) -> int | None:
    if isinstance(body, bytes):
        return len(body)
    return body.stat().st_size if isinstance(body, Path) else None
