"""Dagster's daemon, step by step: its own functions on its own frozen clock, in this process."""

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

import dagster as dg
import yaml
from dagster._core.definitions.sensor_definition import SensorEvaluationContext
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteInstigatorOrigin
from dagster._core.test_utils import freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.auto_run_reexecution.event_log_consumer import EventLogConsumerDaemon
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.monitoring.concurrency import execute_concurrency_slots_iteration
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import (
    QueuedRunCoordinatorDaemon,
)
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._scheduler.scheduler import ScheduleIterationTimes, launch_scheduled_runs

from news_platform_tests.year.launcher import HOSTED, execute_due, host
from news_platform_tests.year.simulated import Place

_INSTANCE = Path(__file__).parents[2] / "news_platform/composition/dagster.yaml"
_DEFINITIONS = "news_platform_tests.year.definitions"
_STORAGE = "news_platform_tests.year.storage"
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
_LOG = logging.getLogger("simulated daemon")


def write_home(place: Place) -> None:
    """Write the Dagster home: our own dagster.yaml with storage and launcher of the simulation."""
    place.home.mkdir(parents=True)
    config = yaml.safe_load(_INSTANCE.read_text())
    storage = {"base_dir": str(place.home)}
    kinds = {
        "run_storage": "SharedRunStorage",
        "event_log_storage": "SharedEventLogStorage",
        "schedule_storage": "SharedScheduleStorage",
    }
    config |= {
        name: {"module": _STORAGE, "class": kind, "config": storage} for name, kind in kinds.items()
    }
    config["run_launcher"] = {
        "module": "news_platform_tests.year.launcher",
        "class": "HostedRunLauncher",
    }
    config["compute_logs"] = {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
    # A hosted run is starting until its work is done, all at once, at the end of its duration.
    config["run_monitoring"]["start_timeout_seconds"] = 6 * 3600
    (place.home / "dagster.yaml").write_text(yaml.safe_dump(config))


class SimulatedDaemon:
    """All of Dagster's daemons over one instance; `module` has the definitions as `defs`."""

    def __init__(
        self,
        place: Place,
        instance: dg.DagsterInstance,
        defs: dg.Definitions,
        *,
        module: str = _DEFINITIONS,
    ) -> None:
        self._place, self._instance, self._defs = place, instance, defs
        self._module = module
        self._queue = QueuedRunCoordinatorDaemon(interval_seconds=1)
        self._retries = EventLogConsumerDaemon()
        self._schedules: dict[str, ScheduleIterationTimes] = {}
        self._workspace: WorkspaceProcessContext | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        origin = InProcessCodeLocationOrigin(
            LoadableTargetOrigin(module_name=self._module, attribute="defs"),
            location_name="simulation",
        )
        target = InProcessWorkspaceLoadTarget(origin)
        self._workspace = self._stack.enter_context(WorkspaceProcessContext(self._instance, target))
        _share_instance(self._instance)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def workspace(self) -> WorkspaceProcessContext:
        """Return the loaded code location."""
        assert self._workspace is not None
        return self._workspace

    def adopt_runs(self) -> None:
        """Take back the runs that were waiting when the process was killed."""
        waiting = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING])
        for run in self._instance.get_runs(filters=waiting):
            host(run)

    def step(self, now: datetime, *, is_tick: bool) -> None:
        """Do what the daemons do at one moment; sensors and schedules only at their ticks."""
        ended = self._instance.get_runs_count(dg.RunsFilter(statuses=_ENDED))
        while execute_due(self._instance, self._defs, trouble=self._place.plan.fails(ended)):
            ended += 1
        for daemon in self._iterations(now, is_tick=is_tick):
            for error in daemon:
                assert error is None or not hasattr(error, "message"), error

    def _iterations(self, now: datetime, *, is_tick: bool) -> Iterator[Iterable[object]]:
        yield execute_run_monitoring_iteration(self.workspace, _LOG)
        yield execute_concurrency_slots_iteration(self.workspace, _LOG)
        yield self._retries.run_iteration(self.workspace)
        if is_tick:
            yield execute_sensor_iteration(self.workspace, _LOG, None, None)
            yield launch_scheduled_runs(self.workspace, _LOG, now, self._schedules)
        yield execute_backfill_iteration(self.workspace, _LOG)
        yield self._queue.run_iteration(self.workspace)

    @property
    def is_idle(self) -> bool:
        """Return whether no run waits or is being executed."""
        return not HOSTED and not self._instance.get_runs_count(
            dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])
        )

    def begin_backfill(self, now: datetime, *assets: str) -> None:
        """Ask for the history, as an operator does in the UI; once."""
        if self._instance.get_backfills() or not self._place.plan.history:
            return
        graph = self.workspace.create_request_context().asset_graph
        self._instance.add_backfill(
            PartitionBackfill.from_asset_partitions(
                backfill_id="history",
                asset_graph=graph,
                partition_names=[str(day) for day in self._place.plan.history],
                asset_selection=[dg.AssetKey(name) for name in assets],
                backfill_timestamp=now.timestamp(),
                tags={},
                dynamic_partitions_store=self._instance,
                all_partitions=False,
                title=None,
                description=None,
                run_config=None,
            )
        )

    def log_ticks(self, since: datetime) -> None:
        """Append the ticks since a moment to our own log, before Dagster forgets them."""
        with self._place.ticks.open("a") as log:
            for state in self._instance.all_instigator_state():
                ticks = self._instance.get_ticks(
                    state.instigator_origin_id, state.selector_id, after=since.timestamp()
                )
                for tick in ticks:
                    row = {
                        "name": state.name,
                        "kind": state.instigator_type.value,
                        "id": tick.tick_id,
                        "at": tick.timestamp,
                        "status": tick.status.value,
                        "text": tick.skip_reason or "",
                        "runs": [*tick.run_ids],
                        "error": tick.error.message if tick.error else "",
                    }
                    log.write(json.dumps(row) + "\n")


def _share_instance(instance: dg.DagsterInstance) -> None:
    """Let sensors use the open instance, and hash the name of each sensor once.

    Dagster opens an instance and hashes the name several times in every tick: a sixth of the time.
    """
    SensorEvaluationContext.instance = property(lambda _: instance)  # type: ignore[method-assign, assignment]
    ids: dict[str, str] = {}
    find = RemoteInstigatorOrigin.get_id

    def get_id(self: RemoteInstigatorOrigin) -> str:
        if self.instigator_name not in ids:
            ids[self.instigator_name] = find(self)
        return ids[self.instigator_name]

    RemoteInstigatorOrigin.get_id = get_id  # type: ignore[method-assign]


@contextmanager
def frozen(now: datetime) -> Iterator[None]:
    """Let Dagster, and our clock, show this moment."""
    with freeze_time(now):
        yield
