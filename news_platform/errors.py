"""The error types of the platform; the type of an error says what the caller should do.

    NewsPlatformError
      InputError     the input is invalid; a retry does not help
      FetchError     a request to the outside failed; a retry may help
      StorageError   stored data is damaged or inconsistent; stop and look
        Conflict     another process changed the object first; read it again and retry
      ConfigError    a setting is missing or wrong; fix it and start again

A message states what failed, on which thing (by `repr`), and what was expected and found.
"""


class NewsPlatformError(Exception):
    """The base of all errors that the platform raises; `thing` names what failed."""

    def __init__(self, message: str, *, thing: str | None = None) -> None:
        super().__init__(message)
        self.thing = thing


class InputError(NewsPlatformError):
    """The input is invalid; a retry does not help."""


class FetchError(NewsPlatformError):
    """A request to the outside failed; a retry may help.

    `reason` is one short word for statistics: timeout, dns, tls, status, refused, too_large, ...
    """

    def __init__(self, message: str, *, thing: str | None = None, reason: str = "network") -> None:
        super().__init__(message, thing=thing)
        self.reason = reason


class StorageError(NewsPlatformError):
    """Stored data is damaged or inconsistent; stop and look."""


class Conflict(StorageError):
    """Another process changed the object first; read it again and retry."""


class ConfigError(NewsPlatformError):
    """A setting is missing or wrong; fix it and start again."""
