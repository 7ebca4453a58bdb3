"""Check the automation: Dagster's home, daemons, sensors, queue, stale partitions, red checks."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from news_platform.defs.planning import State
from news_platform.operations.automation import (
    AssetLag,
    SensorFact,
    read_daemons,
    read_lags,
    read_red_checks,
    read_runs,
    read_sensors,
)
from news_platform.operations.diagnosis import Diagnosis, age_text, ok, warning, wrong
from news_platform.resources import Resources
from news_platform.storage.commit.root import is_paused

# A tick may wait for a long one of another sensor.
_LATE_SECONDS, _LATE_TICKS = 600.0, 5
_QUEUE_WARNING, _QUEUE_WRONG = 3_600.0, 6 * 3_600.0
_STALE_WARNING = 86_400.0
_SHOWN = 3


def check_automation(resources: Resources, instance: dg.DagsterInstance) -> Iterator[Diagnosis]:
    """Look at everything that Dagster's storage knows."""
    now = resources.clock.now()
    yield _home(resources)
    daemon = _daemon(instance, resources)
    yield daemon
    paused = is_paused(resources.data_root.store)
    yield _sensors(read_sensors(instance, now=now), is_paused=paused)
    yield _queue(instance, resources)
    yield _stale(read_lags(instance, now=now))
    yield _checks(instance)


def _home(resources: Resources) -> Diagnosis:
    home = Path(resources.settings.dagster_home or "")
    if not (home / "dagster.yaml").is_file():
        return warning(
            "dagster home",
            f"{home} has no dagster.yaml: Dagster runs with its defaults, without retries",
            "link the project's dagster.yaml into it, as `make dev` does",
        )
    return ok("dagster home", f"{home} can be read")


def _daemon(instance: dg.DagsterInstance, resources: Resources) -> Diagnosis:
    found = read_daemons(instance, now=resources.clock.now())
    silent = [one for one in found if not one.is_alive]
    if not silent:
        return ok("daemon", f"{len(found)} daemons send heartbeats")
    ages = [one.age_seconds for one in silent if one.age_seconds is not None]
    last = f"last heartbeat {age_text(min(ages))} ago" if ages else "no heartbeat ever"
    errors = [f"{one.name}: {one.error}" for one in silent if one.error]
    names = ", ".join(one.name for one in silent)
    return wrong(
        "daemon",
        f"silent: {names} ({errors[0] if errors else last}); nothing is requested or started",
        "start it: `news-platform dev`, or `dagster-daemon run` on a cluster; its log says why",
    )


def _sensors(found: list[SensorFact], *, is_paused: bool) -> Diagnosis:
    on = [one for one in found if one.is_on]
    if not on:
        return wrong(
            "sensors",
            "no sensor has ticked yet, or all are switched off",
            "start the daemon, and see Automation in the UI",
        )
    failing = [one for one in on if one.error]
    if failing:
        first = failing[0]
        return wrong(
            "sensors",
            f"the last tick of {first.name} failed: {first.error}",
            "see its ticks under Automation; it looks again by itself",
        )
    late = [one for one in on if one.age_seconds is not None and one.age_seconds > _patience(one)]
    if late and not is_paused:
        worst = max(late, key=lambda one: one.age_seconds or 0.0)
        return wrong(
            "sensors",
            f"{len(late)} of {len(on)} sensors do not tick; {worst.name} last did "
            f"{age_text(worst.age_seconds or 0.0)} ago",
            "restart the daemon, also after the clock was set back",
        )
    off = [one.name for one in found if not one.is_on]
    if off:
        shown = ", ".join(off[:_SHOWN])
        return warning(
            "sensors", f"{len(off)} are switched off: {shown}", "switch them on under Automation"
        )
    return ok("sensors", f"{len(on)} sensors tick")


def _patience(sensor: SensorFact) -> float:
    return max(_LATE_SECONDS, _LATE_TICKS * sensor.interval_seconds)


def _queue(instance: dg.DagsterInstance, resources: Resources) -> Diagnosis:
    runs = read_runs(instance, now=resources.clock.now())
    counts, waits = runs.counts, runs.oldest_queued_seconds
    text = (
        f"{counts['queued']} queued, the oldest for {age_text(waits)}; {counts['started']} "
        f"running; {runs.failed_last_day} failed within a day"
    )
    if counts["queued"] and not counts["started"] and waits > _LATE_SECONDS:
        cure = "look at the daemon's log; on a cluster, at the workers"
        return wrong("queue", f"{text}; nothing takes them", cure)
    if waits > _QUEUE_WRONG:
        return wrong(
            "queue", text, "more runs are requested than finish: raise max_concurrent_runs"
        )
    if waits > _QUEUE_WARNING:
        return warning("queue", text, "a backfill may explain it; else raise max_concurrent_runs")
    return ok("queue", text)


def _stale(lags: list[AssetLag]) -> Diagnosis:
    stopped = [(lag.asset, key, why) for lag in lags for key, why in lag.stopped]
    if stopped:
        asset, key, why = stopped[0]
        return wrong(
            "stale partitions",
            f"{len(stopped)} stopped, first {asset} {key}: {why}",
            f"mend the cause, then `news-platform retry {asset} {key}`",
        )
    stale = sum(sum(lag.states.values()) for lag in lags)
    if not stale:
        return ok("stale partitions", "none at the last ticks")
    oldest = max(lags, key=lambda lag: lag.oldest_seconds)
    retrying = sum(lag.states[State.RETRYING] for lag in lags)
    text = (
        f"{stale} stale, {retrying} of them after a failure; the oldest is {oldest.asset} "
        f"{oldest.oldest}, for {age_text(oldest.oldest_seconds)}"
    )
    if oldest.oldest_seconds > _STALE_WARNING:
        return warning("stale partitions", text, "`news-platform status` says what each waits for")
    return ok("stale partitions", text)


def _checks(instance: dg.DagsterInstance) -> Diagnosis:
    red = read_red_checks(instance)
    if not red:
        return ok("checks", "no asset check is red")
    shown = [
        f"{asset}, {name}: {', '.join(keys[:_SHOWN])}"
        for asset, checks in red.items()
        for name, keys in checks.items()
    ]
    return wrong(
        "checks",
        f"{len(shown)} are red, first {shown[0]}",
        "the check's page in the UI says what to do; see docs/runbook.md",
    )
