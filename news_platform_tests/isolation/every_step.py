"""Run the units of a stage once per step of one of them, with an exception at that step."""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from news_platform_tests.isolation.injection import (
    Injected,
    Step,
    Victim,
    clear_caches,
    failing_step,
    traced_steps,
)

PLANTED = "planted"
_ATTEMPTS = 5
# Of the steps; some are the victim's alone only if its batch happens to hold nothing else.
_MAX_NOT_RAISED = 0.05


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a run stored about the good units, and the number of all units by outcome."""

    neighbours: Any
    outcomes: Mapping[str, int]

    @property
    def units(self) -> int:
        """Return how many units have an outcome."""
        return sum(self.outcomes.values())


Run = Callable[[], StageResult]
# Set up new stores and ledgers; the steps of this are not the unit's.
Prepare = Callable[[], Run]


def all_steps(prepare: Prepare, victim: Victim) -> tuple[list[Step], StageResult]:
    """Return the steps of the victim, and what an undisturbed run stores."""
    run = prepare()
    clear_caches()
    with traced_steps(victim) as steps:
        undisturbed = run()
    assert undisturbed.neighbours
    return sorted(steps), undisturbed


def fail_at_steps(
    prepare: Prepare,
    victim: Victim,
    caplog: pytest.LogCaptureFixture,
    *,
    most: int | None = None,
    again: bool = True,
    only: Callable[[Step], bool] = lambda step: True,
) -> None:
    """Fail at each step, or at a seeded choice of at most `most`; nearly all of them must raise.

    With `again`, every other step goes on to fail after the unit's boundary.
    """
    caplog.set_level(logging.WARNING)
    steps, undisturbed = all_steps(prepare, victim)
    chosen = [step for step in steps if only(step)]
    assert chosen
    if most is not None:
        chosen = random.Random(victim.name).sample(chosen, min(most, len(chosen)))
    not_raised = []
    for place, step in enumerate(chosen):
        caplog.clear()
        disturbed = _run_failing(prepare, victim, step, once=place % 2 == 0 or not again)
        if disturbed is None:
            not_raised.append(step)
            continue
        assert disturbed.neighbours == undisturbed.neighbours, step
        # The victim is counted once, whatever its outcome, and the log says why it failed.
        assert disturbed.units == undisturbed.units, step
        assert any(PLANTED in record.getMessage() for record in caplog.records), step
        assert not any(record.exc_info for record in caplog.records), step
    assert len(not_raised) <= max(1, _MAX_NOT_RAISED * len(chosen)), not_raised
    assert len(not_raised) < len(chosen)


def _run_failing(prepare: Prepare, victim: Victim, step: Step, *, once: bool) -> StageResult | None:
    """Return what a run with the exception stored; None if the step was not reached."""
    # Units run at the same time: a step of whichever comes first may be a neighbour's this time.
    for _ in range(_ATTEMPTS):
        run = prepare()
        clear_caches()
        with failing_step(victim, step, lambda: Injected(PLANTED), once=once) as raised:
            disturbed = run()
        if raised:
            return disturbed
    return None
