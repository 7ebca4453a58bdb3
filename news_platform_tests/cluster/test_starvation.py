"""A backfill of a year waits for the runs of sensors, not the other way round."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from benchmarks import scale_location
from news_platform_tests.cluster.live import DEPLOY

DAYS = scale_location.DAYS.get_partition_keys()[:365]
LOCATION = "scale"


@contextmanager
def _scheduler(folder: Path) -> Iterator[tuple[dg.DagsterInstance, WorkspaceProcessContext]]:
    """Yield an instance with the cluster's limits, whose runs are launched and never end."""
    config = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    del config["storage"]
    config["run_launcher"] = {
        "module": "dagster._core.test_utils",
        "class": "MockedRunLauncher",
    }
    (folder / "dagster.yaml").write_text(yaml.safe_dump(config))
    target = ModuleTarget(
        scale_location.__name__, attribute=None, working_directory=None, location_name=LOCATION
    )
    with (
        dg.DagsterInstance.from_config(str(folder)) as instance,
        create_test_daemon_workspace_context(target, instance) as workspace,
    ):
        yield instance, workspace


def _queue(
    instance: dg.DagsterInstance, workspace: WorkspaceProcessContext, tags: Mapping[str, str]
) -> str:
    location = workspace.create_request_context().get_code_location(LOCATION)
    job = next(iter(location.get_repositories().values())).get_full_job("__ASSET_JOB")
    run = create_run_for_test(
        instance,
        job_name=job.name,
        status=dg.DagsterRunStatus.QUEUED,
        tags=dict(tags),
        remote_job_origin=job.get_remote_origin(),
        job_code_origin=job.get_python_origin(),
    )
    return str(run.run_id)


def test_a_sensors_run_passes_a_year_of_backfill(tmp_path: Path) -> None:
    with _scheduler(tmp_path) as (instance, workspace):
        for day in DAYS:
            _queue(instance, workspace, {"dagster/backfill": "year", "dagster/partition": day})
        wanted = _queue(instance, workspace, {"dagster/sensor_name": "follow_domain_store"})
        with QueuedRunCoordinatorDaemon(interval_seconds=1) as daemon:
            list(daemon.run_iteration(workspace))
        waiting = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
        run = instance.get_run_by_id(wanted)
    assert run is not None
    assert run.status != dg.DagsterRunStatus.QUEUED
    assert waiting == len(DAYS) - 1  # the backfill has the other slot
