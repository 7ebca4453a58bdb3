"""Injected faults, and the quota of calls per minute."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

Fault = Literal["over_quota", "before", "after", "late"]
"""429; 503 before the change is applied; 503 after; applied late, without any answer."""

_ON_READS: tuple[Fault, ...] = ("over_quota", "before")


@dataclass(slots=True)
class Faults:
    """A share of failing calls, drawn from a seed; `planned` faults come first, None is no fault.

    The share applies to calls to Sheets; Drive has planned faults only. While the clock is before
    `over_quota_until`, every call to either is answered 429.
    """

    share: float = 0.0
    seed: int = 0
    kinds: tuple[Fault, ...] = get_args(Fault)
    planned: deque[Fault | None] = field(default_factory=deque)
    planned_drive: deque[Fault | None] = field(default_factory=deque)
    # A late change is applied after at most this many further calls.
    latest: int = 6
    # Real seconds without an answer for the caller of a late change; 0 closes the connection.
    stall_seconds: float = 0.0
    over_quota_until: float = float("-inf")
    happened: dict[Fault, int] = field(default_factory=dict)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self, *, is_write: bool, now: float) -> Fault | None:
        """Return what happens to this call to Sheets; planned faults are for writes."""
        return self._counted(self._in_window(now) or self._next(is_write=is_write))

    def draw_drive(self, *, is_write: bool, now: float) -> Fault | None:
        """Return what happens to this call to Drive; planned faults are for writes."""
        planned = self.planned_drive if is_write else None
        return self._counted(self._in_window(now) or (planned.popleft() if planned else None))

    def calls_until_late(self) -> int:
        """Return after how many further calls a late change is applied."""
        return self._random.randint(1, self.latest)

    def _in_window(self, now: float) -> Fault | None:
        return "over_quota" if now < self.over_quota_until else None

    def _next(self, *, is_write: bool) -> Fault | None:
        if is_write and self.planned:
            return self.planned.popleft()
        kinds = [kind for kind in self.kinds if is_write or kind in _ON_READS]
        if self._random.random() >= self.share or not kinds:
            return None
        return self._random.choice(kinds)

    def _counted(self, fault: Fault | None) -> Fault | None:
        if fault:
            self.happened[fault] = self.happened.get(fault, 0) + 1
        return fault


@dataclass(slots=True)
class Quota:
    """A number of calls per window of the given clock; further calls are answered 429."""

    calls: int
    clock: Callable[[], float]
    window_seconds: float = 60.0
    refused: int = 0
    used: int = 0
    _times: deque[float] = field(default_factory=deque)

    def admits(self) -> bool:
        """Count a call, or reject it."""
        now = self.clock()
        while self._times and self._times[0] <= now - self.window_seconds:
            self._times.popleft()
        if len(self._times) >= self.calls:
            self.refused += 1
            return False
        self._times.append(now)
        self.used += 1
        return True
