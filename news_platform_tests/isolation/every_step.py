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
# A batch sometimes holds the victim and nothing else, so that its steps become the victim's: a
# step counts when it was seen in each of so many undisturbed runs.
_TRACED_RUNS = 2
_ATTEMPTS = 20


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
    """Return the steps of the victim in every run, and what an undisturbed run stores."""
    found: list[set[Step]] = []
    for _ in range(_TRACED_RUNS):
        run = prepare()
        clear_caches()
        with traced_steps(victim) as steps:
            undisturbed = run()
        found.append(steps)
    assert undisturbed.neighbours
    return sorted(set.intersection(*found)), undisturbed


def fail_at_steps(
    prepare: Prepare,
    victim: Victim,
    caplog: pytest.LogCaptureFixture,
    *,
    most: int | None = None,
    again: bool = True,
    only: Callable[[Step], bool] = lambda step: True,
) -> None:
    """Fail at each step, or at a seeded choice of at most `most`; all of them must raise.

    With `again`, every other step goes on to fail after the unit's boundary.
    """
    caplog.set_level(logging.WARNING)
    steps, undisturbed = all_steps(prepare, victim)
    chosen = [step for step in steps if only(step)]
    assert chosen
    if most is not None:
        chosen = random.Random(victim.name).sample(chosen, min(most, len(chosen)))
    for place, step in enumerate(chosen):
        caplog.clear()
        disturbed = _run_failing(prepare, victim, step, once=place % 2 == 0 or not again)
        assert disturbed.neighbours == undisturbed.neighbours, step
        # The victim is counted once, whatever its outcome, and the log says why it failed.
        assert disturbed.units == undisturbed.units, step
        assert any(PLANTED in record.getMessage() for record in caplog.records), step
        assert not any(record.exc_info for record in caplog.records), step


def _run_failing(prepare: Prepare, victim: Victim, step: Step, *, once: bool) -> StageResult:
    """Return what a run with the exception stored."""
    # Units run at the same time: a step of whichever comes first may be a neighbour's this time.
    for _ in range(_ATTEMPTS):
        run = prepare()
        clear_caches()
        with failing_step(victim, step, lambda: Injected(PLANTED), once=once) as raised:
            disturbed = run()
        if raised:
            return disturbed
    raise AssertionError(f"{step} was not reached in {_ATTEMPTS} runs")
