"""Remember what a sensor requested and how it ended: the state that one tick leaves for the next.

Pure: no clock, storage or Dagster. What the world broke is tried again for ever, hourly and then
daily; what a retry cannot mend stops until its input or the settings change.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
# A hiccup or a lost worker is over within minutes; an outage takes hours, a dead host days.
_QUICK = (MINUTE, 5 * MINUTE, 15 * MINUTE)
_HOURLY_RETRIES = 24
# Partitions whose last request is remembered although they are built; enough for every range of
# a store, and for the days that still grow.
_REMEMBERED_REQUESTS = 2_000
# The kind of a run that an operator canceled: nobody needs to be told.
CANCELED = "Canceled"
# Alarms with this prefix are about the tick itself: it could not read what it compares.
LOOK = "look:"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a requested run ended; `kind` names the class of its error and is empty for a success."""

    kind: str = ""
    message: str = ""
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failed attempt of a partition, and how many have failed in a row."""

    kind: str
    message: str
    count: int
    at: float
    is_final: bool = False

    def text(self) -> str:
        """Return the error as one line."""
        return f"{self.kind}: {self.message}" if self.message else self.kind


@dataclass(frozen=True, slots=True)
class FailureNews:
    """A failure that nobody was told of: the partition, the request of its run, and the error."""

    partition: str
    request: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class StaleUnit:
    """A stale partition: its inputs, since when it is stale, and its last request and failure.

    `request` is the id of a request whose end was not seen yet; `requested` the fingerprint and
    `together` the number of partitions of that request. `is_alone` is set once a run of several
    partitions failed: which of them is to blame shows when each has a run of its own.
    """

    fingerprint: str
    stale_since: float
    request: str = ""
    requested: str = ""
    requested_at: float = 0.0
    together: int = 1
    is_alone: bool = False
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What a sensor knows from its earlier ticks.

    `served` maps partitions to their last request, `mended` kinds of errors to when a partition
    that had failed so was built, and `alarms` the kinds that partitions fail with to since when.
    `settings` is a digest of the settings of the last tick.
    """

    units: Mapping[str, StaleUnit] = field(default_factory=dict)
    served: Mapping[str, float] = field(default_factory=dict)
    mended: Mapping[str, float] = field(default_factory=dict)
    alarms: Mapping[str, float] = field(default_factory=dict)
    settings: str = ""


OutcomeOf = Callable[[str], Outcome | None]
"""Return how the run of a request ended, None if there is no such run."""


def backoff_seconds(failures: int) -> float:
    """Return how long to wait after this many failures in a row."""
    if failures <= len(_QUICK):
        return _QUICK[max(failures, 1) - 1]
    return HOUR if failures <= len(_QUICK) + _HOURLY_RETRIES else DAY


def retry_at(failure: Failure, mended: Mapping[str, float]) -> float:
    """Return when a failed partition is due again.

    When another partition that failed in the same way has been built since, the cause is over.
    """
    if mended.get(failure.kind, 0.0) > failure.at:
        return failure.at
    return failure.at + backoff_seconds(failure.count)


def observed(
    memory: Memory,
    stale: Mapping[str, str],
    *,
    running: Mapping[str, str],
    outcome_of: OutcomeOf,
    settings: str,
    now: float,
) -> Memory:
    """Bring the memory up to date with what is stale and with the runs that have ended."""
    units = {
        key: _observed_unit(
            memory.units.get(key) or StaleUnit(fingerprint, now),
            fingerprint,
            is_running=key in running,
            outcome_of=outcome_of,
            now=now,
        )
        for key, fingerprint in stale.items()
    }
    if settings != memory.settings:
        units = {key: _without_stop(unit) for key, unit in units.items()}
    built = (unit.failure for key, unit in memory.units.items() if key not in stale)
    healed = {failure.kind: now for failure in built if failure}
    tried = {key: at for key, at in memory.served.items() if not _is_untried(units.get(key))}
    return replace(
        memory,
        units=units,
        served=tried,
        mended={**memory.mended, **healed},
        settings=settings,
    )


def _is_untried(unit: StaleUnit | None) -> bool:
    """Return whether the run of a unit's last request was deleted, or never came to be."""
    return unit is not None and bool(unit.requested) and not unit.requested_at


def _observed_unit(
    unit: StaleUnit, fingerprint: str, *, is_running: bool, outcome_of: OutcomeOf, now: float
) -> StaleUnit:
    is_changed = unit.fingerprint != fingerprint
    unit = replace(unit, fingerprint=fingerprint)
    if unit.request and not is_running:
        outcome = outcome_of(unit.request)
        is_changed |= unit.requested != fingerprint
        unit = replace(unit, request="")
        # None: somebody deleted the run, so nothing was tried.
        unit = (
            replace(unit, requested_at=0.0) if outcome is None else _ended(unit, outcome, now=now)
        )
    return _without_stop(unit) if is_changed else unit


def _ended(unit: StaleUnit, outcome: Outcome, *, now: float) -> StaleUnit:
    """Note a run that ended while its partition is still stale."""
    if not outcome.kind and unit.requested != unit.fingerprint:
        return replace(unit, failure=None)  # built, and its inputs have changed again since
    kind = outcome.kind or "StillStale"
    message = outcome.message or "its run succeeded, but it still differs from its inputs"
    count = unit.failure.count + 1 if unit.failure else 1
    is_blamed = unit.together == 1
    failure = Failure(kind, message, count, now, is_final=outcome.is_final and is_blamed)
    return replace(unit, failure=failure, is_alone=unit.is_alone or not is_blamed)


def _without_stop(unit: StaleUnit) -> StaleUnit:
    """Forget a failure that new inputs or settings may have mended; keep the pace of the others."""
    failure = unit.failure
    if failure is None or failure.is_final:
        return replace(unit, failure=None)
    # New inputs are tried at least hourly, however long the old ones failed.
    return replace(unit, failure=replace(failure, count=min(failure.count, len(_QUICK) + 1)))


def with_alarms(memory: Memory, *, now: float) -> tuple[Memory, tuple[str, ...], tuple[str, ...]]:
    """Note which kinds of errors partitions fail with.

    Return those that have begun with it, and those that nothing fails with any more. Each kind
    begins before it heals, so whoever reports both reports them in pairs.
    """
    kinds = {unit.failure.kind for unit in memory.units.values() if unit.failure} - {CANCELED}
    begun = tuple(sorted(kinds - memory.alarms.keys()))
    healed = tuple(sorted(memory.alarms.keys() - kinds))
    alarms = {kind: memory.alarms.get(kind, now) for kind in sorted(kinds)}
    return replace(memory, alarms=alarms), begun, healed


def failure_news(before: Memory, memory: Memory, begun: tuple[str, ...]) -> Iterator[FailureNews]:
    """Yield the failures since the last tick that are news: each stop, and one per kind begun."""
    told: set[str] = set()
    for key, unit in sorted(memory.units.items()):
        known = before.units.get(key)
        if unit.failure is None or (known and known.failure == unit.failure):
            continue
        kind = unit.failure.kind
        if unit.failure.is_final or (kind in begun and kind not in told):
            told.add(kind)
            yield FailureNews(key, known.request if known else "", unit.failure)


def with_outage(memory: Memory, kind: str, *, now: float) -> tuple[Memory, bool]:
    """Note that a tick could not read its inputs; return whether that has just begun."""
    alarm = f"{LOOK}{kind}"
    if alarm in memory.alarms:
        return memory, False
    return replace(memory, alarms={**memory.alarms, alarm: now}), True


def requested(memory: Memory, keys: tuple[str, ...], *, request: str, now: float) -> Memory:
    """Note a request for these partitions."""
    units = dict(memory.units)
    for key in keys:
        units[key] = replace(
            units[key],
            request=request,
            requested=units[key].fingerprint,
            requested_at=now,
            together=len(keys),
        )
    return replace(memory, units=units, served={**memory.served, **dict.fromkeys(keys, now)})


def load_memory(cursor: str | None) -> Memory:
    """Parse a cursor; that of another version counts as none, so its failures are tried again."""
    try:
        document = json.loads(cursor or "{}")
        units = {key: _unit(unit) for key, unit in document.pop("units", {}).items()}
        known = {name: document[name] for name in ("served", "mended", "alarms", "settings")}
    except (ValueError, TypeError, KeyError, AttributeError):
        return Memory()
    return Memory(units=units, **known)


def _unit(document: dict[str, object]) -> StaleUnit:
    failure = document.pop("failure", None)
    return StaleUnit(**document, failure=Failure(**failure) if isinstance(failure, dict) else None)  # type: ignore[arg-type] # a wrong type is of another version


def dump_memory(memory: Memory) -> str:
    """Return the memory as the text of a cursor."""
    latest = sorted(memory.served.items(), key=lambda item: -item[1])[:_REMEMBERED_REQUESTS]
    return json.dumps(asdict(replace(memory, served=dict(sorted(latest)))), sort_keys=True)
