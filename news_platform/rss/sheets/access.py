"""How to reach the Google Sheet that the settings name; without one the view is a workbook."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from news_platform.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SheetAccess:
    """The account, the spreadsheet by id or title, and an `endpoint` to call instead of Google."""

    service_account: str = field(repr=False)
    spreadsheet_id: str | None = None
    spreadsheet_title: str = ""
    endpoint: str | None = None

    @property
    def name(self) -> str:
        """Return the id or title from the settings."""
        return self.spreadsheet_id or self.spreadsheet_title


@dataclass(frozen=True, slots=True)
class CallTiming:
    """A clock in seconds, a sleep function, and the limits of the calls to Google."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    # Reads per window, and as many writes: the default is Google's quota per user.
    calls: int = 60
    window_seconds: float = 60.0
    timeout_seconds: float = 120.0
    tries: int = 8


class Given(Protocol):
    """What a person may set; the names are those of the settings."""

    @property
    def service_account(self) -> str | None:
        """Return the key."""

    @property
    def spreadsheet_id(self) -> str | None:
        """Return the id of the book."""

    @property
    def spreadsheet_title(self) -> str | None:
        """Return the title of the book."""

    @property
    def endpoint(self) -> str | None:
        """Return what stands in for Google."""


def sheets_access(given: Given) -> SheetAccess | None:
    """Return how to reach the Google Sheet, or None if the settings name none."""
    if not (given.spreadsheet_id or given.spreadsheet_title):
        return None
    if given.service_account is None:
        raise ConfigError(
            "a Google Sheet is set, but no account to write it with: "
            "set GOOGLE_SERVICE_ACCOUNT_JSON to the path of a service account key",
            thing="GOOGLE_SERVICE_ACCOUNT_JSON",
        )
    return SheetAccess(
        given.service_account,
        spreadsheet_id=given.spreadsheet_id,
        spreadsheet_title=given.spreadsheet_title or "",
        endpoint=given.endpoint,
    )
