"""Keep Dagster's storage small and in step with the root: old runs go, stored data is reported.

The markers under the root say what is built; Dagster's events only show it. So runs can be deleted,
and a new or lost home learns from the markers what exists.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.tags import SCHEDULE_NAME_TAG, SENSOR_NAME_TAG

from news_platform.datasets.registry import DATASETS
from news_platform.defs.assets import data_states
from news_platform.defs.rebuild_rules import Platform
from news_platform.defs.runs import PERMANENT_TAG
from news_platform.defs.sensors import new_partitions, nightly_job
from news_platform.resources import Resources

_PAGE = 500
# A materialization that is reported again is new to a freshness policy, which these have: their
# runs stay as long as they hold the latest one.
_JUDGED_BY_TIME = ("whole", "range")


@dataclass(frozen=True, slots=True)
class Adopted:
    """What Dagster did not know: materializations and partitions that were reported."""

    materializations: int = 0
    partitions: int = 0


def adopt(resources: Resources, instance: dg.DagsterInstance) -> Adopted:
    """Report every partition that is built and that Dagster has no materialization of."""
    from news_platform.defs.graph import BUILD_ORDER

    reported = added = 0
    for rule in BUILD_ORDER:
        built = rule.built(resources) if rule.built else {}
        keys = sorted({*built, *rule.keys(resources)})
        for request in new_partitions(instance, rule.partitions, keys):
            instance.add_dynamic_partitions(
                request.partitions_def_name, list(request.partition_keys)
            )
            added += len(request.partition_keys)
        for name in rule.outputs or (rule.asset,):
            known = data_states(resources, DATASETS[name])
            states = {unit: known.get(unit, inputs) for unit, inputs in built.items()}
            for event in _unknown(instance, name, states):
                instance.report_runless_asset_event(event)
                reported += 1
    return Adopted(reported, added)


def _unknown(
    instance: dg.DagsterInstance, name: str, built: dict[str, str]
) -> Iterator[dg.AssetMaterialization]:
    key = dg.AssetKey(name)
    is_whole = DATASETS[name].partitions == "whole"
    if is_whole and instance.get_latest_materialization_event(key) is not None:
        return
    known = set() if is_whole else instance.get_materialized_partitions(key)
    for unit in sorted(built.keys() - known):
        yield dg.AssetMaterialization(
            key,
            partition=None if is_whole else unit,
            metadata={"reported_from": "the marker under the root; its run is not kept"},
            tags={"dagster/data_version": built[unit]},
        )


def delete_old_runs(instance: dg.DagsterInstance, *, before: datetime) -> int:
    """Delete finished runs of schedules and sensors; return their number.

    Permanent failures stay: they say that a partition is stopped.
    """
    held = _latest_runs(instance)
    old = [run_id for run_id in _old_runs(instance, before) if run_id not in held]
    for run_id in old:
        _delete(instance, run_id)
    return len(old)


def _old_runs(instance: dg.DagsterInstance, before: datetime) -> Iterator[str]:
    chosen, cursor = dg.RunsFilter(statuses=FINISHED_STATUSES, created_before=before), None
    while page := instance.get_runs(chosen, limit=_PAGE, cursor=cursor):
        for run in page:
            is_automatic = {SCHEDULE_NAME_TAG, SENSOR_NAME_TAG} & run.tags.keys()
            if is_automatic and PERMANENT_TAG not in run.tags:
                yield run.run_id
        cursor = page[-1].run_id


def _latest_runs(instance: dg.DagsterInstance) -> set[str]:
    """Return the runs with the latest materializations of assets that time judges."""
    found = set()
    for dataset in DATASETS.values():
        if dataset.is_asset and dataset.partitions in _JUDGED_BY_TIME:
            key = dg.AssetKey(dataset.name)
            storage = instance.event_log_storage
            latest = storage.get_latest_storage_id_by_partition(
                key, dg.DagsterEventType.ASSET_MATERIALIZATION
            )
            for partition in latest or [None]:
                keys = None if partition is None else [partition]
                chosen = dg.AssetRecordsFilter(asset_key=key, asset_partitions=keys)
                records = instance.fetch_materializations(chosen, limit=1).records
                found |= {one.run_id for one in records}
    return found


def _delete(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    # Dagster leaves the file of a run's events behind, empty but for its tables.
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{storage.path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Deletes old runs of schedules and sensors, and reports stored partitions that "
    "Dagster does not know.",
)
def tidy(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Run the housekeeping once."""
    kept = timedelta(days=platform.settings.retention.runs_days)
    deleted = delete_old_runs(context.instance, before=platform.clock.now() - kept)
    done = adopt(platform, context.instance)
    context.add_output_metadata(
        {"runs_deleted": deleted, "materializations_reported": done.materializations}
    )


tidy_dagster, tidy_dagster_every_night = nightly_job(
    tidy,
    name="tidy_dagster",
    # Before the nightly checks, which judge the materializations that it reports.
    cron="50 3 * * *",
    description="Delete old runs, and report stored partitions that Dagster does not know.",
)
