"""Map errors of obstore and the operating system to our errors: one line with thing and cure."""

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from news_platform.errors import (
    ConfigError,
    NewsPlatformError,
    StorageError,
    StoreUnavailable,
    hide_credentials,
)
from news_platform.text.readable import bytes_text

# A store responds 404 for a missing object and for a missing bucket; only the text differs.
_MISSING_BUCKET = re.compile(r"NoSuchBucket|bucket does not exist", re.IGNORECASE)
_UNREACHABLE = re.compile(r"error sending request|error trying to connect|dns error|timed out")
# Answers of a store that is overloaded or down, after the client's own retries.
_OVERLOADED = re.compile(r"\b(?:429|50[0234])\b|SlowDown|ServiceUnavailable|InternalError")
# What ends by itself, or when somebody frees space: the disk, the network file system, the network.
_PASSING = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EBUSY),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOTCONN, errno.ETIMEDOUT),
        *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE),
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH),
    }
)
_ADDRESS = re.compile(r"https?://[^/\s]+")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
_CURES = {
    errno.ENOSPC: "the disk is full; free some space or choose another root",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another root",
    errno.EROFS: "the file system is read-only; choose a writable root",
    errno.EACCES: "permission denied; make the folder writable or choose another root",
    errno.EPERM: "permission denied; make the folder writable or choose another root",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another root",
    # mkdir raises this instead of ENOTDIR if the last part of the path is a file.
    errno.EEXIST: "a part of the path is a file, not a folder; choose another root",
    errno.EISDIR: "a folder exists at this path; move it away",
    errno.ENAMETOOLONG: "the name is too long for this file system",
}


class NotFound(StorageError):
    """The object does not exist."""


@contextmanager
def map_errors(action: str, thing: str) -> Iterator[None]:
    """Raise our own error for any error of the store or the system inside the block."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        mapped = mapped_error(error, action, without_secrets(thing))
        raise mapped from hide_credentials(error)


def mapped_error(error: Exception, action: str, thing: str) -> NewsPlatformError:
    """Return our error for `error`, which was raised by the `action` on the `thing`."""
    message = _first_line(error)
    start = f"cannot {action} {thing!r}: "
    # Checked first, because obstore raises FileNotFoundError for a missing bucket too.
    if _MISSING_BUCKET.search(str(error)):
        return ConfigError(
            f"{start}the bucket does not exist; create it or correct the root", thing=thing
        )
    if isinstance(error, FileNotFoundError) or _is_below_a_file(error, action):
        return NotFound(f"{start}it does not exist", thing=thing)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return ConfigError(f"{start}the store refused our credentials; check the keys", thing=thing)
    if isinstance(error, OSError):
        kind = StoreUnavailable if error.errno in _PASSING else StorageError
        return kind(start + _system_cause(error) + _space(error, thing), thing=thing)
    if _UNREACHABLE.search(message):
        cause = f"{_host(message)} is unreachable; check the address and the network"
        return StoreUnavailable(start + cause, thing=thing)
    if _OVERLOADED.search(message):
        return StoreUnavailable(start + message, thing=thing)
    return StorageError(start + message, thing=thing)


def without_secrets(url: str) -> str:
    """Return the URL without user name and password."""
    return _USER_INFO.sub("", url)


def _is_below_a_file(error: Exception, action: str) -> bool:
    # Nothing can exist below a file: for a reader such a path is just another missing key.
    return isinstance(error, NotADirectoryError) and action != "write"


def _system_cause(error: OSError) -> str:
    return _CURES.get(error.errno or 0) or (error.strerror or str(error)).lower()


def _space(error: OSError, thing: str) -> str:
    """Return the folder and its free space if the disk is full: a disk may be full of inodes."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return ""
    folder = next((path for path in Path(thing).parents if path.is_dir()), Path("/"))
    return f" ({bytes_text(shutil.disk_usage(folder).free)} free in {str(folder)!r})"


def _host(message: str) -> str:
    found = _ADDRESS.search(message)
    return found.group() if found else "the store"


def _first_line(error: Exception) -> str:
    # obstore appends a "Debug source" block of many lines.
    return without_secrets(str(error).strip().partition("\n")[0])
