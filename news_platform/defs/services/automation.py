"""Read whether the automation works: daemons, sensors, runs, lags and red checks.

What is stale, and why, comes from `defs/status.py`, like the output of `news-platform status`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
    TickStatus,
)
from sqlalchemy.exc import SQLAlchemyError

from news_platform.composition.facts import AutomationFacts, DaemonFacts, SensorFacts, StaleFacts
from news_platform.defs.checks import red_partitions
from news_platform.defs.graph import BUILD_ORDER, CHECKS
from news_platform.defs.planning import State
from news_platform.defs.status import iter_statuses, open_instance
from news_platform.errors import StorageError, redacted
from news_platform.resources import Resources

_RUN_STATUSES = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
_ON = (InstigatorStatus.RUNNING, InstigatorStatus.DECLARED_IN_CODE)
_DAY = timedelta(days=1)
_LONGEST_CAUSE = 300


def read_automation_facts(resources: Resources) -> AutomationFacts:
    """Return everything that DAGSTER_HOME knows; empty facts if there is no such folder.

    Raise StorageError if Dagster's storage cannot be read.
    """
    try:
        with open_instance(resources.settings) as instance:
            if instance is None:
                return AutomationFacts()
            return _facts(instance, resources)
    except (dg.DagsterError, SQLAlchemyError) as error:
        cause = redacted(" ".join(str(error).split())[:_LONGEST_CAUSE])
        raise StorageError(f"Dagster's storage cannot be read: {cause}") from error


def _facts(instance: dg.DagsterInstance, resources: Resources) -> AutomationFacts:
    now = resources.clock.now()
    stale, unknown = _stale(instance, resources)
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    # By name: a sensor that moved to another code location has two states.
    sensors = {state.name: _sensor(instance, state, now) for state in states}
    failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - _DAY)
    red = {
        (key.asset_key.to_user_string(), key.name): sorted(partitions)
        for key, partitions in red_partitions(instance, CHECKS).items()
        if partitions
    }
    red_by_asset = Counter(asset for (asset, _), partitions in red.items() for _ in partitions)
    return AutomationFacts(
        pages_per_second=_pages_per_second(instance),
        stale=stale,
        unknown=unknown,
        red_checks=red_by_asset,
        red_partitions=red,
        runs={
            status.value.lower(): instance.get_runs_count(dg.RunsFilter(statuses=[status]))
            for status in _RUN_STATUSES
        },
        runs_failed_last_day=instance.get_runs_count(failed),
        oldest_queued_run_seconds=_oldest_queued_seconds(instance, now),
        daemons=_daemons(instance, now),
        sensors=[sensors[name] for name in sorted(sensors)],
    )


def _daemons(instance: dg.DagsterInstance, now: datetime) -> list[DaemonFacts]:
    """Return the daemons that this instance needs."""
    return [
        DaemonFacts(
            name,
            bool(status.healthy),
            now.timestamp() - beat.timestamp if (beat := status.last_heartbeat) else None,
            _first_message(beat.errors or () if beat else ()),
        )
        for name, status in sorted(instance.get_daemon_statuses().items())
        if status.required
    ]


def _sensor(instance: dg.DagsterInstance, state: InstigatorState, now: datetime) -> SensorFacts:
    data = state.instigator_data
    last = data.last_tick_timestamp if isinstance(data, SensorInstigatorData) else None
    interval = data.min_interval if isinstance(data, SensorInstigatorData) else None
    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
    has_failed = bool(ticks) and ticks[0].status is TickStatus.FAILURE
    return SensorFacts(
        state.name,
        state.status in _ON,
        None if last is None else now.timestamp() - last,
        has_failed,
        float(interval or 0),
        (_first_message([ticks[0].error]) or "failed") if has_failed else "",
    )


def _stale(
    instance: dg.DagsterInstance, resources: Resources
) -> tuple[list[StaleFacts], Mapping[str, str]]:
    """Return what the next tick of each sensor would find, and why some cannot be found."""
    rules = [rule for rule in BUILD_ORDER if rule.sensor]
    statuses = list(iter_statuses(rules, resources, instance))
    found = [
        StaleFacts(
            one.asset,
            one.counts,
            one.lag_seconds,
            one.attempts,
            one.oldest,
            tuple(
                (key, plan.reason)
                for key, plan in one.partitions.items()
                if plan.state is State.STOPPED
            ),
        )
        for one in statuses
        if not one.error
    ]
    return found, {one.asset: one.error for one in statuses if one.error}


def _oldest_queued_seconds(instance: dg.DagsterInstance, now: datetime) -> float:
    queued = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])
    for record in instance.get_run_records(queued, limit=1, ascending=True):
        return max(0.0, (now - record.create_timestamp).total_seconds())
    return 0.0


def _pages_per_second(instance: dg.DagsterInstance) -> float | None:
    """Return the speed of the last run that collected WARCs; None if there was none."""
    event = instance.get_latest_materialization_event(dg.AssetKey("raw_news"))
    built = event.asset_materialization if event else None
    value = built.metadata.get("pages_per_second") if built else None
    return float(value.value) if isinstance(value, dg.FloatMetadataValue) and value.value else None


def _first_message(errors: Iterable[Any]) -> str:
    found = next((error for error in errors if error), None)
    return " ".join(str(found.message).split()) if found else ""
