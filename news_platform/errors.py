"""The error types of the platform; the type of an error says what the caller should do.

    NewsPlatformError
      InputError     the input is invalid; a retry does not help
      FetchError     a request to the outside failed; a retry may help
      DamagedInput   what it is built from is damaged; a retry helps after its repair
      StorageError   stored data is damaged or inconsistent; stop and look
        Conflict     another process changed the object first; read it again and retry
        StoreUnavailable   the store does not answer or has no room; a retry may help
      ConfigError    a setting is missing or wrong; fix it and start again

A message states what failed, on which thing (by `repr`), and what was expected and found. It shows
no password of a URL and no key in its query, wherever the text came from.
"""

import re
from collections.abc import Collection

_BLOT = "***"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_QUERY = re.compile(
    r"(?i)\b([a-z_-]*(?:key|token|secret|signature|credential|password|passwd|pwd|sig|auth)=)"
    r"[^&\s'\"]+"
)


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """Replace these secrets in a text, and the credentials of all URLs in it."""
    # The longest first, so that no part of one remains.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _BLOT)
    return _QUERY.sub(rf"\1{_BLOT}", _CREDENTIALS.sub(_BLOT, text))


# WARC files are named in full: their addresses are those of the crawl, not of pages.
_ADDRESS = re.compile(r"(?i)\b(https?://[^/\s'\"<>|\\]+)/(?!crawl-data/)[^\s'\"<>|\\]+")


def hide_addresses(text: str) -> str:
    """Cut the addresses of pages in a text after the host, for what leaves the root."""
    return _ADDRESS.sub(r"\1/…", text)


class hiding_addresses:
    """Cut the addresses of pages in the errors that leave the block, and in their causes."""

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Change the messages of an error and of those that caused it."""
        while error is not None:
            error.args = tuple(
                hide_addresses(one) if isinstance(one, str) else one for one in error.args
            )
            error = error.__cause__ or error.__context__


def hide_credentials(error: Exception) -> Exception:
    """Redact the message of a library's error, which a log shows as the cause of ours."""
    shown = redacted(str(error))
    # The text of an OSError is not in its arguments; it names a local file.
    if shown != str(error) and not isinstance(error, OSError):
        error.args = (shown,)
    return error


class NewsPlatformError(Exception):
    """The base of all errors that the platform raises; `thing` names what failed."""

    def __init__(self, message: str, *, thing: str | None = None) -> None:
        super().__init__(redacted(message))
        self.thing = redacted(thing) if thing is not None else None


class InputError(NewsPlatformError):
    """The input is invalid; a retry does not help."""


class FetchError(NewsPlatformError):
    """A request to the outside failed; a retry may help.

    `reason` is one short word for statistics: timeout, dns, tls, status, refused, too_large, ...
    """

    def __init__(self, message: str, *, thing: str | None = None, reason: str = "network") -> None:
        super().__init__(message, thing=thing)
        self.reason = reason


class DamagedInput(NewsPlatformError):
    """What the output would be built from is damaged; a retry helps after its repair."""


class StorageError(NewsPlatformError):
    """Stored data is damaged or inconsistent; stop and look."""


class Conflict(StorageError):
    """Another process changed the object first; read it again and retry."""


class StoreUnavailable(StorageError):
    """The store does not answer or has no room; its data are sound, so a retry may help."""


class ConfigError(NewsPlatformError):
    """A setting is missing or wrong; fix it and start again."""


def is_retriable(kind: type[BaseException]) -> bool:
    """Return whether a retry may help after an error of this class."""
    if issubclass(kind, Conflict | StoreUnavailable):
        return True
    return not issubclass(kind, InputError | StorageError | ConfigError)


def require_format(found: object, newest: int, *, path: str) -> None:
    """Raise StorageError if a stored document has a later format than this version reads."""
    if not isinstance(found, int) or found > newest:
        raise StorageError(
            f"{path!r} has format {found!r}, this version reads up to {newest}: "
            "update News Platform",
            thing=path,
        )
