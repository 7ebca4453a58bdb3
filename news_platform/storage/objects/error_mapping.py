"""Turn what obstore and the system raise into our errors: one line, the thing, the cure."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from news_platform.errors import ConfigError, NewsPlatformError, StorageError

# A store answers 404 both for a missing object and for a missing bucket; only the text tells.
_MISSING_BUCKET = re.compile(r"NoSuchBucket|bucket does not exist", re.IGNORECASE)
_UNREACHABLE = re.compile(r"error sending request|error trying to connect|dns error|timed out")
_ADDRESS = re.compile(r"https?://[^/\s]+")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
_CURES = {
    errno.ENOSPC: "the disk is full; free some space or choose another root",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another root",
    errno.EROFS: "the file system is read-only; choose a writable root",
    errno.EACCES: "permission denied; make the folder writable or choose another root",
    errno.EPERM: "permission denied; make the folder writable or choose another root",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another root",
    errno.EEXIST: "a part of the path is a file, not a folder; choose another root",
    errno.EISDIR: "a folder stands where the file should be; move it away",
    errno.ENAMETOOLONG: "the name is too long for this file system",
}


class NotFound(StorageError):
    """There is no such object."""


@contextmanager
def explained(action: str, thing: str) -> Iterator[None]:
    """Raise our own error for whatever the store or the system raises inside."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise problem(error, action, without_secrets(thing)) from error


def problem(error: Exception, action: str, thing: str) -> NewsPlatformError:
    """Return our error for `error`, raised while we tried to `action` the `thing`."""
    said = _first_line(error)
    opening = f"cannot {action} {thing!r}: "
    if _MISSING_BUCKET.search(str(error)):
        return ConfigError(
            f"{opening}the bucket does not exist; create it or correct the root", thing=thing
        )
    if isinstance(error, FileNotFoundError) or _is_file_on_the_way(error, action):
        return NotFound(f"{opening}it does not exist", thing=thing)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return ConfigError(
            f"{opening}the store refused our credentials; check the keys", thing=thing
        )
    if isinstance(error, OSError):
        return StorageError(opening + _system_cause(error), thing=thing)
    if _UNREACHABLE.search(said):
        cause = f"{_host(said)} is unreachable; check the address and the network"
        return StorageError(opening + cause, thing=thing)
    return StorageError(opening + said, thing=thing)


def without_secrets(url: str) -> str:
    """Return the URL without user name and password."""
    return _USER_INFO.sub("", url)


def _is_file_on_the_way(error: Exception, action: str) -> bool:
    # Below a file nothing can lie: to a reader that is one more unknown key.
    return isinstance(error, NotADirectoryError) and action != "write"


def _system_cause(error: OSError) -> str:
    return _CURES.get(error.errno or 0) or (error.strerror or str(error)).lower()


def _host(said: str) -> str:
    found = _ADDRESS.search(said)
    return found.group() if found else "the store"


def _first_line(error: Exception) -> str:
    # obstore appends a "Debug source" block of many lines.
    return without_secrets(str(error).strip().partition("\n")[0])
