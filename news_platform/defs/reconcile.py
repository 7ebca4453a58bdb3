"""Sensors that request every partition which differs from its inputs, with retries.

A sensor compares what the partitions of an asset were built from with what their inputs are now
(`Staleness`) and requests a run where they differ. Nothing depends on having seen an event, so
nothing is lost when a day is built again right after its request, when a parent is newer than its
follower within one tick, or when history existed before the sensor's first tick.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import dagster as dg

from news_platform.defs.staleness import WHOLE, Fingerprints, Staleness
from news_platform.resources import Resources
from news_platform.storage.commit.root import is_paused

# Marks each run with the partition and fingerprint that it was requested for.
REQUEST_TAG = "news_platform/request"
# The answer of every sensor and schedule while the root is paused.
PAUSED = dg.SkipReason("paused: run `news-platform resume` to start all sensors again")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many runs one sensor may have in progress, and how often it retries."""

    outstanding: int = 8
    attempts: int = 5
    backoff_seconds: float = 60.0
    longest_backoff_seconds: float = 3600.0

    def backoff(self, attempts: int) -> float:
        """Return how many seconds to wait after this many failed attempts."""
        doubled: float = self.backoff_seconds * 2.0 ** (attempts - 1)
        return min(doubled, self.longest_backoff_seconds)


@dataclass(frozen=True, slots=True)
class Pending:
    """A partition that was requested and does not match its inputs yet.

    `serial` is part of the run key and never repeats for one fingerprint, because Dagster creates
    only one run per run key, ever. `retry_at` (Unix seconds) is set once an attempt has ended
    without success; until then a run is expected.
    """

    fingerprint: str
    serial: int
    attempts: int = 1
    retry_at: float | None = None

    @property
    def is_awaited(self) -> bool:
        """Return whether a run is in progress, or should be."""
        return self.retry_at is None

    def run_key(self, partition: str) -> str:
        """Return the run key, for which Dagster creates only one run."""
        return f"{partition}@{self.fingerprint}#{self.serial}"


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs for one partition and fingerprint: all ever created, and those not finished."""

    total: int = 0
    unfinished: int = 0


@dataclass(frozen=True, slots=True)
class TickPlan:
    """The requests of one tick, and the state for the next one."""

    requests: Mapping[str, Pending]
    pending: Mapping[str, Pending]


RunsOf = Callable[[str, str], Runs]


def plan_requests(
    stale: Fingerprints,
    *,
    pending: Mapping[str, Pending],
    runs_of: RunsOf,
    now: float,
    limits: Limits,
) -> TickPlan:
    """Decide what to request; the partitions of `stale` are served in its order, newest first."""
    remembered = _observed(stale, pending=pending, runs_of=runs_of, now=now, limits=limits)
    requests: dict[str, Pending] = {}
    free = limits.outstanding - sum(state.is_awaited for state in remembered.values())
    for key, fingerprint in stale.items():
        if free <= 0:
            break
        state = remembered.get(key)
        if state is not None and not _is_due(state, now=now, limits=limits):
            continue
        remembered[key], is_new = _attempt(state, fingerprint, runs_of(key, fingerprint))
        if is_new:
            requests[key] = remembered[key]
        free -= 1
    return TickPlan(requests=requests, pending=remembered)


def _observed(
    stale: Fingerprints,
    *,
    pending: Mapping[str, Pending],
    runs_of: RunsOf,
    now: float,
    limits: Limits,
) -> dict[str, Pending]:
    """Return the state of the partitions that are still stale.

    A partition whose inputs changed again, or whose run was deleted, starts from the beginning, but
    not while a run of it is in progress.
    """
    kept: dict[str, Pending] = {}
    for key in stale.keys() & pending.keys():
        state = pending[key]
        runs = runs_of(key, state.fingerprint) if state.is_awaited else Runs(state.serial)
        if runs.unfinished:
            kept[key] = state
        elif stale[key] == state.fingerprint and runs.total >= state.serial:
            kept[key] = _ended(state, now=now, limits=limits)
    return kept


def _ended(state: Pending, *, now: float, limits: Limits) -> Pending:
    """Schedule a retry for an attempt that has ended while its partition is still stale."""
    if not state.is_awaited:
        return state
    return replace(state, retry_at=now + limits.backoff(state.attempts))


def _is_due(state: Pending, *, now: float, limits: Limits) -> bool:
    if state.retry_at is None:
        return False
    return state.attempts < limits.attempts and state.retry_at <= now


def _attempt(state: Pending | None, fingerprint: str, runs: Runs) -> tuple[Pending, bool]:
    """Return the next attempt, and whether it needs a request.

    It needs none if a run is in progress that a tick requested before it died without saving its
    cursor.
    """
    attempts = 1 if state is None else state.attempts + 1
    if runs.unfinished:
        return Pending(fingerprint, serial=runs.total, attempts=attempts), False
    return Pending(fingerprint, serial=runs.total + 1, attempts=attempts), True


def reconciling_sensor(
    staleness: Staleness,
    *,
    dynamic_partitions: dg.DynamicPartitionsDefinition | None = None,
    limits: Limits | None = None,
    interval_seconds: int = 60,
    status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.SensorDefinition:
    """Build the sensor `follow_<asset>`; it also adds new keys to dynamic partitions."""

    @dg.sensor(
        name=f"follow_{staleness.asset}",
        target=dg.AssetSelection.assets(staleness.asset),
        description=f"Requests the partitions of {staleness.asset} that differ from their inputs.",
        minimum_interval_seconds=interval_seconds,
        default_status=status,
    )
    def follow(
        context: dg.SensorEvaluationContext, platform: dg.ResourceParam[Resources]
    ) -> dg.SensorResult | dg.SkipReason:
        if is_paused(platform.data_root.store):
            return PAUSED
        plan = plan_requests(
            staleness.stale(platform),
            pending=load_cursor(context.cursor),
            runs_of=lambda key, fingerprint: runs_of(
                context.instance, staleness.asset, key, fingerprint
            ),
            now=datetime.now(UTC).timestamp(),
            limits=limits or Limits(),
        )
        return dg.SensorResult(
            run_requests=[
                run_request(staleness.asset, key, plan.requests[key]) for key in plan.requests
            ],
            dynamic_partitions_requests=new_partitions(
                context.instance, dynamic_partitions, plan.requests
            ),
            cursor=dump_cursor(plan.pending),
        )

    return follow


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


def run_request(asset: str, partition: str, attempt: Pending) -> dg.RunRequest:
    """Return the run request of an attempt, with the tag by which `runs_of` finds its run."""
    return dg.RunRequest(
        run_key=attempt.run_key(partition),
        partition_key=None if partition == WHOLE else partition,
        tags={REQUEST_TAG: _request_tag(asset, partition, attempt.fingerprint)},
    )


def runs_of(instance: dg.DagsterInstance, asset: str, partition: str, fingerprint: str) -> Runs:
    """Count the runs that were requested for a partition and fingerprint."""
    tags = {REQUEST_TAG: _request_tag(asset, partition, fingerprint)}
    records = instance.get_runs(filters=dg.RunsFilter(tags=tags))
    return Runs(len(records), sum(not run.is_finished for run in records))


def _request_tag(asset: str, partition: str, fingerprint: str) -> str:
    return f"{asset}|{partition}@{fingerprint}"


def load_cursor(cursor: str | None) -> dict[str, Pending]:
    """Parse the state that an earlier tick stored in the cursor."""
    return {key: Pending(**state) for key, state in json.loads(cursor or "{}").items()}


def dump_cursor(pending: Mapping[str, Pending]) -> str:
    """Return the state for the next tick as cursor text."""
    return json.dumps({key: asdict(state) for key, state in sorted(pending.items())})
