"""Read from Dagster what is being built, and how the runs that sensors requested have ended.

A run carries everything about its request as tags, so a sensor keeps no book of its own: nothing
can differ from what really ran, and a deleted run was never tried.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster._core.storage.dagster_run import (
    FINISHED_STATUSES,
    NOT_FINISHED_STATUSES,
    RunRecord,
)
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

from news_platform.datasets.dataset import WHOLE, Dataset
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.registry import DATASETS
from news_platform.defs.sensor_state import CANCELED, DAY, HOUR, Attempt, RunError, as_day
from news_platform.errors import NewsPlatformError, is_retriable
from news_platform.logs import bind_process

# Tags of a run that a sensor requested: its asset, why, the inputs of its partitions as JSON, how
# many attempts in a row, what the one before failed with, and a digest of the settings.
REQUEST_TAG = "news_platform/request"
REASON_TAG = "news_platform/reason"
INPUTS_TAG = "news_platform/inputs"
ATTEMPT_TAG = "news_platform/attempt"
PREVIOUS_TAG = "news_platform/previous"
SETTINGS_TAG = "news_platform/settings"
# Tags that the sensor adds to a failed run, so that it need not read its events again: the error,
# and the asset if a retry is useless. Such a run is found by its tag however old it is.
FAILURE_TAG = "news_platform/failure"
PERMANENT_TAG = "news_platform/permanent"
RANGE_START_TAG, RANGE_END_TAG = ASSET_PARTITION_RANGE_START_TAG, ASSET_PARTITION_RANGE_END_TAG
# The longest pause between two attempts is a day: older failures do not delay the next one.
_HISTORY_SECONDS = DAY + 2 * HOUR
# Bounds a tick in an outage of thousands of partitions; those beyond are merely retried sooner.
_MOST_RUNS = 5_000
_LONGEST_MESSAGE = 500
# The longest run of a schedule; other runs have the limit of dagster.yaml.
SCHEDULED_SECONDS = 3 * 3600
# Places in Dagster's queue; runs of backfills and of history have none, which is 0.
FRESH_PRIORITY, ALL_DAYS_PRIORITY = "2", "1"
# Dagster looks for overdue runs every half minute, and lets a run end by itself for two minutes.
_END_SECONDS = 300
LOST = RunError("WorkerLost", "the run ended without an error of its own")
_SHOWN_ASSETS = 3

CRAWL_OUTPUTS = tuple(
    name for name, dataset in DATASETS.items() if dataset.fingerprint == "collected"
)
"""Every asset that a run of raw_news writes; that is the first of them."""


def _is_built_alone(dataset: Dataset) -> bool:
    # Outside systems write what has no version; a run of raw_news writes its side tables.
    is_side_table = dataset.fingerprint == "collected" and dataset is not RAW_NEWS
    return dataset.is_asset and dataset.version is not None and not is_side_table


JOB_ASSETS: Mapping[str, tuple[str, ...]] = {
    f"build_{name}": CRAWL_OUTPUTS if dataset is RAW_NEWS else (name,)
    for name, dataset in DATASETS.items()
    if _is_built_alone(dataset)
}
"""One job per asset that is built, with the assets of its runs."""


@dataclass(frozen=True, slots=True)
class Build:
    """A run that is queued or running, or the rest of a backfill: its assets and partitions.

    A run builds those from `first` to `last`, both None for a run without partitions; a backfill
    builds `keys`, also those that have no run so far. `requested_by` is the asset whose sensor
    requested the run, and `attempt` what it requested.
    """

    name: str
    assets: frozenset[str]
    first: str | None = None
    last: str | None = None
    keys: frozenset[str] = frozenset()
    created_at: float = 0.0
    requested_by: str = ""
    attempt: Attempt | None = None

    @classmethod
    def of_run(cls, record: RunRecord) -> "Build":
        """Read the run of a record."""
        run, tags = record.dagster_run, record.dagster_run.tags
        single = tags.get(PARTITION_NAME_TAG)
        return cls(
            run.run_id,
            run_assets(run),
            first=tags.get(RANGE_START_TAG, single),
            last=tags.get(RANGE_END_TAG, single),
            created_at=record.create_timestamp.timestamp(),
            requested_by=tags.get(REQUEST_TAG, ""),
            attempt=_attempt(record) if REQUEST_TAG in tags else None,
        )

    def units(self) -> Iterator[str]:
        """Yield the partitions that it builds; of ranges other than days, the ends."""
        yield from self.keys
        if self.first is not None and self.last is not None:
            first, last = as_day(self.first), as_day(self.last)
            if first is None or last is None:
                yield from {self.first, self.last}
            else:
                days = range((last - first).days + 1)
                yield from (str(first + timedelta(days=number)) for number in days)


@dataclass(frozen=True, slots=True)
class Work:
    """What is being built now, by anybody."""

    builds: tuple[Build, ...] = ()

    @classmethod
    def read(cls, instance: dg.DagsterInstance) -> "Work":
        """Read the unfinished runs and backfills of an instance.

        Read them before what is stale: a run that ends in between then still counts as running, and
        not as one that left its partition stale.
        """
        records = instance.get_run_records(filters=dg.RunsFilter(statuses=NOT_FINISHED_STATUSES))
        return cls((*map(Build.of_run, records), *_backfills(instance)))

    def builders(self, asset: str, keys: Collection[str], order: Sequence[str]) -> dict[str, str]:
        """Return the run or backfill that builds each of these partitions of an asset.

        `order` has all partitions between them, in Dagster's order.
        """
        places = {key: number for number, key in enumerate(order)}
        stale, found = set(keys), dict[str, str]()
        for one in self.builds:
            if asset not in one.assets:
                continue
            first, last = one.first, one.last
            if one.keys or first is None or last is None:
                built = (one.keys or {WHOLE}) & stale
            elif first in places and last in places:
                built = stale.intersection(order[places[first] : places[last] + 1])
            else:
                built = {key for key in stale if first <= key <= last}
            found |= dict.fromkeys(built - found.keys(), one.name)
        return found

    def runs_of(self, asset: str) -> list[Build]:
        """Return the runs that build any partition of an asset."""
        return [one for one in self.builds if asset in one.assets and not one.keys]

    def requested_by(self, asset: str) -> list[Build]:
        """Return the runs that the sensor of an asset requested."""
        return [one for one in self.builds if one.requested_by == asset]


def _backfills(instance: dg.DagsterInstance) -> Iterator[Build]:
    active = BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])
    for backfill in instance.get_backfills(filters=active):
        data = backfill.asset_backfill_data
        if data is None:
            continue
        left = data.get_targeted_partitions_without_materialization_status()
        for asset, subset in left.partitions_subsets_by_asset_key.items():
            if keys := frozenset(subset.get_partition_keys()):
                assets = frozenset({asset.to_user_string()})
                yield Build(f"of backfill {backfill.backfill_id}", assets, keys=keys)


def run_assets(run: dg.DagsterRun) -> frozenset[str]:
    """Return the assets of a run; a run of one of our jobs as a whole has no selection."""
    if run.asset_selection is not None:
        return frozenset(key.to_user_string() for key in run.asset_selection)
    return frozenset(JOB_ASSETS.get(run.job_name, ()))


def run_partition(run: dg.DagsterRun) -> str:
    """Return the partition of a run, the first and last of several, or an empty text."""
    if RANGE_START_TAG in run.tags:
        return f"{run.tags[RANGE_START_TAG]}...{run.tags[RANGE_END_TAG]}"
    return run.tags.get(PARTITION_NAME_TAG, "")


@dataclass(frozen=True, slots=True)
class History:
    """The last attempt of each partition, and when a retry after a kind of error last succeeded."""

    attempts: Mapping[str, Attempt]
    mended: Mapping[str, float]


def read_history(
    instance: dg.DagsterInstance,
    asset: str,
    stale_since: Mapping[str, float],
    *,
    work: Work,
    now: datetime,
    seconds: float = 0.0,
) -> History:
    """Read the runs that the sensor of an asset requested for these stale partitions.

    Two queries, by tags: the runs of the last day, or of the last `seconds` if that is longer, and
    permanent failures since the first of the partitions became stale.
    """
    if not stale_since:
        return History({}, {})
    after = now - timedelta(seconds=max(_HISTORY_SECONDS, seconds))
    recent = instance.get_run_records(
        dg.RunsFilter(tags={REQUEST_TAG: asset}, statuses=FINISHED_STATUSES, updated_after=after),
        limit=_MOST_RUNS,
    )
    stopped = instance.get_run_records(
        dg.RunsFilter(
            tags={PERMANENT_TAG: asset},
            created_after=datetime.fromtimestamp(min(stale_since.values()) - HOUR, UTC),
        ),
        limit=_MOST_RUNS,
    )
    attempts = {
        key: run.attempt
        for run in work.requested_by(asset)
        if run.attempt
        for key in run.attempt.inputs
    }
    for record in sorted((*recent, *stopped), key=lambda one: -one.storage_id):
        built = stale_since.keys() & _inputs(record.dagster_run).keys()
        if missing := built - attempts.keys():
            attempts |= dict.fromkeys(missing, _attempt(record, instance))
    return History(attempts, _mended(recent))


def _mended(records: Collection[RunRecord]) -> Mapping[str, float]:
    ended: dict[str, float] = {}
    for record in records:
        previous = record.dagster_run.tags.get(PREVIOUS_TAG)
        if previous and record.dagster_run.status == dg.DagsterRunStatus.SUCCESS:
            ended[previous] = max(ended.get(previous, 0.0), _ended_at(record))
    return ended


def _attempt(record: RunRecord, instance: dg.DagsterInstance | None = None) -> Attempt:
    """Return the attempt of a run; with an instance that of a finished one."""
    run, tags = record.dagster_run, record.dagster_run.tags
    return Attempt(
        run.run_id,
        _inputs(run),
        record.create_timestamp.timestamp(),
        ended_at=_ended_at(record) if instance else None,
        error=_run_error(run, instance) if instance else None,
        number=int(tags.get(ATTEMPT_TAG, "1")),
        previous=tags.get(PREVIOUS_TAG, ""),
        settings=tags.get(SETTINGS_TAG, ""),
        is_tagged=run.status != dg.DagsterRunStatus.FAILURE or FAILURE_TAG in tags,
    )


def _inputs(run: dg.DagsterRun) -> Mapping[str, str]:
    inputs: dict[str, str] = json.loads(run.tags.get(INPUTS_TAG, "{}"))
    return inputs


def _ended_at(record: RunRecord) -> float:
    return record.end_time or record.update_timestamp.timestamp()


def _run_error(run: dg.DagsterRun, instance: dg.DagsterInstance) -> RunError | None:
    if run.status == dg.DagsterRunStatus.SUCCESS:
        return None
    if run.status == dg.DagsterRunStatus.CANCELED:
        return CANCELED
    if FAILURE_TAG not in run.tags:
        return run_failure(instance, run.run_id)
    kind, _, message = run.tags[FAILURE_TAG].partition(": ")
    return RunError(kind, message, is_final=PERMANENT_TAG in run.tags)


def tag_failures(instance: dg.DagsterInstance, asset: str, attempts: Collection[Attempt]) -> None:
    """Tag failed runs with their error."""
    untagged = {one.run_id: one for one in attempts if one.error and not one.is_tagged}
    for run_id, attempt in untagged.items():
        assert attempt.error is not None
        tags = {FAILURE_TAG: attempt.error.text()[:_LONGEST_MESSAGE]}
        # Of several partitions, the one to blame is found by building each alone.
        if attempt.error.is_final and len(attempt.inputs) == 1:
            tags[PERMANENT_TAG] = asset
        instance.add_run_tags(run_id, tags)


def run_failure(instance: dg.DagsterInstance, run_id: str) -> RunError:
    """Return the first error of a failed run, with its class and whether a retry may help."""
    failures = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    for record in failures.records:
        event = record.event_log_entry.dagster_event
        error = event.step_failure_data.error if event else None
        if error is not None:
            return _error(error)
    return LOST


def _error(error: SerializableErrorInfo) -> RunError:
    """Classify an error by the first of our own classes in its chain of causes."""
    ours = {kind.__name__: kind for kind in _subclasses(NewsPlatformError)}
    for cause in _chain(error):
        kind = ours.get(cause.cls_name or "")
        if kind is not None:
            return RunError(kind.__name__, _message(cause), is_final=not is_retriable(kind))
    innermost = list(_chain(error))[-1]
    return RunError(innermost.cls_name or "Error", _message(innermost))


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


def run_under_way(instance: dg.DagsterInstance, asset: str) -> str | None:
    """Return a run of the asset that has not finished.

    One that is older than its `max_runtime` hangs, and does not count: its schedule goes on even if
    nothing could end the run.
    """
    oldest = get_current_timestamp() - SCHEDULED_SECONDS - _END_SECONDS
    runs = (run.name for run in Work.read(instance).runs_of(asset) if run.created_at > oldest)
    return next(runs, None)


def scheduled_run(asset: str) -> dg.RunRequest:
    """Return the request of a schedule: the next tick comes soon, so the run may not take long."""
    return dg.RunRequest(
        asset_selection=[dg.AssetKey(asset)],
        tags={
            MAX_RUNTIME_SECONDS_TAG: str(SCHEDULED_SECONDS),
            MAX_RETRIES_TAG: "0",
            PRIORITY_TAG: FRESH_PRIORITY,
        },
    )


def run_naming_resources(resources: object) -> Mapping[str, dg.ResourceDefinition]:
    """Return the resources as `platform`; a run that opens them names itself in all log lines.

    A process executes one run at a time: the executor runs its steps in the process of the run. A
    run is named until the next one opens its resources.
    """

    # Not a generator: whoever calls a sensor directly would have to open a context for it.
    def opened(context: dg.InitResourceContext) -> object:
        # A sensor or schedule has no run: several are evaluated at a time, in threads.
        if context.run is not None:
            bind_process(**run_facts(context.run))
        return resources

    return {"platform": dg.ResourceDefinition(opened)}


def run_facts(run: dg.DagsterRun) -> dict[str, str]:
    """Return what the log lines of a run are about."""
    assets = sorted(key.to_user_string() for key in run.asset_selection or ())
    shown = ",".join(assets[:_SHOWN_ASSETS]) + (",..." if len(assets) > _SHOWN_ASSETS else "")
    return {
        "run_id": run.run_id,
        "asset": shown or run.job_name,
        "partition": run_partition(run),
    }
