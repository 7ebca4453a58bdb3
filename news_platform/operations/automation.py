"""Read from Dagster's storage whether the automation works: daemons, sensors, runs and lags.

Nothing is computed again: what is stale, and since when, is what each sensor wrote at its last
tick, and how attempts ended is what the runs say. So crashed and waiting runs count, and neither
the crawl nor a large root is read.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import dagster as dg
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
    TickStatus,
)

from news_platform.defs.checks import red_partitions
from news_platform.defs.graph import BUILD_ORDER, CHECKS
from news_platform.defs.planning import State
from news_platform.defs.runs import Work, read_history
from news_platform.defs.sensor_state import Attempt, load_state
from news_platform.defs.status import read_cursors

STATES = (State.RUNNING, State.BEHIND, State.RETRYING, State.STOPPED)
"""The states of a stale partition that its last attempt tells apart."""
RUN_STATUSES = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
_ALIVE = (InstigatorStatus.RUNNING, InstigatorStatus.DECLARED_IN_CODE)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DaemonFact:
    """One of Dagster's daemons; `age_seconds` is that of its last heartbeat, None without one."""

    name: str
    is_alive: bool
    age_seconds: float | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SensorFact:
    """A sensor; `age_seconds` is that of its last tick, and `error` why that one failed."""

    name: str
    is_on: bool
    age_seconds: float | None
    interval_seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class AssetLag:
    """The stale partitions of an asset at its sensor's last tick, and the one that waits longest.

    `attempts` is the largest number of failures in a row.
    """

    asset: str
    states: Mapping[State, int]
    oldest: str = ""
    oldest_seconds: float = 0.0
    attempts: int = 0
    stopped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Runs by status, those that failed within a day, and the age of the oldest queued one."""

    counts: Mapping[str, int]
    failed_last_day: int
    oldest_queued_seconds: float


def read_daemons(instance: dg.DagsterInstance, *, now: datetime) -> list[DaemonFact]:
    """Return the daemons that this instance needs."""
    statuses = instance.get_daemon_statuses()
    return [
        DaemonFact(
            name,
            bool(status.healthy),
            now.timestamp() - status.last_heartbeat.timestamp if status.last_heartbeat else None,
            _first_error(status.last_heartbeat.errors if status.last_heartbeat else None),
        )
        for name, status in sorted(statuses.items())
        if status.required
    ]


def read_sensors(instance: dg.DagsterInstance, *, now: datetime) -> list[SensorFact]:
    """Return the sensors that have been evaluated, or switched on or off, at least once."""
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    found = {state.name: _sensor(instance, state, now) for state in states}
    return [found[name] for name in sorted(found)]


def _sensor(instance: dg.DagsterInstance, state: InstigatorState, now: datetime) -> SensorFact:
    data = state.instigator_data
    last = data.last_tick_timestamp if isinstance(data, SensorInstigatorData) else None
    interval = data.min_interval if isinstance(data, SensorInstigatorData) else None
    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
    has_failed = bool(ticks) and ticks[0].status is TickStatus.FAILURE
    return SensorFact(
        state.name,
        state.status in _ALIVE,
        None if last is None else now.timestamp() - last,
        float(interval or 0),
        _first_error([ticks[0].error] if has_failed else None) or ("failed" if has_failed else ""),
    )


def read_lags(instance: dg.DagsterInstance, *, now: datetime) -> list[AssetLag]:
    """Return what each sensor found stale at its last tick; nothing for assets with a schedule."""
    cursors, work = read_cursors(instance), Work.read(instance)
    lags = []
    for rule in BUILD_ORDER:
        if rule.sensor:
            since = load_state(cursors.get(rule.sensor)).stale_since
            history = read_history(instance, rule.asset, since, work=work, now=now)
            lags.append(_lag(rule.asset, since, history.attempts, now.timestamp()))
    return lags


def _lag(
    asset: str, since: Mapping[str, float], attempts: Mapping[str, Attempt], now: float
) -> AssetLag:
    states = {key: _state(attempts.get(key)) for key in since}
    counts = Counter(states.values())
    failed = {key: one for key in since if (one := attempts.get(key)) and one.error}
    oldest = min(since, key=lambda key: since[key], default="")
    return AssetLag(
        asset,
        {state: counts[state] for state in STATES},
        oldest,
        max(0.0, now - since[oldest]) if oldest else 0.0,
        max((one.number for one in failed.values()), default=0),
        tuple(
            (key, one.error.text())
            for key, one in sorted(failed.items())
            if one.error and states[key] is State.STOPPED
        ),
    )


def _state(attempt: Attempt | None) -> State:
    if attempt is None or (attempt.ended_at and not attempt.error):
        return State.BEHIND
    if attempt.error is None:
        return State.RUNNING
    is_stop = attempt.error.is_final and len(attempt.inputs) == 1
    return State.STOPPED if is_stop else State.RETRYING


def read_runs(instance: dg.DagsterInstance, *, now: datetime) -> RunFacts:
    """Count the runs of the instance."""
    counts = {
        status.value.lower(): instance.get_runs_count(dg.RunsFilter(statuses=[status]))
        for status in RUN_STATUSES
    }
    failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - _DAY)
    queued = instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]), limit=1, ascending=True
    )
    waited = [now.timestamp() - record.create_timestamp.timestamp() for record in queued]
    return RunFacts(counts, instance.get_runs_count(failed), max(0.0, *waited, 0.0))


def read_red_checks(instance: dg.DagsterInstance) -> dict[str, dict[str, list[str]]]:
    """Return the partitions for which a check is red, by asset and check."""
    red: dict[str, dict[str, list[str]]] = {}
    for key, partitions in red_partitions(instance, CHECKS).items():
        if partitions:
            asset = key.asset_key.to_user_string()
            red.setdefault(asset, {})[key.name] = sorted(partitions)
    return red


def read_pages_per_second(instance: dg.DagsterInstance) -> float | None:
    """Return the speed of the last run that collected WARCs; None if there was none."""
    event = instance.get_latest_materialization_event(dg.AssetKey("raw_news"))
    built = event.asset_materialization if event else None
    value = built.metadata.get("pages_per_second") if built else None
    return float(value.value) if isinstance(value, dg.FloatMetadataValue) and value.value else None


def _first_error(errors: object) -> str:
    found = next((error for error in errors or () if error), None)  # type: ignore[attr-defined] # a sequence or None
    return " ".join(str(found.message).split()) if found else ""
