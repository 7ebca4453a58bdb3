"""What a call to Google raises, told in our own words: refused, over its quota, or in doubt.

A server in trouble, or a proxy before it, may answer anything: a page of HTML, half a document,
nothing. All of that leaves the fate of a change unknown.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import requests
from google.auth.exceptions import GoogleAuthError
from gspread.exceptions import APIError

from news_platform.errors import ConfigError, FetchError, InputError
from news_platform.rss.sheets.access import Timing

Result = TypeVar("Result")

# Enough to know an error page by.
_SHOWN_CHARACTERS = 200
# Timed out, or given up because of another change: to be looked at and tried again.
_ABANDONED = (408, 409)
# Drive says 403 where Sheets says 429.
_RATE_LIMITS = ("rateLimitExceeded", "userRateLimitExceeded")

# Google asks for waits that double up to about a minute.
_LONGEST_BACKOFF_SECONDS = 64.0


class Doubt(FetchError):
    """Whether a change was applied is unknown."""


class Refused(InputError):
    """Google understood the change and did not apply it."""


class OverQuota(FetchError):
    """Too many calls; this one was not applied."""


@dataclass(slots=True)
class Pace:
    """At most `calls` in any window of so many seconds."""

    calls: int
    window_seconds: float
    _times: deque[float] = field(default_factory=deque)

    def wait_seconds(self, now: float) -> float:
        """Return how long to wait before the next call; 0 when it may go at once."""
        while self._times and self._times[0] <= now - self.window_seconds:
            self._times.popleft()
        if len(self._times) < self.calls:
            return 0.0
        return self._times[0] + self.window_seconds - now

    def note(self, now: float) -> None:
        """Count one call."""
        self._times.append(now)


def backoff_seconds(tries: int) -> float:
    """Return the wait after so many failures in a row: 1, 2, 4 … up to 64 s."""
    return float(min(2.0 ** (tries - 1), _LONGEST_BACKOFF_SECONDS))


@dataclass(slots=True)
class ApiCaller:
    """The line to Google: paced, patient, and clear about what failed."""

    timing: Timing
    waits: int = 0
    _reads: Pace = field(init=False)
    _writes: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._reads = Pace(self.timing.calls, self.timing.window_seconds)
        self._writes = Pace(self.timing.calls, self.timing.window_seconds)

    def read(self, call: Callable[[], Result]) -> Result:
        """Make a call that changes nothing, again and again until it is answered."""
        for tries in range(1, self.timing.tries):
            try:
                return self._call(call, self._reads)
            except Doubt:
                self.timing.sleep(backoff_seconds(tries))
        return self._call(call, self._reads)

    def write(self, call: Callable[[], Result]) -> Result:
        """Make a call that changes something, once."""
        return self._call(call, self._writes)

    def pause(self) -> None:
        """Give a call whose answer was lost time to take effect."""
        self.timing.sleep(backoff_seconds(self.timing.tries))

    def _call(self, call: Callable[[], Result], pace: Pace) -> Result:
        for tries in range(1, self.timing.tries):
            self._wait(pace.wait_seconds(self.timing.clock()))
            pace.note(self.timing.clock())
            try:
                return explained(call)
            except OverQuota:
                self._wait(backoff_seconds(tries))
        return explained(call)

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self.waits += 1
            self.timing.sleep(seconds)


def explained(call: Callable[[], Result]) -> Result:
    """Make the call; what it raises is told in our own words."""
    try:
        return call()
    except APIError as error:
        # The code is the document's own; an answer without one has only its status.
        is_coded = isinstance(error.code, int) and error.code > 0
        code = error.code if is_coded else error.response.status_code
        if _is_rate_limit(error.error):
            code = 429
        raise _told(code, str(error.error.get("message", ""))) from error
    except PermissionError as error:
        raise _told(403, "the book is not shared with the service account") from error
    except GoogleAuthError as error:
        raise _untrusted(error) from error
    except requests.RequestException as error:
        raise Doubt(f"no answer from Google Sheets: {_brief(error)}", reason="network") from error
    except (AttributeError, KeyError, TypeError) as error:
        # gspread takes the shape of every answer for granted.
        raise Doubt(f"Google Sheets answers nonsense: {error!r}", reason="answer") from error


def _is_rate_limit(error: Mapping[str, Any]) -> bool:
    said = error.get("errors")
    items = said if isinstance(said, list) else []
    return any(isinstance(item, dict) and item.get("reason") in _RATE_LIMITS for item in items)


def _told(code: int, message: str) -> Exception:
    message = _brief(message)
    if code == 429:
        return OverQuota(f"Google Sheets: {message}", reason="quota")
    if code >= 500 or code in _ABANDONED:
        return Doubt(f"Google Sheets answers {code}: {message}", reason="status")
    if code in (401, 403):
        cure = "share the book with the service account, or check GOOGLE_SERVICE_ACCOUNT_JSON"
        return ConfigError(f"Google Sheets refuses: {message}; {cure}")
    return Refused(f"Google Sheets refuses: {message}")


def _untrusted(error: GoogleAuthError) -> Exception:
    """Tell a key that Google refuses, which it says in a document, from a failing token server."""
    is_told = any(isinstance(said, dict) and "error" in said for said in error.args)
    if is_told and not error.retryable:
        return ConfigError(f"Google refuses the service account: {_brief(error)}")
    return Doubt(f"no token from Google: {_brief(error)}", reason="token")


def _brief(said: object) -> str:
    return " ".join(str(said).split())[:_SHOWN_CHARACTERS]
