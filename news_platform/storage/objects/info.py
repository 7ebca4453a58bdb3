"""The facts of one stored object, as every backend tells them."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from obstore import ObjectMeta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a store knows of one object; a new content has a new `etag`."""

    path: str
    size_bytes: int
    etag: str
    modified_at: datetime

    @classmethod
    def of_meta(cls, meta: "ObjectMeta") -> Self:
        """Return the facts as obstore tells them."""
        return cls(meta["path"], meta["size"], meta["e_tag"] or "", meta["last_modified"])

    @classmethod
    def of_file(cls, path: str, facts: os.stat_result) -> Self:
        """Return the facts of a local file, with the very tag that obstore's listings give it."""
        stamp = facts.st_mtime_ns // 1000
        etag = f'"{facts.st_ino:x}-{stamp:x}-{facts.st_size:x}"'
        return cls(path, facts.st_size, etag, _EPOCH + timedelta(microseconds=stamp))

    def under(self, prefix: str) -> "ObjectInfo":
        """Return the facts with the path relative to `prefix`."""
        if not prefix:
            return self
        path = self.path[len(prefix) + 1 :]
        return ObjectInfo(path, self.size_bytes, self.etag, self.modified_at)
