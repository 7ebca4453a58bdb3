"""Sensors that request every partition which differs from its inputs, and say what they saw.

A sensor compares what the partitions of an asset were built from with what their inputs are now
(`RebuildRule`) and requests a run where they differ. Nothing depends on having seen an event, so
nothing is lost when a day is built again right after its request, when a parent is newer than its
follower within one tick, or when history existed before the sensor's first tick. `planning`
decides; this module reads what a plan needs and carries it out.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import dagster as dg

from news_platform.defs.alerts import Alert, failed_run, send_alert
from news_platform.defs.planning import Plan, TickInput, clock, plan_requests
from news_platform.defs.rebuild_rules import Fingerprints, Parent, RebuildRule
from news_platform.defs.retry_requests import delete_served, read_retry_requests
from news_platform.defs.runs import (
    REQUEST_TAG,
    UnfinishedBackfill,
    UnfinishedRun,
    outcome_of,
    partition_order,
    request_tag,
    run_of,
    run_requests,
    unfinished_backfills,
    unfinished_runs,
)
from news_platform.defs.sensor_state import LOOK, Memory, dump_memory, load_memory, with_outage
from news_platform.errors import NewsPlatformError, StoreUnavailable
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import ObjectStore

__all__ = ["PAUSED", "REQUEST_TAG", "reconciling_sensor"]

# The answer of every sensor and schedule while the root is paused.
PAUSED = dg.SkipReason("paused: run `news-platform resume` to start all sensors again")


def skip_reason(store: ObjectStore) -> dg.SkipReason | None:
    """Return why a sensor or schedule does nothing now: its root is paused or does not answer.

    Dagster evaluates a tick that raises an error only once: the reason is shown, and the next tick
    looks again.
    """
    try:
        return PAUSED if is_paused(store) else None
    except StoreUnavailable as error:
        return dg.SkipReason(f"cannot read the root: {' '.join(str(error).split())}")


@dataclass(frozen=True, slots=True)
class Work:
    """What is being built now, by anybody."""

    runs: tuple[UnfinishedRun, ...] = ()
    backfills: tuple[UnfinishedBackfill, ...] = ()

    @classmethod
    def read(cls, instance: dg.DagsterInstance) -> "Work":
        """Read the unfinished runs and backfills of an instance."""
        return cls(tuple(unfinished_runs(instance)), tuple(unfinished_backfills(instance)))

    def builder(self, asset: str, key: str, order: Mapping[str, int]) -> str | None:
        """Return the run or backfill that builds a partition of an asset."""
        for run in self.runs:
            if asset in run.assets and run.builds(key, order):
                return run.run_id
        for backfill in self.backfills:
            if backfill.asset == asset and key in backfill.partitions:
                return f"of backfill {backfill.backfill_id}"
        return None

    def is_building(self, asset: str) -> bool:
        """Return whether a run builds any partition of an asset."""
        return any(asset in run.assets for run in self.runs)

    def triggers(self, parent: Parent, key: str) -> bool:
        """Return whether a partition of the parent is being built that this partition follows."""
        if parent.triggers is None:
            return False
        runs = [run for run in self.runs if parent.asset in run.assets and run.first is not None]
        keys = {end for run in runs for end in (run.first, run.last) if end}
        # A run of a range of days builds those between its ends, too.
        keys |= {key} if any(run.builds(key, {}) for run in runs) else set()
        for backfill in self.backfills:
            keys |= backfill.partitions if backfill.asset == parent.asset else set()
        return any(parent.triggers(one, key) for one in keys)


def tick(
    rule: RebuildRule,
    resources: Resources,
    *,
    stale: Fingerprints,
    instance: dg.DagsterInstance | None,
) -> TickInput:
    """Return what a tick sees; without an instance, what can be seen without Dagster."""
    asset, now = rule.asset, resources.clock.now()
    work = Work.read(instance) if instance else Work()
    order = partition_order(instance, rule.partitions, stale)
    places = {key: number for number, key in enumerate(order)}
    running = {key: work.builder(asset, key, places) for key in stale}
    return TickInput(
        asset,
        stale,
        now.timestamp(),
        (lambda name: outcome_of(instance, request_tag(asset, name)))
        if instance
        else (lambda _: None),
        running={key: run for key, run in running.items() if run},
        own=sum(run.asset == asset for run in work.runs),
        holds=rule.holds(resources, stale, now) if rule.holds and stale else {},
        parents={**_parents(rule, stale, work), **_damaged(rule, stale, instance)},
        busy=_busy(rule, resources, work) if stale else "",
        retry_requests=read_retry_requests(resources.data_root.store, asset) if stale else {},
        order=order,
        settings=settings_digest(resources.settings),
    )


def _parents(rule: RebuildRule, stale: Fingerprints, work: Work) -> Mapping[str, str]:
    return {
        key: f"{parent.asset} is being built"
        for key in stale
        for parent in rule.parents
        if work.triggers(parent, key)
    }


def _damaged(
    rule: RebuildRule, stale: Fingerprints, instance: dg.DagsterInstance | None
) -> Mapping[str, str]:
    """Return the partitions that would be built from damaged ones, and which check says so."""
    if instance is None or not stale:
        return {}
    red = {parent: parent.red(instance) for parent in rule.parents if parent.red}
    return {
        key: reason
        for key in stale
        for parent, found in red.items()
        for damaged, reason in found.items()
        if parent.triggers is None or parent.triggers(damaged, key)
    }


def _busy(rule: RebuildRule, resources: Resources, work: Work) -> str:
    for parent in rule.parents:
        if parent.triggers is None and work.is_building(parent.asset):
            return f"{parent.asset} is being built"
        if parent.is_behind is not None and parent.is_behind(resources):
            return f"{parent.asset} is behind"
    return ""


@cache
def _platform_version() -> str:
    """Return the version, which is read from a file."""
    return version("news-platform")


def settings_digest(settings: Settings) -> str:
    """Return a digest of all settings and of the platform's version: what lifts a stop."""
    text = f"{_platform_version()}\n{settings.model_dump_json()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan_of(
    rule: RebuildRule,
    resources: Resources,
    *,
    stale: Fingerprints,
    memory: Memory,
    instance: dg.DagsterInstance | None,
) -> Plan:
    """Return the plan of an asset as it is now, for its sensor and for `news-platform status`."""
    seen = tick(rule, resources, stale=stale, instance=instance)
    return plan_requests(seen, memory, rule.limits_in(resources))


def reconciling_sensor(
    rule: RebuildRule,
    *,
    interval_seconds: int = 60,
    status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.SensorDefinition:
    """Build the sensor `follow_<asset>`; it also adds new keys to dynamic partitions."""

    @dg.sensor(
        name=f"follow_{rule.asset}",
        target=dg.AssetSelection.assets(rule.asset),
        description=f"Requests the partitions of {rule.asset} that differ from their inputs.",
        minimum_interval_seconds=interval_seconds,
        default_status=status,
    )
    def follow(
        context: dg.SensorEvaluationContext, platform: dg.ResourceParam[Resources]
    ) -> dg.SensorResult | dg.SkipReason:
        memory = load_memory(context.cursor)
        try:
            if is_paused(platform.data_root.store):
                return PAUSED
            stale = rule.stale(platform)
            plan = plan_of(rule, platform, stale=stale, memory=memory, instance=context.instance)
            after_plan(context, platform, plan)
        except NewsPlatformError as error:
            return report_unreadable_inputs(context, platform, rule.asset, error, memory=memory)
        return dg.SensorResult(
            run_requests=run_requests(plan),
            skip_reason=None if plan.requests else plan.text(),
            # All of them, in order: a request for several needs an unbroken range.
            dynamic_partitions_requests=new_partitions(
                context.instance, rule.partitions, sorted(plan.verdicts)
            ),
            cursor=dump_memory(plan.memory),
        )

    return follow


def after_plan(context: dg.SensorEvaluationContext, resources: Resources, plan: Plan) -> None:
    """Log the plan, send alerts about what began to fail or healed, delete served requests."""
    context.log.info("%s: %s", plan.asset, plan.text())
    for request in plan.requests:
        context.log.info("requested %s: %s", request.name, request.reason)
    for news in plan.news:
        run = run_of(context.instance, request_tag(plan.asset, news.request))
        error = news.failure.text()
        about = Alert.about(plan.asset, f"{plan.asset} {news.partition} failed: {error}")
        alert = failed_run(run, error, resources.settings) if run else about
        send_alert(context.log, resources.settings, alert)
    for kind in plan.healed:
        what = f"reading its inputs ({kind.removeprefix(LOOK)})" if LOOK in kind else kind
        text = f"{plan.asset} has healed: nothing fails with {what} any more"
        send_alert(context.log, resources.settings, Alert.about(plan.asset, text))
    store = resources.data_root.store
    if retries := read_retry_requests(store, plan.asset):
        delete_served(store, plan.asset, retries, plan.memory.units)


def report_unreadable_inputs(
    context: dg.SensorEvaluationContext,
    resources: Resources,
    asset: str,
    error: NewsPlatformError,
    *,
    memory: Memory,
    cursor: str | None = None,
) -> dg.SensorResult:
    """Answer a tick whose inputs could not be read: say so, alert once, and look again."""
    now = resources.clock.now().timestamp()
    kind = type(error).__name__
    memory, has_begun = with_outage(memory, kind, now=now)
    text = f"{asset}: cannot read what is stale: {kind}: {' '.join(str(error).split())}"
    if has_begun:
        alert = Alert.about(asset, f"{text}; tried again at every tick", error=str(error))
        send_alert(context.log, resources.settings, alert)
    since = clock(memory.alarms[f"{LOOK}{kind}"], now)
    return dg.SensorResult(
        skip_reason=f"{text} (since {since})",
        cursor=dump_memory(memory) if cursor is None else with_memory(cursor, memory),
    )


def with_memory(cursor: str | None, memory: Memory) -> str:
    """Return a cursor that holds the memory under `pending`, beside what else it holds."""
    return json.dumps({**json.loads(cursor or "{}"), "pending": json.loads(dump_memory(memory))})


def memory_in(cursor: str | None) -> Memory:
    """Return the memory that a cursor holds, on its own or under `pending`."""
    document = json.loads(cursor or "{}")
    return load_memory(json.dumps(document.get("pending", document)))


def observe_changes(
    context: dg.SensorEvaluationContext,
    asset: str,
    found: Fingerprints,
    partitions: dg.DynamicPartitionsDefinition,
) -> dg.SensorResult:
    """Observe the partitions of an external asset that changed since the last tick.

    `found` is the fingerprint of each partition's files now. New keys become partitions.
    """
    known: dict[str, str] = json.loads(context.cursor or "{}")
    changed = [key for key in sorted(found) if known.get(key) != found[key]]
    return dg.SensorResult(
        skip_reason=f"{len(found)} partitions, {len(changed)} of them new or changed",
        asset_events=[
            dg.AssetObservation(asset, partition=key, metadata={"fingerprint": found[key]})
            for key in changed
        ],
        dynamic_partitions_requests=new_partitions(context.instance, partitions, sorted(found)),
        cursor=json.dumps(found, sort_keys=True),
    )


def new_partitions(
    instance: dg.DagsterInstance,
    partitions: dg.PartitionsDefinition[str] | None,
    keys: Iterable[str],
) -> list[dg.AddDynamicPartitionsRequest]:
    """Return the request that adds the missing keys to dynamic partitions."""
    if not isinstance(partitions, dg.DynamicPartitionsDefinition) or partitions.name is None:
        return []
    known = set(instance.get_dynamic_partitions(partitions.name))
    missing = [key for key in keys if key not in known]
    return [partitions.build_add_request(missing)] if missing else []


def add_partitions(
    instance: dg.DagsterInstance, defs: dg.Definitions, asset: str, keys: Iterable[str]
) -> None:
    """Add the keys to the dynamic partitions of an asset."""
    partitions = defs.resolve_asset_graph().get(dg.AssetKey(asset)).partitions_def
    for request in new_partitions(instance, partitions, keys):
        instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
