"""Sensors that request every partition which differs from its inputs, and say what they saw.

A sensor compares what the partitions of an asset were built from with what their inputs are now
(`RebuildRule`) and requests a run where they differ. Nothing depends on having seen an event, so
nothing is lost when a day is built again right after its request, when a parent is newer than its
follower within one tick, or when history existed before the sensor's first tick. `planning`
decides; this module reads what a plan needs and carries it out.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from importlib.metadata import version

import dagster as dg
from dagster._core.storage.tags import MAX_RETRIES_TAG, PRIORITY_TAG

from news_platform.datasets.dataset import EVERY, WHOLE
from news_platform.defs.alerts import Alert, send_alert
from news_platform.defs.checks import red_reasons
from news_platform.defs.planning import (
    Plan,
    Request,
    TickInput,
    clock,
    is_fresh,
    plan_requests,
)
from news_platform.defs.rebuild_rules import Fingerprints, Parent, Platform, RebuildRule, Seen
from news_platform.defs.retry_requests import delete_served, read_retry_requests
from news_platform.defs.runs import (
    ALL_DAYS_PRIORITY,
    ATTEMPT_TAG,
    FRESH_PRIORITY,
    INPUTS_TAG,
    PREVIOUS_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REASON_TAG,
    REQUEST_TAG,
    SETTINGS_TAG,
    History,
    Work,
    read_history,
    run_under_way,
    scheduled_run,
    tag_failures,
)
from news_platform.defs.sensor_state import (
    SensorState,
    alarm_text,
    as_day,
    dump_state,
    load_state,
    with_unreadable_inputs,
)
from news_platform.errors import NewsPlatformError, StoreUnavailable
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import NotFound, ObjectStore

# The answer of every sensor and schedule while the root is paused.
PAUSED = dg.SkipReason("paused: run `news-platform resume` to start all sensors again")
# Sections of the settings whose values change what is built, and the fields that do not.
_OUTPUT_SECTIONS = {
    "ccnews",
    "domain_store",
    "domain_metadata",
    "rss",
    "newsroom",
    "source_records",
    "corpus",
    "search",
}
_MACHINE_FIELDS = ("workers", "memory_mb", "scratch")
# What watchers saw at their last tick; the cursor has only its fingerprint.
_OBSERVED = "automation/observed"


def skip_reason(store: ObjectStore) -> dg.SkipReason | None:
    """Return why a sensor or schedule does nothing now: its root is paused or does not answer.

    Dagster evaluates a tick that raises an error only once: the reason is shown, and the next tick
    tries again.
    """
    try:
        return PAUSED if is_paused(store) else None
    except StoreUnavailable as error:
        return dg.SkipReason(f"cannot read the root: {' '.join(str(error).split())}")


def plan_of(
    rule: RebuildRule,
    resources: Resources,
    *,
    stale: Fingerprints,
    state: SensorState,
    work: Work,
    instance: dg.DagsterInstance | None,
) -> Plan:
    """Return the plan of an asset as it is now, for its sensor and for `news-platform status`.

    `work` is read before `stale` (see `Work.read`). Without an instance, attempts are not known.
    """
    asset, now, limits = rule.asset, resources.clock.now(), rule.limits_in(resources)
    order = partition_order(instance, rule.partitions, stale)
    history = History({}, {})
    if instance is not None:
        since = {key: state.stale_since.get(key, now.timestamp()) for key in stale}
        history = read_history(
            instance, asset, since, work=work, now=now, seconds=limits.spacing_seconds
        )
    tick = TickInput(
        asset,
        stale,
        now.timestamp(),
        attempts=history.attempts,
        mended=history.mended,
        running=work.builders(asset, stale.keys(), order),
        own=len(work.requested_by(asset)),
        holds=rule.holds(resources, stale, now) if rule.holds and stale else {},
        parents={
            **_parents(rule, stale, work),
            **(damaged_parents(rule.parents, stale, instance) if instance else {}),
        },
        busy=_busy(rule, resources, work) if stale else "",
        retry_requests=read_retry_requests(resources.data_root.store, asset),
        order=order,
        settings=settings_digest(resources.settings),
    )
    return plan_requests(tick, state, limits)


def _parents(rule: RebuildRule, stale: Fingerprints, work: Work) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for parent in rule.parents:
        if parent.partitions is not None:
            builds = [one for one in work.builds if parent.asset in one.assets]
            is_input = parent.partitions.is_input({unit for one in builds for unit in one.units()})
            being_built = f"{parent.asset} is being built"
            found |= {key: being_built for key in stale if builds and is_input(key)}
    return found


def damaged_parents(
    parents: Iterable[Parent], keys: Collection[str], instance: dg.DagsterInstance
) -> Mapping[str, str]:
    """Return the partitions that would be built from damaged ones, and which check says so."""
    found: dict[str, str] = {}
    for parent in parents:
        red = red_reasons(parent.asset, instance) if keys else {}
        follows = parent.partitions or EVERY
        is_input = follows.is_input(red)
        for key in (key for key in keys if red and is_input(key)):
            # Its own day first: a window of days has several.
            near = (red[one] for one in (key, *red) if one in red and follows.is_input({one})(key))
            found[key] = next(near)
    return found


def _busy(rule: RebuildRule, resources: Resources, work: Work) -> str:
    for parent in rule.parents:
        if parent.partitions is None and work.runs_of(parent.asset):
            return f"{parent.asset} is being built"
        if parent.is_behind is not None and parent.is_behind(resources):
            return f"{parent.asset} is behind"
    return ""


@cache
def _platform_version() -> str:
    """Return the version, which is read from a file."""
    return version("news-platform")


def settings_digest(settings: Settings) -> str:
    """Return a digest of what lifts a stop: the version, and the settings that change outputs.

    It is the same for the daemon, for a command and for a server, wherever they run.
    """
    sections = settings.model_dump(mode="json", include=_OUTPUT_SECTIONS)
    given = {
        name: {field: value for field, value in fields.items() if field not in _MACHINE_FIELDS}
        for name, fields in sections.items()
    }
    text = f"{_platform_version()}\n{json.dumps(given, sort_keys=True)}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def reconciling_sensor(rule: RebuildRule, *, interval_seconds: int = 60) -> dg.SensorDefinition:
    """Build the sensor of a rule; it also adds new keys to dynamic partitions."""

    @dg.sensor(
        name=rule.sensor,
        target=dg.AssetSelection.assets(*rule.outputs or (rule.asset,)),
        description=f"Requests the partitions of {rule.asset} that differ from their inputs.",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def follow(
        context: dg.SensorEvaluationContext, platform: Platform
    ) -> dg.SensorResult | dg.SkipReason:
        state = load_state(context.cursor)
        try:
            if is_paused(platform.data_root.store):
                return PAUSED
            if state.is_damaged:
                text = f"the cursor of {rule.sensor} cannot be read: the sensor starts anew"
                send_alert(context.log, platform.settings, Alert(text, assets=rule.asset))
            work = Work.read(context.instance)
            seen = rule.seen(platform, state)
            seen.record()
            plan = plan_of(
                rule, platform, stale=seen.stale, state=state, work=work, instance=context.instance
            )
            report_plan(context, platform, plan)
        except NewsPlatformError as error:
            return report_unreadable_inputs(context, platform, rule.asset, error, state)
        return dg.SensorResult(
            run_requests=[_run_request(plan, rule, one, seen) for one in plan.requests],
            skip_reason=None if plan.requests else plan.text(),
            asset_events=seen.observations,
            # All of them, in order: a request for several needs an unbroken range.
            dynamic_partitions_requests=new_partitions(
                context.instance,
                rule.partitions,
                sorted({*plan.partitions, *rule.keys(platform)}),
            ),
            cursor=dump_state(replace(plan.state, listings=seen.listings)),
        )

    return follow


def report_plan(context: dg.SensorEvaluationContext, resources: Resources, plan: Plan) -> None:
    """Log the plan, alert to what began to fail or healed, and note what the next tick needs."""
    asset, settings = plan.tick.asset, resources.settings
    # Every tick that logs leaves a file behind: only news are logged, its reason shows the rest.
    if plan.requests:
        context.log.info("%s: %s", asset, plan.text())
    for request in plan.requests:
        context.log.info("requested %s: %s", request.run_key, request.reason)
    for key, failure in plan.begun.items():
        run, error = context.instance.get_run_by_id(failure.run_id), failure.error.text()
        about = Alert(f"{asset} {key} failed: {error}", assets=asset, partition=key)
        send_alert(context.log, settings, Alert.of_run(run, error) if run else about)
    for alarm in plan.healed:
        text = f"{asset} has healed: nothing fails with {alarm_text(alarm)} any more"
        send_alert(context.log, settings, Alert(text, assets=asset))
    tag_failures(context.instance, asset, plan.tick.attempts.values())
    delete_served(resources.data_root.store, plan.tick)


def report_unreadable_inputs(
    context: dg.SensorEvaluationContext,
    resources: Resources,
    asset: str,
    error: NewsPlatformError,
    state: SensorState,
) -> dg.SensorResult:
    """Answer a tick whose inputs could not be read: say so, alert once, and try again."""
    now = resources.clock.now().timestamp()
    kind = type(error).__name__
    after, since = with_unreadable_inputs(state, kind, now=now)
    text = f"{asset}: cannot read what is stale: {kind}: {' '.join(str(error).split())}"
    if after != state:
        alert = Alert(f"{text}; tried again at every tick", assets=asset, error=str(error))
        send_alert(context.log, resources.settings, alert)
    return dg.SensorResult(
        skip_reason=f"{text} (since {clock(since, now)})", cursor=dump_state(after)
    )


def _run_request(plan: Plan, rule: RebuildRule, request: Request, seen: Seen) -> dg.RunRequest:
    first, last = request.partitions[0], request.partitions[-1]
    tags = {
        REQUEST_TAG: plan.tick.asset,
        REASON_TAG: request.reason,
        INPUTS_TAG: json.dumps(request.inputs),
        ATTEMPT_TAG: str(request.number),
        SETTINGS_TAG: plan.tick.settings,
        # The sensor itself tries again. Retries of the instance would multiply its attempts.
        MAX_RETRIES_TAG: "0",
    }
    if request.previous:
        tags[PREVIOUS_TAG] = request.previous
    if priority := run_priority(last, plan.tick.now):
        tags[PRIORITY_TAG] = priority
    if first != last:
        tags |= {RANGE_START_TAG: first, RANGE_END_TAG: last}
    return dg.RunRequest(
        run_key=request.run_key,
        partition_key=first if first == last and first != WHOLE else None,
        # Without it the run is an anonymous job to queues and alerts.
        asset_selection=[dg.AssetKey(name) for name in rule.outputs or (rule.asset,)],
        run_config=seen.run_config(first),
        tags=tags,
    )


def run_priority(key: str, now: float) -> str:
    """Return the place of a run in Dagster's queue: new days, followers of all days, history.

    Otherwise the days that grow wait for hours behind the days that a backfill makes stale.
    """
    if as_day(key) is None:
        return ALL_DAYS_PRIORITY
    return FRESH_PRIORITY if is_fresh(key, now) else ""


def partition_order(
    instance: dg.DagsterInstance | None,
    partitions: dg.PartitionsDefinition[str] | None,
    stale: Collection[str],
) -> list[str]:
    """Return the stale partitions, and all between them, in the order of ranges in Dagster."""
    if isinstance(partitions, dg.DynamicPartitionsDefinition):
        known = instance.get_dynamic_partitions(str(partitions.name)) if instance else ()
        return [*known, *sorted(set(stale) - set(known))]
    if partitions is None or not stale:
        return sorted(stale)
    if isinstance(partitions, dg.MonthlyPartitionsDefinition):
        months = dg.PartitionKeyRange(min(stale), max(stale))
        return list(partitions.get_partition_keys_in_range(months))
    first, last = date.fromisoformat(min(stale)), date.fromisoformat(max(stale))
    return [str(first + timedelta(days=number)) for number in range((last - first).days + 1)]


def observe_changes(
    context: dg.SensorEvaluationContext,
    store: ObjectStore,
    asset: str,
    found: Fingerprints,
    partitions: dg.DynamicPartitionsDefinition,
) -> dg.SensorResult:
    """Observe the partitions of an external asset that changed since the last tick.

    `found` is the fingerprint of each partition's files now. New keys become partitions.
    """
    cursor = fingerprint(f"{key} {value}" for key, value in found.items())
    known = _read_observed(store, asset) if cursor != context.cursor else found
    changed = [key for key in sorted(found) if known.get(key) != found[key]]
    if known != found:
        store.put(f"{_OBSERVED}/{asset}.json", json.dumps(found, sort_keys=True).encode())
    return dg.SensorResult(
        skip_reason=f"{len(found)} partitions, {len(changed)} of them new or changed",
        asset_events=[
            dg.AssetObservation(asset, partition=key, metadata={"fingerprint": found[key]})
            for key in changed
        ],
        dynamic_partitions_requests=new_partitions(context.instance, partitions, sorted(found)),
        cursor=cursor,
    )


def _read_observed(store: ObjectStore, asset: str) -> Fingerprints:
    """Return what the last tick found; a file that is missing or unreadable counts as nothing."""
    try:
        return dict(json.loads(store.read(f"{_OBSERVED}/{asset}.json")))
    except (NotFound, ValueError, TypeError):
        return {}


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


def asset_schedule(
    rule: RebuildRule,
    *,
    cron: str,
    description: str,
    is_due: Callable[[Resources], object] | None = None,
    run_config: Mapping[str, object] | None = None,
) -> dg.ScheduleDefinition:
    """Build the schedule `run_<asset>`: it runs an asset that is stale and not running already.

    `is_due` replaces the rule, where more than what is stored decides.
    """

    @dg.schedule(
        name=f"run_{rule.asset}",
        target=dg.AssetSelection.assets(rule.asset),
        cron_schedule=cron,
        description=description,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def tick(
        context: dg.ScheduleEvaluationContext, platform: Platform
    ) -> dg.RunRequest | dg.SkipReason:
        if reason := skip_reason(platform.data_root.store):
            return reason
        # A long run must not get a queue of further runs behind it.
        if running := run_under_way(context.instance, rule.asset):
            return dg.SkipReason(f"run {running} has not finished")
        if not (is_due or rule.stale)(platform):
            return dg.SkipReason("nothing is due")
        return scheduled_run(rule.asset).with_replaced_attrs(run_config=run_config)

    return tick


def nightly_job(
    op: dg.OpDefinition, *, name: str, cron: str, description: str
) -> tuple[dg.JobDefinition, dg.ScheduleDefinition]:
    """Return the job that runs a maintenance op, and its schedule `<name>_every_night`."""
    job = dg.GraphDefinition(name=name, node_defs=[op], description=description).to_job(
        executor_def=dg.in_process_executor
    )

    @dg.schedule(
        name=f"{name}_every_night",
        job=job,
        cron_schedule=cron,
        description=f"Every night: {description}",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def every_night(platform: Platform) -> dg.RunRequest | dg.SkipReason:
        return skip_reason(platform.data_root.store) or dg.RunRequest()

    return job, every_night
