"""Our few error types; each tells the caller what to do next.

    NewsPlatformError
      InputError     what we were given cannot be right; a retry will not help
      FetchError     the outside world failed; a retry may help
      StorageError   what lies in storage breaks its own promise; stop and look
        Conflict     somebody else changed it first; read again and retry
      ConfigError    a setting is missing or wrong; fix it and start again

A message says what failed, on which thing (by `repr`), expected against found.
"""


class NewsPlatformError(Exception):
    """Anything this platform raises on purpose; `thing` names what it is about."""

    def __init__(self, message: str, *, thing: str | None = None) -> None:
        super().__init__(message)
        self.thing = thing


class InputError(NewsPlatformError):
    """What we were given cannot be right; a retry will not help."""


class FetchError(NewsPlatformError):
    """The outside world failed; a retry may help.

    `reason` is one short word to count by: timeout, dns, tls, status, refused, too_large, ...
    """

    def __init__(self, message: str, *, thing: str | None = None, reason: str = "network") -> None:
        super().__init__(message, thing=thing)
        self.reason = reason


class StorageError(NewsPlatformError):
    """What lies in storage breaks its own promise; stop and look."""


class Conflict(StorageError):
    """Somebody else changed it first; read again and retry."""


class ConfigError(NewsPlatformError):
    """A setting is missing or wrong; fix it and start again."""
