"""What a check of the doctor found: a state, what it means, and what to do."""

import enum
from dataclasses import dataclass


class Health(enum.StrEnum):
    """How a thing is; only WRONG makes the doctor fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one thing. `action` says what to do; empty if nothing is to be done."""

    check: str
    state: Health
    meaning: str
    action: str = ""


def ok(check: str, meaning: str) -> Diagnosis:
    """Return that a thing is as it should be."""
    return Diagnosis(check, Health.OK, meaning)


def skipped(check: str, meaning: str) -> Diagnosis:
    """Return that a thing does not apply, or could not be looked at."""
    return Diagnosis(check, Health.SKIPPED, meaning)


def warning(check: str, meaning: str, action: str) -> Diagnosis:
    """Return that a thing works, but wants somebody to look."""
    return Diagnosis(check, Health.WARNING, meaning, action)


def wrong(check: str, meaning: str, action: str) -> Diagnosis:
    """Return that a thing does not work."""
    return Diagnosis(check, Health.WRONG, meaning, action)


def age_text(seconds: float) -> str:
    """Return a time span for people, such as `3 min` or `2 days`."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
