"""What all backends share: object facts, store options and valid paths."""

import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from news_platform.errors import InputError

if TYPE_CHECKING:
    from obstore import ObjectMeta

# What a put accepts; a file object is read once, from its position to its end.
Body = bytes | Path | BinaryIO

# Unfinished files are built in local folders of this name; no path may point into one.
INCOMING = ".incoming"
_FORBIDDEN_SEGMENTS = {"", ".", "..", INCOMING}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# obstore uses such names for its own unfinished files and cannot read them back.
_RESERVED_END = re.compile(r"#\d+$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Settings of one store; the defaults suit a local folder and a signed-in cloud account.

    Without keys, boto3 or google-auth find the credentials (environment, profile, workload
    identity). `endpoint_url` is that of S3, `gcs_base_url` Google's: one process may use both.
    `service_account_key` is the JSON text or the path of its file, read for a gs:// store only.
    `backoff_seconds` is the shortest wait before a retry; None means 0.1 s, or 1 s for https, since
    public archives ask for at most one retry per second.
    The repr omits the secrets.
    """

    endpoint_url: str | None = field(default=None, repr=False)
    gcs_base_url: str | None = field(default=None, repr=False)
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    service_account_key: str | None = field(default=None, repr=False)
    anonymous: bool = False
    allow_http: bool = False
    retries: int = 8
    timeout_seconds: float = 60.0
    backoff_seconds: float | None = None


DEFAULT_OPTIONS = StoreOptions()


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The path, size, tag and time of one stored object; new content has a new `etag`."""

    path: str
    size_bytes: int
    etag: str
    modified_at: datetime

    @classmethod
    def of_meta(cls, meta: "ObjectMeta") -> Self:
        """Return the info for an object from obstore's metadata."""
        return cls(meta["path"], meta["size"], meta["e_tag"] or "", meta["last_modified"])

    @classmethod
    def of_file(cls, path: str, facts: os.stat_result) -> Self:
        """Return the info for a local file, with the same tag that obstore's listings give it."""
        # The format of obstore: inode, microseconds and size in hexadecimal.
        stamp = facts.st_mtime_ns // 1000
        etag = f'"{facts.st_ino:x}-{stamp:x}-{facts.st_size:x}"'
        return cls(path, facts.st_size, etag, _EPOCH + timedelta(microseconds=stamp))

    def under(self, prefix: str) -> "ObjectInfo":
        """Return the info with the path relative to `prefix`."""
        if not prefix:
            return self
        path = self.path[len(prefix) + 1 :]
        return ObjectInfo(path, self.size_bytes, self.etag, self.modified_at)


def valid_text(name: str) -> str:
    """Return a name that every file system and object store accepts, or raise ValueError."""
    if not name:
        raise ValueError("the name is empty")
    if _CONTROL.search(name):
        raise ValueError("the name has a control character")
    # Arguments and file names that are not UTF-8 arrive as surrogates.
    if not is_text(name):
        raise ValueError("the name is not valid UTF-8")
    return name


def is_text(name: str) -> bool:
    """Return whether the name can be written as UTF-8."""
    return not _SURROGATE.search(name)


def is_listable(name: str) -> bool:
    """Return whether a file of this name, which anyone may have placed, can have a path here."""
    return not (_CONTROL.search(name) or _SURROGATE.search(name) or _RESERVED_END.search(name))


def join_path(prefix: str, path: str) -> str:
    """Return `path` under `prefix`; raise InputError for a path that some backend cannot store.

    The rules are the same on every backend, so that data can move between them.
    """
    has_odd_text = _CONTROL.search(path) or _SURROGATE.search(path)
    if not _FORBIDDEN_SEGMENTS.isdisjoint(path.split("/")) or has_odd_text:
        raise InputError(f"invalid path in a store: {path!r}", thing=path)
    if _RESERVED_END.search(path):
        raise InputError(f"a stored name may not end in '#' and digits: {path!r}", thing=path)
    return f"{prefix}/{path}" if prefix else path


def join_folder(prefix: str, folder: str) -> str:
    """Return `folder` under `prefix`; either may be empty or end in '/'."""
    folder = folder.rstrip("/")
    return join_path(prefix, folder) if folder else prefix


def is_unfinished(path: str) -> bool:
    """Return whether the path belongs to a file that is still being written."""
    # The substring test comes first because it is cheap and listings have many paths.
    return INCOMING in path and INCOMING in path.split("/")
