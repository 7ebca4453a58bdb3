"""Decide whether anybody still works on a task, from what the workers say they hold."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

# One question to all workers serves every run of a monitoring round.
_ANSWER_SECONDS = 2.0


class Verdict(enum.Enum):
    """What is known of a task: held by a worker, held by nobody for too long, or not sure yet."""

    ALIVE = "alive"
    LOST = "lost"
    UNSURE = "unsure"


@dataclass
class Liveness:
    """Remembers since when nobody has claimed to hold a task.

    `ask` returns the ids of all tasks that answering workers hold. A broker that does not answer
    proves nothing: while `ask` raises one of `trouble`, every task is unsure and its silence does
    not count.
    """

    ask: Callable[[], frozenset[str]]
    clock: Callable[[], float]
    silence_seconds: float
    trouble: tuple[type[Exception], ...] = (OSError,)
    _held: frozenset[str] = frozenset()
    _asked_at: float | None = None
    _missing_since: dict[str, float] = field(default_factory=dict)

    def verdict(self, task_id: str) -> Verdict:
        """Tell what is known of a task now."""
        now = self.clock()
        if not self._refresh(now):
            return Verdict.UNSURE
        if task_id in self._held:
            self._missing_since.pop(task_id, None)
            return Verdict.ALIVE
        since = self._missing_since.setdefault(task_id, now)
        return Verdict.LOST if now - since >= self.silence_seconds else Verdict.UNSURE

    def forget(self, task_id: str) -> None:
        """Drop what is remembered of a task that has ended."""
        self._missing_since.pop(task_id, None)

    def _refresh(self, now: float) -> bool:
        if self._asked_at is not None and now - self._asked_at < _ANSWER_SECONDS:
            return True
        try:
            self._held = self.ask()
        except self.trouble:
            self._asked_at = None
            self._missing_since.clear()
            return False
        self._asked_at = self.clock()
        return True
