"""Notice that the machine's clock jumped while this process ran.

A clock that jumps ahead makes everything due at once. The uptime of the machine does not jump, so
the two are compared. A difference that lasts for a day is accepted: then the clock was corrected.
"""

import time
from dataclasses import dataclass

_TOLERANCE_SECONDS = 3_600.0
_ACCEPTED_AFTER_SECONDS = 86_400.0


@dataclass(slots=True)
class ClockGuard:
    """The clock and the uptime at one moment; `noticed` is the uptime when they began to differ."""

    wall: float
    uptime: float
    noticed: float | None = None

    def jump_seconds(self, *, wall: float, uptime: float) -> float:
        """Return by how much the clock has jumped, 0 if it has not or the jump is accepted."""
        jump = (wall - self.wall) - (uptime - self.uptime)
        if abs(jump) <= _TOLERANCE_SECONDS:
            self.noticed = None
            return 0.0
        self.noticed = uptime if self.noticed is None else self.noticed
        if uptime - self.noticed < _ACCEPTED_AFTER_SECONDS:
            return jump
        self.wall, self.uptime, self.noticed = wall, uptime, None
        return 0.0


def uptime_seconds() -> float:
    """Return the seconds since the machine started, including the time it was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


PROCESS_CLOCK = ClockGuard(time.time(), uptime_seconds())
"""The clock since this process has started."""


def clock_jump_seconds() -> float:
    """Return by how much the machine's clock has jumped since this process started."""
    return PROCESS_CLOCK.jump_seconds(wall=time.time(), uptime=uptime_seconds())
