"""What became of one item: done with a value, or lost for a reason that can be counted."""

from dataclasses import dataclass
from typing import Any, Literal

Reason = Literal["timeout", "memory", "crash", "error"]


@dataclass(frozen=True, slots=True)
class Done:
    """The target returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class Lost:
    """The item gave nothing, and no other item suffered.

    `timeout`, `memory` and `crash` cost the worker process; `error` is an exception of the target,
    with `detail` as `Type: message`. `last_report` is the last value it reported, or None.
    """

    reason: Reason
    detail: str
    last_report: Any = None


Outcome = Done | Lost
