"""What goes wrong on purpose, and how many calls a minute are allowed."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal["over_quota", "before", "after", "late"]
"""429; 503 before it is applied; 503 after; applied late, with no answer at all."""


@dataclass(slots=True)
class Faults:
    """A share of calls that fail, drawn from a seed; `planned` ones come first, None: no fault."""

    share: float = 0.0
    seed: int = 0
    planned: deque[Fault | None] = field(default_factory=deque)
    # A late change is applied after up to so many further calls.
    latest: int = 6
    happened: dict[Fault, int] = field(default_factory=dict)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self, *, is_write: bool) -> Fault | None:
        """Return what happens to this call; planned faults are for writes."""
        fault = self._next(is_write=is_write)
        if fault:
            self.happened[fault] = self.happened.get(fault, 0) + 1
        return fault

    def calls_until_late(self) -> int:
        """Return after how many further calls a late change is applied."""
        return self._random.randint(1, self.latest)

    def _next(self, *, is_write: bool) -> Fault | None:
        if is_write and self.planned:
            return self.planned.popleft()
        if self._random.random() >= self.share:
            return None
        kinds: list[Fault] = ["over_quota", "before"]
        return self._random.choice([*kinds, "after", "late"] if is_write else kinds)


@dataclass(slots=True)
class Quota:
    """So many calls in a window by the clock given; the rest is answered 429."""

    calls: int
    clock: Callable[[], float]
    window_seconds: float = 60.0
    refused: int = 0
    used: int = 0
    _times: deque[float] = field(default_factory=deque)

    def admits(self) -> bool:
        """Count a call, or refuse it."""
        now = self.clock()
        while self._times and self._times[0] <= now - self.window_seconds:
            self._times.popleft()
        if len(self._times) >= self.calls:
            self.refused += 1
            return False
        self._times.append(now)
        self.used += 1
        return True
