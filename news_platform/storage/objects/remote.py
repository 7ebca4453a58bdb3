"""Write to an object store: one request or a multipart upload, and doubt resolved by reading back.

A conditional put is sent without the client's own retries: only then does a first "exists" surely
mean somebody else. After an error that leaves the outcome open we ask again, and from then on our
own bytes count as our own write.
"""

import errno
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError
from obstore.store import GCSStore, S3Store

from news_platform.storage.objects.info import ObjectInfo
from news_platform.storage.objects.interfaces import Body

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion

# S3 takes a thousand keys a request.
_DELETE_BATCH = 1000


class RemoteWriter:
    """Writing to one bucket; `once` is the same client without retries."""

    def __init__(
        self,
        store: S3Store | GCSStore,
        once: S3Store | GCSStore,
        *,
        retries: int,
        backoff_seconds: float,
    ) -> None:
        self._store = store
        self._once = once
        self._retries = retries
        self._backoff_seconds = backoff_seconds

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Replace the object, then ask the store what it holds: an upload may be cut short too."""
        sent = _size(body)
        etag = obstore.put(self._store, key, body)["e_tag"]
        info = ObjectInfo.of_meta(obstore.head(self._store, key))
        if info.etag == etag and sent not in (None, info.size_bytes):
            raise OSError(errno.EIO, f"sent {sent} bytes, the store holds {info.size_bytes}")
        return info

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Create the object and return its tag; None when somebody else's stands there."""
        return self._settled(key, body, mode="create")

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Replace the object if it still has this tag and return the new one; None when not."""
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
        return self._settled(key, body, mode=version)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove the objects; missing ones are fine."""
        wanted = list(keys)
        for start in range(0, len(wanted), _DELETE_BATCH):
            self._delete_batch(wanted[start : start + _DELETE_BATCH])

    def _delete_batch(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError:  # Google says so of a missing one, and stops there
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)

    def _settled(self, key: str, body: bytes, *, mode: "PutMode") -> str | None:
        for attempt in range(self._retries + 1):
            try:
                return obstore.put(self._once, key, body, mode=mode)["e_tag"]
            except (AlreadyExistsError, PreconditionError):
                return self._own_tag(key, body) if attempt else None
            except GenericError:
                if attempt == self._retries:
                    raise
                time.sleep(self._backoff_seconds * 2**attempt)
        return None

    def _own_tag(self, key: str, body: bytes) -> str | None:
        with suppress(FileNotFoundError):
            answer = obstore.get(self._store, key)
            return answer.meta["e_tag"] if answer.bytes() == body else None
        return None


def _size(body: Body) -> int | None:
    if isinstance(body, bytes):
        return len(body)
    return body.stat().st_size if isinstance(body, Path) else None
