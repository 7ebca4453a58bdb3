"""Raise an exception at one step of one unit: a call of ours that works on this unit alone.

The steps are not listed by hand, and not taken from where the boundaries are. A first run traces,
in every thread, the functions called below one whose arguments name the victim and no neighbour;
further runs raise at one of them. A unit without a boundary is therefore found.
"""

import dis
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import news_platform
from news_platform.isolation import boundary

_PACKAGE = f"{Path(news_platform.__file__).parent}/"
_BOUNDARY = boundary.__file__
# Not steps: the boundary itself, and the pool, whose threads outlive a run and cannot be traced;
# test_pool_faults.py has its failures.
_ISOLATION = f"{Path(_BOUNDARY).parent}/"
_Cached = type(cache(lambda: None))
Step = tuple[str, str]


class Injected(Exception):
    """The exception that a step raises; no code of ours expects it."""


def step_of(code: CodeType) -> Step:
    """Return the module and qualified name of a function."""
    return code.co_filename.removeprefix(_PACKAGE), code.co_qualname


def clear_caches() -> None:
    """Forget what functions of ours remember: a step whose result is known would not be called."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{news_platform.__name__}."):
            for value in list(vars(module).values()):
                if isinstance(value, _Cached):
                    value.cache_clear()


@dataclass(frozen=True, slots=True)
class Victim:
    """The unit that fails: a text that all its arguments contain, and those of its neighbours."""

    name: str
    neighbours: tuple[str, ...]

    def is_alone_in(self, frame: FrameType) -> bool:
        """Return whether the arguments of a call name the victim and no neighbour."""
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        # The object that a constructor is about to fill may have no repr yet.
        shown = names[1:] if code.co_name == "__init__" else names
        given = repr([frame.f_locals.get(name) for name in shown])
        return self.name in given and not any(other in given for other in self.neighbours)


@contextmanager
def traced_steps(victim: Victim) -> Iterator[set[Step]]:
    """Collect every step of the victim."""
    found: set[Step] = set()
    with _profiled(victim, lambda code: found.add(step_of(code))):
        yield found


@contextmanager
def failing_step(
    victim: Victim, step: Step, error: Callable[[], BaseException], *, once: bool
) -> Iterator[list[Step]]:
    """Raise at this step of the victim, once or again after its boundary; yield what was raised."""
    raised: list[Step] = []

    def fail(code: CodeType) -> None:
        if step_of(code) == step and not (once and raised):
            raised.append(step)
            raise error()

    with _profiled(victim, fail):
        yield raised


@contextmanager
def _profiled(victim: Victim, at_step: Callable[[CodeType], object]) -> Iterator[None]:
    alone: dict[int, bool] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        if event == "return":  # also when a coroutine is suspended
            alone.pop(id(frame), None)
        elif event == "call":
            if _is_start(frame) and _is_inside(frame, alone):
                at_step(frame.f_code)
            alone[id(frame)] = victim.is_alone_in(frame)

    class Again(logging.Handler):
        """Start again after an exception, which ends the profiling of its thread."""

        def emit(self, record: logging.LogRecord) -> None:
            alone.clear()  # frames that ended meanwhile left their numbers here
            sys.setprofile(profile)

    handler = Again()
    logging.getLogger(boundary.__name__).addHandler(handler)
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        logging.getLogger(boundary.__name__).removeHandler(handler)


def _is_inside(frame: FrameType, alone: dict[int, bool]) -> bool:
    """Return whether a caller works on the victim alone; what the boundary itself calls is not."""
    # Python itself ignores what `__del__` raises.
    if frame.f_code.co_filename.startswith(_ISOLATION) or frame.f_code.co_name == "__del__":
        return False
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename != _BOUNDARY:
        if alone.get(id(caller)):
            return True
        caller = caller.f_back
    return False


def _is_start(frame: FrameType) -> bool:
    """Return whether a call enters a function, rather than resuming a coroutine or generator."""
    return frame.f_lasti <= _first_instruction(frame.f_code)


@cache
def _first_instruction(code: CodeType) -> int:
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")
