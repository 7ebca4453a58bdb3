"""How to reach a Google Sheet, and how fast it may be called."""

from collections.abc import Callable
from dataclasses import dataclass, field


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
