"""A launcher that executes runs in the simulation's own process, after their simulated duration."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.launcher.base import (
    CheckRunHealthResult,
    LaunchRunContext,
    RunLauncher,
    WorkerStatus,
)
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster._time import get_current_datetime

from news_platform_tests.year.simulated import HICCUPS

_MINUTES = {"raw_news": 25, "domain_buckets": 12, "domain_store": 12}
_USUAL_MINUTES = 3
# Runs that wait for their end, and when it is.
HOSTED: dict[str, datetime] = {}


class HostedRunLauncher(RunLauncher, ConfigurableClass):
    """Keep launched runs until `execute_due` does their work."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()  # type: ignore[no-untyped-call] # Dagster's

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """Return what Dagster made the launcher from."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Take no configuration."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> Self:
        """Make the launcher."""
        return cls(inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Keep the run until it has taken its time."""
        host(context.dagster_run)

    def terminate(self, run_id: str) -> bool:
        """Forget a run."""
        return HOSTED.pop(run_id, None) is not None

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Let Dagster ask after runs."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Tell that a run is lost that was in work when the process was killed."""
        is_here = run.run_id in HOSTED
        return CheckRunHealthResult(WorkerStatus.RUNNING if is_here else WorkerStatus.NOT_FOUND)


def host(run: dg.DagsterRun) -> None:
    """Keep a run, which is a process of its own and outlives the daemon."""
    assets = sorted(key.to_user_string() for key in run.asset_selection or ())
    minutes = max((_MINUTES.get(one, _USUAL_MINUTES) for one in assets), default=_USUAL_MINUTES)
    HOSTED[run.run_id] = get_current_datetime() + timedelta(minutes=minutes)


def execute_due(instance: dg.DagsterInstance, defs: dg.Definitions, *, trouble: str) -> bool:
    """Execute the run that is due first, with this trouble; return False if none is due."""
    now = get_current_datetime()
    due = [run_id for run_id, at in sorted(HOSTED.items(), key=lambda it: it[1]) if at <= now]
    if not due:
        return False
    run = instance.get_run_by_id(due[0])
    if run is not None and run.status == dg.DagsterRunStatus.STARTING:
        _execute(instance, defs, run, trouble)
    # Only now: Dagster finds that a run is lost if the process was killed in it.
    HOSTED.pop(due[0], None)
    return True


def _execute(
    instance: dg.DagsterInstance, defs: dg.Definitions, run: dg.DagsterRun, trouble: str
) -> None:
    if trouble == "lost":
        instance.report_run_failed(run, "the machine of the run is gone")
        return
    HICCUPS.update({trouble} - {""})
    try:
        job = InMemoryJob(defs.get_repository_def().get_job(run.job_name))
        execute_run(job, run, instance)
    finally:
        HICCUPS.clear()
