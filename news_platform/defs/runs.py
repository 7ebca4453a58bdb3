"""Read runs from Dagster: which partitions are being built, and how a requested run ended."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    MAX_RETRIES_TAG,
    MAX_RUNTIME_SECONDS_TAG,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
)
from dagster._time import get_current_timestamp
from dagster_shared.error import SerializableErrorInfo

from news_platform.defs.planning import Plan, Request, as_day, is_fresh
from news_platform.defs.rebuild_rules import WHOLE
from news_platform.defs.sensor_state import CANCELED, Outcome
from news_platform.defs.tasks import TASKS
from news_platform.errors import NewsPlatformError, is_retriable

# Marks a run with the request that it was made for, and says why it was requested.
REQUEST_TAG = "news_platform/request"
REASON_TAG = "news_platform/reason"
ATTEMPT_TAG = "news_platform/attempt"
RANGE_START_TAG, RANGE_END_TAG = ASSET_PARTITION_RANGE_START_TAG, ASSET_PARTITION_RANGE_END_TAG
UNFINISHED = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
# The longest run of a schedule; other runs have the limit of dagster.yaml.
SCHEDULED_SECONDS = 3 * 3600
# Places in Dagster's queue; runs of backfills and of history have none, which is 0.
_FRESH_PRIORITY, _ALL_DAYS_PRIORITY = "2", "1"
# Dagster looks for overdue runs every half minute, and lets a run end by itself for two minutes.
_END_SECONDS = 300
_LOST = Outcome("WorkerLost", "the run ended without an error of its own")
_CANCELED = Outcome(CANCELED, "an operator canceled the run")


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that is queued or running: its assets, and the partitions from `first` to `last`.

    `first` is None for a run without partitions. `asset` is the asset whose sensor requested it.
    """

    run_id: str
    assets: frozenset[str]
    first: str | None
    last: str | None
    asset: str = ""
    created_at: float | None = None

    def builds(self, key: str, order: Mapping[str, int]) -> bool:
        """Return whether the run builds a partition; `order` has the places of dynamic ones."""
        if self.first is None or self.last is None:
            return key == WHOLE
        if self.first in order and self.last in order:
            return order[self.first] <= order.get(key, -1) <= order[self.last]
        return self.first <= key <= self.last


@dataclass(frozen=True, slots=True)
class UnfinishedBackfill:
    """The partitions of an asset that a backfill has yet to build."""

    backfill_id: str
    asset: str
    partitions: frozenset[str]


def unfinished_runs(instance: dg.DagsterInstance) -> list[UnfinishedRun]:
    """Return all runs that are queued or running, whoever requested them."""
    records = instance.get_run_records(filters=dg.RunsFilter(statuses=list(UNFINISHED)))
    return [
        _unfinished(record.dagster_run, record.create_timestamp.timestamp()) for record in records
    ]


def _unfinished(run: dg.DagsterRun, created_at: float) -> UnfinishedRun:
    tags = run.tags
    single = tags.get(PARTITION_NAME_TAG)
    return UnfinishedRun(
        run.run_id,
        run_assets(run),
        first=tags.get(RANGE_START_TAG, single),
        last=tags.get(RANGE_END_TAG, single),
        asset=tags.get(REQUEST_TAG, "").partition("|")[0],
        created_at=created_at,
    )


def run_assets(run: dg.DagsterRun) -> frozenset[str]:
    """Return the assets of a run; a run of one of our jobs as a whole has no selection."""
    if run.asset_selection is not None:
        return frozenset(key.to_user_string() for key in run.asset_selection)
    task = TASKS.get(run.job_name)
    return frozenset(task.assets) if task else frozenset()


def unfinished_backfills(instance: dg.DagsterInstance) -> Iterator[UnfinishedBackfill]:
    """Yield what backfills have yet to build, also what has no run so far."""
    active = BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])
    for backfill in instance.get_backfills(filters=active):
        data = backfill.asset_backfill_data
        if data is None:
            continue
        left = data.get_targeted_partitions_without_materialization_status()
        for key, subset in left.partitions_subsets_by_asset_key.items():
            yield UnfinishedBackfill(
                backfill.backfill_id, key.to_user_string(), frozenset(subset.get_partition_keys())
            )


def outcome_of(instance: dg.DagsterInstance, request: str) -> Outcome | None:
    """Return how the newest run of a request ended; None if there is no run."""
    run = run_of(instance, request)
    if run is None:
        return None
    if run.status == dg.DagsterRunStatus.SUCCESS:
        return Outcome()
    if run.status == dg.DagsterRunStatus.CANCELED:
        return _CANCELED
    return run_failure(instance, run.run_id)


def run_of(instance: dg.DagsterInstance, request: str) -> dg.DagsterRun | None:
    """Return the newest run of a request."""
    runs = instance.get_runs(filters=dg.RunsFilter(tags={REQUEST_TAG: request}), limit=1)
    return runs[0] if runs else None


def run_failure(instance: dg.DagsterInstance, run_id: str) -> Outcome:
    """Return the first error of a failed run, with its class and whether a retry may help."""
    failures = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    for record in failures.records:
        event = record.event_log_entry.dagster_event
        error = event.step_failure_data.error if event else None
        if error is not None:
            return _outcome(error)
    return _LOST


def _outcome(error: SerializableErrorInfo) -> Outcome:
    """Classify an error by the first of our own classes in its chain of causes."""
    ours = {kind.__name__: kind for kind in _subclasses(NewsPlatformError)}
    for cause in _chain(error):
        kind = ours.get(cause.cls_name or "")
        if kind is not None:
            return Outcome(kind.__name__, _message(cause), is_final=not is_retriable(kind))
    innermost = list(_chain(error))[-1]
    return Outcome(innermost.cls_name or "Error", _message(innermost))


def _chain(error: SerializableErrorInfo) -> Iterator[SerializableErrorInfo]:
    found: SerializableErrorInfo | None = error
    while found is not None:
        yield found
        found = found.cause


def _subclasses(kind: type[NewsPlatformError]) -> Iterator[type[NewsPlatformError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _subclasses(child)


def _message(error: SerializableErrorInfo) -> str:
    # Dagster's message begins with the class of the error.
    _, _, text = error.message.strip().partition(": ")
    return " ".join((text or error.message).split())


def run_requests(plan: Plan) -> list[dg.RunRequest]:
    """Return the run requests of a plan."""
    return [_run_request(plan, request) for request in plan.requests]


def _run_request(plan: Plan, request: Request) -> dg.RunRequest:
    first, last = request.partitions[0], request.partitions[-1]
    failure = plan.memory.units[first].failure
    tags = {
        REQUEST_TAG: request_tag(plan.asset, request.name),
        REASON_TAG: request.reason,
        ATTEMPT_TAG: str(failure.count + 1 if failure else 1),
        # The sensor itself tries again. Retries of the instance would multiply its attempts.
        MAX_RETRIES_TAG: "0",
    }
    if priority := _priority(last, plan.now):
        tags[PRIORITY_TAG] = priority
    if first != last:
        tags[RANGE_START_TAG] = first
        tags[RANGE_END_TAG] = last
    return dg.RunRequest(
        run_key=request.name,
        partition_key=first if first == last and first != WHOLE else None,
        # Without it the run is an anonymous job to queues and alerts.
        asset_selection=[dg.AssetKey(plan.asset)],
        tags=tags,
    )


def _priority(key: str, now: float) -> str:
    """Return the place of a run in Dagster's queue: new days, followers of all days, history.

    Otherwise the days that grow wait for hours behind the days that a backfill makes stale.
    """
    if as_day(key) is None:
        return _ALL_DAYS_PRIORITY
    return _FRESH_PRIORITY if is_fresh(key, now) else ""


def request_tag(asset: str, name: str) -> str:
    """Return the value of REQUEST_TAG by which `outcome_of` finds the run of a request."""
    return f"{asset}|{name}"


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


def run_under_way(instance: dg.DagsterInstance, asset: str) -> str | None:
    """Return a run of the asset that has not finished.

    One that is older than its `max_runtime` hangs, and does not count: its schedule goes on even if
    nothing could end the run.
    """
    oldest = get_current_timestamp() - SCHEDULED_SECONDS - _END_SECONDS
    for run in unfinished_runs(instance):
        if asset in run.assets and (run.created_at or 0.0) > oldest:
            return run.run_id
    return None


def scheduled_run(asset: str) -> dg.RunRequest:
    """Return the request of a schedule: the next tick comes soon, so the run may not take long."""
    return dg.RunRequest(
        asset_selection=[dg.AssetKey(asset)],
        tags={
            MAX_RUNTIME_SECONDS_TAG: str(SCHEDULED_SECONDS),
            MAX_RETRIES_TAG: "0",
            PRIORITY_TAG: _FRESH_PRIORITY,
        },
    )
