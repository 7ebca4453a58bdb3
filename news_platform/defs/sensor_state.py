"""What a sensor knows of earlier ticks: the state in its cursor, and its past attempts.

The cursor holds little: what was requested and how it ended, the tags of the runs say (`runs.py`).
Transient failures are retried indefinitely, soon, then hourly, then daily; permanent ones stop
until inputs or settings change. Pure: no clock, storage or Dagster.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
# A hiccup or a lost worker is over within minutes; an outage takes hours, a dead host days.
_QUICK = (MINUTE, 5 * MINUTE, 15 * MINUTE)
_HOURLY_RETRIES = 24
# Dagster copies the cursor into every tick. Spans beyond these are forgotten, the newest first:
# their partitions count as stale since their last attempt, or since now.
_MOST_SPANS = 600
_TO = "..."
# Alarms with this prefix are about the tick itself: it could not read what it compares.
_INPUTS = "inputs:"


@dataclass(frozen=True, slots=True)
class SensorState:
    """What one tick leaves for the next.

    `stale_since` maps partitions to when they became stale, and `alarms` the kinds of errors that
    partitions fail with to when that began. `listings` belongs to the sensor of the crawl.
    `is_cut` says that more partitions were stale than a cursor holds, `is_damaged` that the cursor
    could not be read.
    """

    stale_since: Mapping[str, float] = field(default_factory=dict)
    alarms: Mapping[str, float] = field(default_factory=dict)
    listings: Mapping[str, Any] = field(default_factory=dict)
    is_cut: bool = False
    is_damaged: bool = False


def load_state(cursor: str | None) -> SensorState:
    """Parse a cursor; an unreadable one counts as none, since all it holds is found again."""
    try:
        found = json.loads(cursor or "{}")
        return SensorState(
            {
                key: float(since)
                for since, spans in dict(found.get("since", {})).items()
                for span in spans
                for key in _days(span)
            },
            {str(kind): float(since) for kind, since in dict(found.get("alarms", {})).items()},
            dict(found.get("listings", {})),
            is_cut=bool(found.get("cut")),
        )
    except (ValueError, TypeError, AttributeError, OverflowError):
        return SensorState(is_damaged=True)


def dump_state(state: SensorState) -> str:
    """Return the state as the text of a cursor; a tick of thousands of stale days stays small."""
    by_time: dict[int, list[str]] = defaultdict(list)
    for key in sorted(state.stale_since):
        by_time[int(state.stale_since[key])].append(key)
    spans = [(since, span) for since in sorted(by_time) for span in _spans(by_time[since])]
    since: dict[int, list[str]] = defaultdict(list)
    for at, span in spans[:_MOST_SPANS]:
        since[at].append(span)
    document = {
        "since": since,
        "alarms": state.alarms,
        "listings": state.listings,
        "cut": len(spans) > _MOST_SPANS,
    }
    return json.dumps(document, separators=(",", ":"))


def _spans(keys: Iterable[str]) -> Iterator[str]:
    """Join consecutive days: `2025-11-01...2025-11-03`; yield other keys as they are."""
    first = last = ""
    for key in keys:
        day = as_day(last)
        if day is not None and as_day(key) == day + timedelta(days=1):
            last = key
            continue
        if first:
            yield first if first == last else f"{first}{_TO}{last}"
        first = last = key
    if first:
        yield first if first == last else f"{first}{_TO}{last}"


def _days(span: str) -> Iterator[str]:
    first, to, last = span.partition(_TO)
    start, end = as_day(first), as_day(last)
    if not to or start is None or end is None:
        yield span
        return
    yield from (str(start + timedelta(days=number)) for number in range((end - start).days + 1))


def as_day(key: str) -> date | None:
    """Return the day of a partition key; None if it is not a day."""
    try:
        return date.fromisoformat(key)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: the class of its error, and whether a retry is useless."""

    kind: str
    message: str = ""
    is_final: bool = False

    def text(self) -> str:
        """Return the error as one line."""
        return f"{self.kind}: {self.message}" if self.message else self.kind


# Whoever cancels a run wants it to stay canceled, also when the inputs change meanwhile.
CANCELED = RunError(
    "Canceled", "an operator canceled the run; `news-platform retry` starts it again", is_final=True
)
_STILL_STALE = RunError("StillStale", "its run succeeded, but it still differs from its inputs")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that a sensor requested, and how it ended; `ended_at` is None while it is under way.

    `inputs` has the fingerprint that the inputs of each of its partitions had. `number` counts the
    attempts in a row, and `previous` is the kind of error that the one before failed with.
    `is_tagged` is False while only the events of the run, and no tags, say why it failed.
    """

    run_id: str
    inputs: Mapping[str, str]
    requested_at: float
    ended_at: float | None = None
    error: RunError | None = None
    number: int = 1
    previous: str = ""
    settings: str = ""
    is_tagged: bool = True

    def built_before(self, key: str, fingerprint: str) -> float:
        """Return when it built a partition whose inputs have changed since; 0 if it did not."""
        is_over = self.error is None and self.inputs[key] != fingerprint
        return self.ended_at or 0.0 if is_over else 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The failed run that a partition must recover from, and how many have failed in a row."""

    run_id: str
    error: RunError
    count: int
    at: float

    def retry_at(self, mended: Mapping[str, float]) -> float:
        """Return when the partition is due again.

        When a retry after the same kind of error has succeeded since, the cause is over.
        """
        if mended.get(self.error.kind, 0.0) > self.at:
            return self.at
        return self.at + backoff_seconds(self.count)


def failure_of(attempt: Attempt, key: str, fingerprint: str, settings: str) -> Failure | None:
    """Return the failure that a partition has to recover from, for its inputs and settings now."""
    has_same_inputs = attempt.inputs[key] == fingerprint
    error = attempt.error or (_STILL_STALE if has_same_inputs else None)
    if attempt.ended_at is None or error is None:
        return None
    if error == CANCELED:
        return Failure(attempt.run_id, error, attempt.number, attempt.ended_at)
    if len(attempt.inputs) > 1:
        # Which of the partitions is to blame shows when each has a run of its own.
        error = replace(error, is_final=False)
    if has_same_inputs and attempt.settings == settings:
        return Failure(attempt.run_id, error, attempt.number, attempt.ended_at)
    if error.is_final:
        return None
    # New inputs or settings are tried at least hourly, however long the old ones failed.
    count = min(attempt.number, len(_QUICK) + 1)
    return Failure(attempt.run_id, error, count, attempt.ended_at)


def backoff_seconds(failures: int) -> float:
    """Return how long to wait after this many failures in a row."""
    if failures <= len(_QUICK):
        return _QUICK[max(failures, 1) - 1]
    return HOUR if failures <= len(_QUICK) + _HOURLY_RETRIES else DAY


def update_alarms(
    state: SensorState, failures: Mapping[str, Failure], *, retried: set[str], now: float
) -> tuple[SensorState, tuple[str, ...], tuple[str, ...]]:
    """Set the alarms to what fails now; those of `retried` kinds stay until their retries end.

    Return one partition for each kind that has begun, and the kinds that nothing fails with any
    more. A permanent failure is not among the former: its run is reported by itself.
    """
    begun: dict[str, str] = {}
    kinds = retried & state.alarms.keys()
    for key, failure in sorted(failures.items()):
        kind = failure.error.kind
        if kind != CANCELED.kind:
            kinds.add(kind)
            if not failure.error.is_final and kind not in state.alarms:
                begun.setdefault(kind, key)
    healed = tuple(sorted(state.alarms.keys() - kinds))
    alarms = {kind: state.alarms.get(kind, now) for kind in sorted(kinds)}
    return replace(state, alarms=alarms), tuple(begun.values()), healed


def with_unreadable_inputs(
    state: SensorState, kind: str, *, now: float
) -> tuple[SensorState, float]:
    """Note that a tick could not read its inputs; return since when that is so."""
    alarms = {f"{_INPUTS}{kind}": now, **state.alarms}
    return replace(state, alarms=alarms), alarms[f"{_INPUTS}{kind}"]


def alarm_text(alarm: str) -> str:
    """Return what an alarm is about, for a sentence that ends in `fails with …`."""
    if alarm.startswith(_INPUTS):
        return f"reading its inputs ({alarm.removeprefix(_INPUTS)})"
    return alarm
