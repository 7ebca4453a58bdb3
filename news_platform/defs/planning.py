"""Plan the requests of one tick: which stale partitions get a run now, and why the others wait.

Pure: what a tick sees (`TickInput`) and what earlier ticks left (`SensorState`) go in; requests,
one plan per stale partition and the next state come out. The text of a tick, `news-platform
status` and the requests all come from this one plan. Transient failures are retried indefinitely,
soon, then hourly, then daily; permanent ones stop until inputs or settings change.
"""

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from news_platform.defs.sensor_state import (
    HOUR,
    Attempt,
    Failure,
    SensorState,
    as_day,
    failure_of,
    update_alarms,
)

# In `TickInput.retry_requests`: an operator requested all partitions of the asset.
EVERY = "*"
# Days that are this new do not wait for the history that a backfill makes stale.
_WEEK = timedelta(days=7)
_FRESH_PLACES = 2
# A follower of many partitions waits at most this long for those that are being built.
_PATIENCE = HOUR
_SHOWN = 3
# How the reason of a partition ends that waits for the repair of its parent.
RED = "is red"
_LONGEST_ERROR = 200
# The machines that create runs and evaluate sensors may disagree about the time.
_CLOCK_SKEW = HOUR


class State(enum.StrEnum):
    """What happens to a stale partition."""

    REQUESTED = "requested"
    RUNNING = "running"
    BEHIND = "behind"
    WAITING = "waiting"
    RETRYING = "retrying"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What happens to a stale partition, why, and when it is looked at next (Unix seconds)."""

    state: State
    reason: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a partition must wait, and until when; None: until something else happens."""

    reason: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How many runs a sensor has in progress, and how many partitions one of them builds.

    A partition is requested at most every `spacing_seconds`.
    """

    runs: int = 8
    per_run: int = 1
    spacing_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TickInput:
    """What a tick sees.

    `attempts` has the last run of each partition that this sensor requested, and `mended` when a
    retry after a kind of error last succeeded. `running` maps partitions to an unfinished run that
    builds them, whoever requested it; `own` counts the unfinished runs of this sensor. `parents`
    holds what a partition must wait for, and `busy` names a parent that is being built while this
    asset follows all its partitions. `retry_requests` maps partitions to when an operator requested
    a retry. `order` lists the partitions in Dagster's order.
    """

    asset: str
    stale: Mapping[str, str]
    now: float
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    mended: Mapping[str, float] = field(default_factory=dict)
    running: Mapping[str, str] = field(default_factory=dict)
    own: int = 0
    holds: Mapping[str, Hold] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    busy: str = ""
    retry_requests: Mapping[str, float] = field(default_factory=dict)
    order: Sequence[str] = ()
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One run to request: adjacent partitions with their inputs, and the reason.

    `run_key` never repeats: Dagster makes one run per key, ever, also for inputs that come back.
    """

    inputs: Mapping[str, str]
    run_key: str
    reason: str
    number: int = 1
    previous: str = ""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions that the run builds."""
        return tuple(self.inputs)


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a tick, a plan per stale partition, and the state for the next tick.

    `begun` has a failed partition for each kind of error that has begun, `healed` the kinds that
    are over: both are to be reported.
    """

    tick: TickInput
    requests: tuple[Request, ...]
    partitions: Mapping[str, PartitionPlan]
    state: SensorState
    begun: Mapping[str, Failure]
    healed: tuple[str, ...]

    def text(self) -> str:
        """Return what the tick saw, as one line."""
        if not self.partitions:
            return "nothing is stale"
        counts = Counter(one.state for one in self.partitions.values())
        parts = [self._part(state, counts[state]) for state in State if counts[state]]
        return f"{len(self.partitions)} stale: {', '.join(parts)}"

    def _part(self, state: State, count: int) -> str:
        """Return what the line says about the partitions of one state."""
        mine = {key: one for key, one in self.partitions.items() if one.state is state}
        # The earliest retry first, but what waits for a person before all.
        first = sorted(mine.values(), key=lambda one: math.inf if one.at is None else one.at)
        reasons = list(dict.fromkeys(one.reason for one in first))
        reasons.sort(key=lambda reason: not reason.endswith(RED))
        why = "; ".join(reasons[:_SHOWN]) + ("; ..." if len(reasons) > _SHOWN else "")
        next_at = "" if first[0].at is None else clock(first[0].at, self.tick.now)
        match state:
            case State.RETRYING:
                return f"{count} retries at {next_at} ({why})"
            case State.STOPPED:
                shown = ", ".join(sorted(mine)[:_SHOWN])
                return f"{count} stopped ({shown}): {why}"
            case State.WAITING:
                return f"{count} waiting{f' until {next_at}' if next_at else ''} ({why})"
            case _:
                return f"{count} {state}"


@dataclass(frozen=True, slots=True)
class _StalePartition:
    """A stale partition: since when, when it was last requested, and what it must recover from.

    `is_wanted` says that an operator has requested a retry since.
    """

    key: str
    fingerprint: str
    since: float
    requested_at: float = 0.0
    failure: Failure | None = None
    is_wanted: bool = False

    @property
    def turn(self) -> float:
        """Return since when the partition waits for its turn: a failed attempt was one, too."""
        return max(self.since, self.requested_at)


def plan_requests(tick: TickInput, state: SensorState, limits: Limits) -> Plan:
    """Decide what a tick requests."""
    units = {key: _stale_partition(key, tick, state) for key in tick.stale}
    partitions = {key: _partition_plan(unit, tick, limits) for key, unit in units.items()}
    requests: list[Request] = []
    for group in _groups(units, partitions, tick, limits):
        request = _request(group, tick)
        partitions |= dict.fromkeys(request.inputs, PartitionPlan(State.REQUESTED, request.reason))
        requests.append(request)
    failures = {key: unit.failure for key, unit in units.items() if unit.failure}
    retried = {one.previous for one in tick.attempts.values() if one.ended_at is None}
    after, begun, healed = update_alarms(state, failures, retried=retried, now=tick.now)
    return Plan(
        tick,
        tuple(requests),
        partitions,
        replace(after, stale_since={key: unit.since for key, unit in units.items()}),
        begun={key: failures[key] for key in begun},
        healed=healed,
    )


def _stale_partition(key: str, tick: TickInput, state: SensorState) -> _StalePartition:
    fingerprint, attempt = tick.stale[key], tick.attempts.get(key)
    # If the cursor had no place for it: what failed has been stale since then at the latest.
    is_known = attempt is not None and attempt.error is not None and state.is_cut
    failed_at = attempt.requested_at if attempt and is_known else tick.now
    since = state.stale_since.get(key, failed_at)
    wanted_at = max(tick.retry_requests.get(key, 0.0), tick.retry_requests.get(EVERY, 0.0))
    if attempt is None:
        return _StalePartition(key, fingerprint, since, is_wanted=wanted_at > 0.0)
    since = max(since, attempt.built_before(key, fingerprint))
    is_current = attempt.requested_at >= since - _CLOCK_SKEW
    return _StalePartition(
        key,
        fingerprint,
        since,
        attempt.requested_at,
        failure_of(attempt, key, fingerprint, tick.settings) if is_current else None,
        is_wanted=wanted_at > attempt.requested_at,
    )


def _partition_plan(unit: _StalePartition, tick: TickInput, limits: Limits) -> PartitionPlan:
    if unit.key in tick.running:
        return PartitionPlan(State.RUNNING, f"run {tick.running[unit.key]}")
    if unit.key in tick.parents:
        return PartitionPlan(State.WAITING, tick.parents[unit.key])
    if unit.is_wanted:
        return PartitionPlan(State.BEHIND, "retry requested by an operator")
    # A partition that has failed was ready once: only its retry counts.
    waiting = _retry(unit.failure, tick) if unit.failure else _hold(unit, tick, limits)
    patience = unit.since + _PATIENCE
    if waiting is None and tick.busy and tick.now < patience:
        waiting = PartitionPlan(State.WAITING, tick.busy, patience)
    return waiting or PartitionPlan(State.BEHIND, f"stale since {clock(unit.since, tick.now)}")


def _retry(failure: Failure, tick: TickInput) -> PartitionPlan | None:
    """Return why a failed partition waits; None if it is due."""
    error = failure.error.text()[:_LONGEST_ERROR]
    if failure.error.is_final:
        return PartitionPlan(State.STOPPED, error)
    due = failure.retry_at(tick.mended)
    return PartitionPlan(State.RETRYING, error, due) if due > tick.now else None


def _hold(unit: _StalePartition, tick: TickInput, limits: Limits) -> PartitionPlan | None:
    if hold := tick.holds.get(unit.key):
        return PartitionPlan(State.WAITING, hold.reason, hold.until)
    spaced = unit.requested_at + limits.spacing_seconds
    if unit.requested_at and spaced > tick.now:
        return PartitionPlan(State.WAITING, "requested a short while ago", spaced)
    return None


def _groups(
    units: Mapping[str, _StalePartition],
    partitions: Mapping[str, PartitionPlan],
    tick: TickInput,
    limits: Limits,
) -> Iterator[list[_StalePartition]]:
    """Yield the partitions of each request, within the free places and a few for new days.

    The longest waiting come first, so nothing waits longer than its fair turn; of those that wait
    equally long, the newest.
    """
    place = {key: number for number, key in enumerate(tick.order)}
    due = {key: unit for key, unit in units.items() if partitions[key].state is State.BEHIND}
    newest = sorted(due, key=lambda key: (place.get(key, -1), key), reverse=True)
    free = limits.runs - tick.own
    for key in sorted(newest, key=lambda key: due[key].turn):
        if free <= (-_FRESH_PLACES if is_fresh(key, tick.now) else 0):
            continue
        if key in due:
            group = _adjacent(due[key], due, tick.order, place.get(key), limits.per_run)
            for unit in group:
                del due[unit.key]
            free -= 1
            yield group


def _adjacent(
    unit: _StalePartition,
    due: Mapping[str, _StalePartition],
    order: Sequence[str],
    place: int | None,
    most: int,
) -> list[_StalePartition]:
    """Return the partition with due neighbours: a run of several builds an unbroken range.

    A partition that failed runs alone, so that it does not make others fail.
    """
    if place is None or unit.failure:
        return [unit]

    def is_open(number: int) -> bool:
        found = due.get(order[number]) if 0 <= number < len(order) else None
        return found is not None and found.failure is None

    first = last = place
    while last - first + 1 < most and is_open(last + 1):
        last += 1
    while last - first + 1 < most and is_open(first - 1):
        first -= 1
    return [due[key] for key in order[first : last + 1]]


def _request(group: Sequence[_StalePartition], tick: TickInput) -> Request:
    first, last = group[0], group[-1]
    shown = first.key if first is last else f"{first.key}...{last.key}"
    moment = datetime.fromtimestamp(tick.now, UTC)
    reason = f"{len(group)} stale since {clock(min(unit.since for unit in group), tick.now)}"
    failure = first.failure
    if any(unit.is_wanted for unit in group):
        reason += "; retry requested by an operator"
    elif failure:
        reason += f"; attempt {failure.count + 1} after {failure.error.kind}"
    return Request(
        {unit.key: unit.fingerprint for unit in group},
        f"{shown}@{first.fingerprint}#{moment:%Y%m%dT%H%M%S.%f}",
        reason,
        number=failure.count + 1 if failure else 1,
        previous=failure.error.kind if failure else "",
    )


def is_fresh(key: str, now: float) -> bool:
    """Return whether a partition is one of the newest days."""
    day = as_day(key)
    return day is not None and abs(datetime.fromtimestamp(now, UTC).date() - day) <= _WEEK


def clock(at: float, now: float) -> str:
    """Return a time of day in UTC, with its date if that is not today."""
    moment, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    return f"{moment:%H:%M}" if moment.date() == today.date() else f"{moment:%Y-%m-%d %H:%M}"
