"""A long backfill waits for the runs of sensors, not the other way round."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from benchmarks import scale_location
from news_platform_tests.cluster.live import DEPLOY

DAYS = scale_location.DAYS.get_partition_keys()[:40]
LOCATION = "scale"


@contextmanager
def _scheduler(
    folder: Path, config_file: Path
) -> Iterator[tuple[dg.DagsterInstance, WorkspaceProcessContext]]:
    """Yield an instance with the limits of a file, whose runs are launched and never end."""
    config = yaml.safe_load(config_file.read_text())
    for part in ("storage", "compute_logs"):
        config.pop(part, None)
    config["run_launcher"] = {
        "module": "dagster._core.test_utils",
        "class": "MockedRunLauncher",
    }
    # Else the code server's process is still running when its object is collected.
    config["code_servers"] = {"wait_for_local_processes_on_shutdown": True}
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


@pytest.mark.parametrize("folder", [DEPLOY, DEPLOY.parent], ids=["cluster", "one machine"])
def test_a_sensors_run_passes_a_long_backfill(tmp_path: Path, folder: Path) -> None:
    with _scheduler(tmp_path, folder / "dagster.yaml") as (instance, workspace):
        for day in DAYS:
            _queue(instance, workspace, {"dagster/backfill": "long", "dagster/partition": day})
        wanted = _queue(instance, workspace, {"dagster/sensor_name": "follow_domain_store"})
        with QueuedRunCoordinatorDaemon(interval_seconds=1) as daemon:
            list(daemon.run_iteration(workspace))
        waiting = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
        run = instance.get_run_by_id(wanted)
    assert run is not None
    assert run.status != dg.DagsterRunStatus.QUEUED
    assert waiting == len(DAYS) - 1  # the backfill has the other slot


@pytest.mark.parametrize("folder", [DEPLOY, DEPLOY.parent], ids=["cluster", "one machine"])
def test_every_run_has_a_longest_time(folder: Path) -> None:
    config = yaml.safe_load((folder / "dagster.yaml").read_text())
    assert config["run_monitoring"]["enabled"]
    assert 3600 <= config["run_monitoring"]["max_runtime_seconds"] <= 86_400
