"""Launch runs on Celery workers, and detect runs whose worker is gone.

The stock launcher trusts the last state that a worker stored, so a run whose worker was killed
stays "started" forever. Runs are started again, never resumed (deploy/dagster.yaml).
"""

import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from celery import Celery
from dagster import DagsterRun, Field, StringSource
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._serdes import ConfigurableClassData
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_QUEUE_TAG, DAGSTER_CELERY_TASK_ID_TAG

from news_platform.cluster.queues import BROKER_ERRORS, HEAVY, LIGHT, configure
from news_platform.datasets.registry import DATASETS

# Idle workers reply in milliseconds; a busy machine may take a second.
_ANSWER_SECONDS = 3.0
# One request to all workers serves every run of a monitoring round.
_CACHE_SECONDS = 2.0


class TaskState(enum.Enum):
    """The state of a task: held by a worker, missing for too long, or not certain yet."""

    ALIVE = "alive"
    LOST = "lost"
    UNSURE = "unsure"


@dataclass
class Liveness:
    """Track how long no worker has reported that it holds a task.

    `list_held` returns the ids of all tasks that the workers report. An unreachable broker proves
    nothing: while `list_held` raises one of `broker_errors`, every task is UNSURE and the time does
    not count.
    """

    list_held: Callable[[], frozenset[str]]
    clock: Callable[[], float]
    silence_seconds: float
    broker_errors: tuple[type[Exception], ...] = (OSError,)
    _held: frozenset[str] = frozenset()
    _listed_at: float | None = None
    _missing_since: dict[str, float] = field(default_factory=dict)

    def state(self, task_id: str) -> TaskState:
        """Return the current state of a task."""
        now = self.clock()
        if not self._refresh(now):
            return TaskState.UNSURE
        if task_id in self._held:
            self._missing_since.pop(task_id, None)
            return TaskState.ALIVE
        since = self._missing_since.setdefault(task_id, now)
        return TaskState.LOST if now - since >= self.silence_seconds else TaskState.UNSURE

    def forget(self, task_id: str) -> None:
        """Forget a task that has ended."""
        self._missing_since.pop(task_id, None)

    def _refresh(self, now: float) -> bool:
        if self._listed_at is not None and now - self._listed_at < _CACHE_SECONDS:
            return True
        try:
            self._held = self.list_held()
        except self.broker_errors:
            # Workers may hold their tasks while the broker is down: start counting again.
            self._listed_at = None
            self._missing_since.clear()
            return False
        self._listed_at = self.clock()
        return True


HEAVY_ASSETS = frozenset(name for name, one in DATASETS.items() if one.cost == "high")
"""The assets whose runs go to the heavy queue."""


class LiveCeleryRunLauncher(CeleryRunLauncher):
    """The Celery run launcher with a liveness check and a queue for heavy runs.

    Runs of assets that cost much go to the queue `heavy` and all others to the default queue,
    unless a tag of the run names a queue. A run whose task no worker holds for `silence_seconds`
    counts as lost.
    """

    def __init__(
        self,
        *,
        default_queue: str = LIGHT,
        silence_seconds: float = 20.0,
        inst_data: ConfigurableClassData | None = None,
        **celery_options: Any,
    ) -> None:
        super().__init__(default_queue=default_queue, inst_data=inst_data, **celery_options)
        configure(self.celery)
        self._liveness = Liveness(
            list_held=lambda: held_tasks(self.celery),
            clock=time.monotonic,
            silence_seconds=silence_seconds,
            broker_errors=BROKER_ERRORS,
        )

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """Return the configuration of the stock launcher extended by ours."""
        stock: Any = super().config_type()
        return {
            **stock,
            "default_queue": Field(
                StringSource,
                is_required=False,
                default_value=LIGHT,
                description="Queue of runs that are not heavy.",
            ),
            "silence_seconds": Field(
                float,
                is_required=False,
                default_value=20.0,
                description="Seconds without a worker for a run's task until the run is lost.",
            ),
        }

    def _launch_celery_task_run(
        self, run: DagsterRun, task_signature: Any, routing_key: str
    ) -> None:
        # A queue tag of the run itself has priority.
        queued = run.with_tags({DAGSTER_CELERY_QUEUE_TAG: self.queue_of(run), **run.tags})
        super()._launch_celery_task_run(queued, task_signature, routing_key)

    def queue_of(self, run: DagsterRun) -> str:
        """Return the queue of a run that has no queue tag."""
        assets = {key.to_user_string() for key in run.asset_selection or ()}
        return HEAVY if assets & HEAVY_ASSETS else self.default_queue

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return whether a worker still executes a started run.

        The stored state of the task is not used: a second delivery of a long run ends at once as a
        success under the same id, while the run goes on.
        """
        task_id = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG)
        if task_id is None:
            return CheckRunHealthResult(WorkerStatus.FAILED, "the run was never sent to a worker")
        if self._liveness.state(task_id) is not TaskState.LOST:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        self._liveness.forget(task_id)
        return CheckRunHealthResult(
            WorkerStatus.FAILED,
            f"no worker holds Celery task {task_id} any more: its worker was killed, cut off or "
            "lost its database; `run_retries` starts the run again",
        )

    def get_run_worker_debug_info(
        self, run: DagsterRun, include_container_logs: bool | None = True
    ) -> str | None:
        """Return the task and queue of a run."""
        tags = run.tags
        return (
            f"Celery task {tags.get(DAGSTER_CELERY_TASK_ID_TAG)} "
            f"on queue {tags.get(DAGSTER_CELERY_QUEUE_TAG, self.queue_of(run))}"
        )

    def terminate(self, run_id: str) -> bool:
        """Stop the task of a run; return False if the run was never sent to a worker."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return False
        return bool(super().terminate(run_id))


def held_tasks(celery: Celery) -> frozenset[str]:
    """Return the ids of the tasks that the workers execute; raise if the broker is down."""
    answers = celery.control.inspect(timeout=_ANSWER_SECONDS).active() or {}
    return frozenset(task["id"] for tasks in answers.values() for task in tasks)
