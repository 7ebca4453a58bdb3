"""Check the automation: Dagster's home, daemons, sensors, queue, stale partitions, red checks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from news_platform.composition.facts import (
    RAW_NEWS,
    AutomationFacts,
    DaemonFacts,
    SensorFacts,
    StaleFacts,
)
from news_platform.composition.home import CONFIG, find_home, is_read_only
from news_platform.operations.checks import Diagnosis, ok, skipped, warning, wrong
from news_platform.resources import Resources
from news_platform.storage.commit.root import is_paused
from news_platform.text.readable import age_text, bytes_text

# A tick may wait for a long one of another sensor.
_LATE_SECONDS, _LATE_TICKS = 600.0, 5
_QUEUE_WARNING, _QUEUE_WRONG = 3_600.0, 6 * 3_600.0
_STALE_WARNING = 86_400.0
_SHOWN = 3
# Two weeks of runs, with a reserve for backfills.
_LARGE_HOME = 2 << 30


def check_automation(resources: Resources) -> Iterator[Diagnosis]:
    """Judge everything that Dagster's storage knows; only the home if there is none."""
    home = find_home(resources.settings)
    if home is None:
        yield skipped(
            "dagster home",
            "DAGSTER_HOME is not set: this root is used by commands alone; daemon, sensors, "
            "queue, stale partitions and checks were not checked",
        )
    elif not home.is_dir():
        yield wrong(
            "dagster home",
            f"DAGSTER_HOME={str(home)!r} is not a folder",
            "set it to the absolute folder of Dagster's state, or unset it",
        )
    elif is_read_only(home):
        yield skipped(
            "dagster home",
            f"{home} cannot be written, which Dagster needs: daemon, sensors, queue, stale "
            "partitions and checks were not checked",
        )
    else:
        # Imported here: Dagster takes seconds to load, and a root of commands alone needs none.
        from news_platform.defs.services.automation import read_automation_facts

        facts = read_automation_facts(resources)
        yield _home(home)
        yield _daemons(facts.daemons)
        yield _sensors(facts.sensors, is_paused=is_paused(resources.data_root.store))
        yield _queue(facts)
        yield _stale(facts.stale, facts.unknown)
        yield _red_checks(facts)


def _home(home: Path) -> Diagnosis:
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    if size > _LARGE_HOME:
        return warning(
            "dagster home",
            f"{home} has {bytes_text(size)}",
            "let the nightly job tidy_dagster run, or lower NEWS_PLATFORM_RETAIN_RUNS_DAYS",
        )
    if (home / CONFIG).is_file():
        return ok("dagster home", f"{home} can be read and has {bytes_text(size)}")
    return warning(
        "dagster home",
        f"{home} has no dagster.yaml: Dagster runs with its defaults, without retries",
        "link the project's dagster.yaml into it, as `make dev` does",
    )


def _daemons(found: Sequence[DaemonFacts]) -> Diagnosis:
    silent = [one for one in found if not one.is_alive]
    if silent == found and all(one.age_seconds is None for one in silent):
        return warning(
            "daemon",
            "no daemon has ever run in this home; nothing is requested or started",
            "start it: `news-platform dev`, or `dagster-daemon run` on a cluster",
        )
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


def _sensors(found: Sequence[SensorFacts], *, is_paused: bool) -> Diagnosis:
    on = [one for one in found if one.is_on]
    if not found:
        return skipped("sensors", "no sensor has ticked yet: they start with the daemon")
    if not on:
        return wrong(
            "sensors",
            "all sensors are switched off",
            "switch them on under Automation in the UI",
        )
    failing = [one for one in on if one.error]
    if failing:
        first = failing[0]
        return wrong(
            "sensors",
            f"the last tick of {first.name} failed: {first.error}",
            "see 'A sensor that fails' in docs/runbook.md; it tries again at every tick",
        )
    late = [
        one
        for one in on
        if (one.age_seconds or 0.0) > max(_LATE_SECONDS, _LATE_TICKS * one.interval_seconds)
    ]
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


def _queue(facts: AutomationFacts) -> Diagnosis:
    counts, waits = facts.runs, facts.oldest_queued_run_seconds or 0.0
    text = (
        f"{counts['queued']} queued, the oldest for {age_text(waits)}; {counts['started']} "
        f"running; {facts.runs_failed_last_day} failed within a day"
    )
    if counts["queued"] and not counts["started"] and waits > _LATE_SECONDS:
        cure = "read the daemon's log; on a cluster, check the workers"
        return wrong("queue", f"{text}; nothing takes them", cure)
    if waits > _QUEUE_WRONG:
        return wrong(
            "queue", text, "more runs are requested than finish: raise max_concurrent_runs"
        )
    if waits > _QUEUE_WARNING:
        return warning("queue", text, "a backfill may explain it; else raise max_concurrent_runs")
    return ok("queue", text)


def _stale(assets: Sequence[StaleFacts], unknown: Mapping[str, str]) -> Diagnosis:
    stopped = [(one.asset, key, why) for one in assets for key, why in one.stopped]
    if stopped:
        asset, key, why = stopped[0]
        return wrong(
            "stale partitions",
            f"{len(stopped)} stopped, first {asset} {key}: {why}",
            f"fix the cause, then `news-platform retry {asset} {key}`",
        )
    for asset, why in unknown.items():
        return warning(
            "stale partitions",
            f"{asset} cannot be compared with its inputs: {why}",
            "the sensor tries again at every tick; see `news-platform status`",
        )
    stale = sum(sum(one.states.values()) for one in assets)
    if not stale:
        return ok("stale partitions", "none")
    oldest = max(assets, key=lambda one: one.lag_seconds)
    retrying = sum(one.states["retrying"] for one in assets)
    text = (
        f"{stale} stale, {retrying} of them after a failure; the oldest is {oldest.asset} "
        f"{oldest.oldest}, for {age_text(oldest.lag_seconds)}"
    )
    if oldest.lag_seconds > _STALE_WARNING:
        return warning("stale partitions", text, "`news-platform status` shows what each waits for")
    return ok("stale partitions", text)


def _red_checks(facts: AutomationFacts) -> Diagnosis:
    red = facts.red_partitions
    if not red:
        return ok("checks", "no asset check is red")
    shown = [f"{asset}, {name}: {', '.join(keys[:_SHOWN])}" for (asset, name), keys in red.items()]
    is_crawl = any(asset == RAW_NEWS for asset, _ in red)
    page = "'A corrupt day'" if is_crawl else "the check's row"
    return wrong(
        "checks",
        f"{len(shown)} red: {'; '.join(shown[:_SHOWN])}",
        f"see {page} in docs/runbook.md, and the check's description in the UI",
    )
