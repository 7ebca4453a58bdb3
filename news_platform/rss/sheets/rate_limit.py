"""How long to wait before the next call, so that no minute holds more calls than are allowed."""

from collections import deque
from dataclasses import dataclass, field

# Google asks for waits that double up to about a minute.
_LONGEST_BACKOFF_SECONDS = 64.0


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
