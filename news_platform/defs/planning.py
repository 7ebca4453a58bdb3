"""Plan the requests of one tick: which stale partitions get a run now, and why the others wait.

Pure: what a tick sees (`TickInput`) and remembers (`Memory`) go in; requests, one verdict per stale
partition and the next memory come out. The text of a tick, `news-platform status` and the requests
all come from this one plan.
"""

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import chain, zip_longest

from news_platform.defs.sensor_state import (
    HOUR,
    FailureNews,
    Memory,
    OutcomeOf,
    StaleUnit,
    failure_news,
    observed,
    requested,
    retry_at,
    with_alarms,
)

# In `TickInput.retry_requests`: an operator requested all partitions of the asset.
EVERY = "*"
# Days that are this new do not wait for the history that a backfill makes stale.
_WEEK = timedelta(days=7)
_FRESH_PLACES = 2
_SHOWN_STOPS = 3
_LONGEST_ERROR = 200


class State(enum.StrEnum):
    """What happens to a stale partition."""

    REQUESTED = "requested"
    RUNNING = "running"
    BEHIND = "behind"
    WAITING = "waiting"
    RETRYING = "retrying"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Verdict:
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

    A partition is requested at most every `spacing_seconds`. A follower of many partitions waits at
    most `parents_seconds` for those that are being built.
    """

    runs: int = 8
    per_run: int = 1
    spacing_seconds: float = 0.0
    parents_seconds: float = HOUR


@dataclass(frozen=True, slots=True)
class TickInput:
    """What a tick sees.

    `running` maps partitions to an unfinished run that builds them, whoever requested it; `own`
    counts the unfinished runs of this sensor. `parents` holds what a partition must wait for, and
    `busy` names a parent that is being built while this asset follows all its partitions.
    `retry_requests` maps partitions to when an operator requested a retry. `order` lists the
    partitions in Dagster's order.
    """

    asset: str
    stale: Mapping[str, str]
    now: float
    outcome_of: OutcomeOf
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
    """One run to request: adjacent partitions, a name that never repeats, and the reason."""

    partitions: tuple[str, ...]
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a tick, a verdict per stale partition, and what the next tick needs.

    `news` are failures to report, `healed` the kinds of errors that were reported and are over.
    """

    asset: str
    now: float
    requests: tuple[Request, ...]
    verdicts: Mapping[str, Verdict]
    healed: tuple[str, ...]
    memory: Memory
    news: tuple[FailureNews, ...] = ()

    def text(self) -> str:
        """Return what the tick saw, as one line."""
        if not self.verdicts:
            return "nothing is stale"
        counts = Counter(verdict.state for verdict in self.verdicts.values())
        parts = [self._part(state, counts[state]) for state in State if counts[state]]
        return f"{len(self.verdicts)} stale: {', '.join(parts)}"

    def _part(self, state: State, count: int) -> str:
        """Return what the line says about the partitions of one state."""
        mine = {key: one for key, one in self.verdicts.items() if one.state is state}
        # The next to go on speaks for all.
        first = min(mine.values(), key=lambda one: math.inf if one.at is None else one.at)
        next_at = "" if first.at is None else clock(first.at, self.now)
        reason = first.reason
        match state:
            case State.RETRYING:
                return f"{count} retries at {next_at} ({reason})"
            case State.STOPPED:
                return f"{count} stopped ({', '.join(sorted(mine)[:_SHOWN_STOPS])}): {reason}"
            case State.WAITING:
                return f"{count} waiting{f' until {next_at}' if next_at else ''} ({reason})"
            case _:
                return f"{count} {state}"


def plan_requests(tick: TickInput, memory: Memory, limits: Limits) -> Plan:
    """Decide what a tick requests."""
    before = memory
    memory = observed(
        memory,
        tick.stale,
        running=tick.running,
        outcome_of=tick.outcome_of,
        settings=tick.settings,
        now=tick.now,
    )
    memory, begun, healed = with_alarms(memory, now=tick.now)
    news = tuple(failure_news(before, memory, begun))
    verdicts = {key: _verdict(key, tick, memory, limits) for key in tick.stale}
    requests: list[Request] = []
    for keys in _groups(_due(verdicts), tick, memory, limits):
        request = _request(keys, tick, memory)
        memory = requested(memory, keys, request=request.name, now=tick.now)
        verdicts |= {key: Verdict(State.REQUESTED, request.reason) for key in keys}
        requests.append(request)
    return Plan(tick.asset, tick.now, tuple(requests), verdicts, healed, memory, news)


def _verdict(key: str, tick: TickInput, memory: Memory, limits: Limits) -> Verdict:
    if key in tick.running:
        return Verdict(State.RUNNING, f"run {tick.running[key]}")
    if key in tick.parents:
        return Verdict(State.WAITING, tick.parents[key])
    unit = memory.units[key]
    if _has_retry_request(key, unit, tick):
        return Verdict(State.BEHIND, "retry requested by an operator")
    return (
        _failed(unit, memory, now=tick.now)
        or _held(key, unit, tick, memory, limits)
        or Verdict(State.BEHIND, f"stale since {clock(unit.stale_since, tick.now)}")
    )


def _failed(unit: StaleUnit, memory: Memory, *, now: float) -> Verdict | None:
    failure = unit.failure
    if failure is None:
        return None
    error = failure.text()[:_LONGEST_ERROR]
    if failure.is_final:
        return Verdict(State.STOPPED, error)
    due = retry_at(failure, memory.mended)
    return Verdict(State.RETRYING, error, due) if due > now else None


def _held(
    key: str, unit: StaleUnit, tick: TickInput, memory: Memory, limits: Limits
) -> Verdict | None:
    hold = tick.holds.get(key)
    # A partition that has failed was ready once: only its retry counts.
    if hold is not None and not unit.failure:
        return Verdict(State.WAITING, hold.reason, hold.until)
    patience = unit.stale_since + limits.parents_seconds
    if tick.busy and tick.now < patience:
        return Verdict(State.WAITING, tick.busy, patience)
    served = memory.served.get(key)
    spaced = 0.0 if served is None else served + limits.spacing_seconds
    if spaced > tick.now and not unit.failure:
        return Verdict(State.WAITING, "requested a short while ago", spaced)
    return None


def _has_retry_request(key: str, unit: StaleUnit, tick: TickInput) -> bool:
    requested_at = max(tick.retry_requests.get(key, 0.0), tick.retry_requests.get(EVERY, 0.0))
    return requested_at > unit.requested_at and requested_at >= (
        unit.failure.at if unit.failure else 0.0
    )


def _due(verdicts: Mapping[str, Verdict]) -> list[str]:
    return [key for key, verdict in verdicts.items() if verdict.state is State.BEHIND]


def _groups(
    due: Sequence[str], tick: TickInput, memory: Memory, limits: Limits
) -> Iterator[tuple[str, ...]]:
    """Yield the partitions of each request, within the free places and a few for new days."""
    place = {key: number for number, key in enumerate(tick.order)}
    open_keys = set(due)
    free = limits.runs - tick.own
    for key in _turns(due, memory, place):
        if free <= (-_FRESH_PLACES if is_fresh(key, tick.now) else 0):
            continue
        if key in open_keys:
            group = _adjacent(key, open_keys, tick.order, place, memory, limits.per_run)
            open_keys.difference_update(group)
            free -= 1
            yield group


def _turns(due: Sequence[str], memory: Memory, place: Mapping[str, int]) -> list[str]:
    """Return the partitions in the order of their turns.

    Every second turn belongs to the longest waiting, the others to the least recently built, newest
    first. So nothing waits longer than twice its fair turn: neither the newest day behind ten years
    of history, nor an old day behind a stream of new ones.
    """
    newest = sorted(due, key=lambda key: (place.get(key, -1), key), reverse=True)
    least = sorted(newest, key=lambda key: memory.served.get(key, 0.0))
    longest = sorted(least, key=lambda key: memory.units[key].stale_since)
    pairs = chain.from_iterable(zip_longest(least, longest))
    return list(dict.fromkeys(key for key in pairs if key is not None))


def _adjacent(
    key: str,
    open_keys: set[str],
    order: Sequence[str],
    place: Mapping[str, int],
    memory: Memory,
    most: int,
) -> tuple[str, ...]:
    """Return the partition with due neighbours: a run of several builds an unbroken range."""
    if key not in place or memory.units[key].is_alone:
        return (key,)

    def is_open(number: int) -> bool:
        if not 0 <= number < len(order):
            return False
        return order[number] in open_keys and not memory.units[order[number]].is_alone

    first = last = place[key]
    while last - first + 1 < most and is_open(last + 1):
        last += 1
    while last - first + 1 < most and is_open(first - 1):
        first -= 1
    return tuple(order[first : last + 1])


def _request(keys: tuple[str, ...], tick: TickInput, memory: Memory) -> Request:
    units = [memory.units[key] for key in keys]
    prints = sorted({unit.fingerprint for unit in units})
    shown = keys[0] if len(keys) == 1 else f"{keys[0]}...{keys[-1]}"
    moment = datetime.fromtimestamp(tick.now, UTC)
    name = f"{shown}@{prints[0]}#{moment:%Y%m%dT%H%M%S.%f}"
    oldest = min(unit.stale_since for unit in units)
    reason = f"{len(keys)} stale since {clock(oldest, tick.now)}"
    failures = [unit.failure for unit in units if unit.failure]
    if any(_has_retry_request(key, memory.units[key], tick) for key in keys):
        reason += "; retry requested by an operator"
    elif failures:
        reason += f"; attempt {failures[0].count + 1} after {failures[0].kind}"
    return Request(keys, name, reason)


def is_fresh(key: str, now: float) -> bool:
    """Return whether a partition is one of the newest days."""
    day = as_day(key)
    return day is not None and abs(datetime.fromtimestamp(now, UTC).date() - day) <= _WEEK


def as_day(key: str) -> date | None:
    """Return the day of a partition key; None if it is not a day."""
    try:
        return date.fromisoformat(key)
    except ValueError:
        return None


def clock(at: float, now: float) -> str:
    """Return a time of day in UTC, with its date if that is not today."""
    moment, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    return f"{moment:%H:%M}" if moment.date() == today.date() else f"{moment:%Y-%m-%d %H:%M}"
