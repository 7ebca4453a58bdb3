"""How to reach a Google Sheet, how fast it may be called, and how much goes into one call."""

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


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How much goes into one call and one spreadsheet, and when to give up."""

    max_rows: int = 1_000
    # Google recommends at most 2 MB per request.
    max_bytes: int = 2_000_000
    # Characters of an article's text that are shown; the ledger holds all of it.
    clean_text_limit: int = 20_000
    # Google's limit is 10 million cells per spreadsheet.
    max_cells: int = 9_500_000
    # How long a writer that died keeps others out; the lease is extended before every batch.
    lease_seconds: float = 600.0
    # No copy of a batch arrives after 300 others, which take a quarter of an hour at Google's
    # quota. A spreadsheet holds 30,000 characters of metadata, 35 per fence.
    max_fences: int = 300
    # With the backoff between them, the tries take seven and a half minutes.
    tries: int = 12
