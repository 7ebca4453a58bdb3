"""Launch runs on Celery workers, and notice when a worker has gone.

The stock launcher believes the last state that a worker stored, so a run whose worker was killed
stays "started" for ever; its `resume_run` hands the task an argument that the task does not take.
"""

import time
from collections.abc import Mapping
from typing import Any

from celery import Celery
from celery.exceptions import CeleryError
from dagster import DagsterRun, Field, StringSource
from dagster._core.launcher import CheckRunHealthResult, ResumeRunContext, WorkerStatus
from dagster._grpc.types import ResumeRunArgs
from dagster._serdes import ConfigurableClassData, pack_value
from dagster_celery.config import TASK_RESUME_JOB_NAME
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_QUEUE_TAG, DAGSTER_CELERY_TASK_ID_TAG
from dagster_celery.tasks import create_resume_job_task
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from news_platform.cluster.liveness import Liveness, Verdict
from news_platform.cluster.queues import HEAVY, LIGHT, configure
from news_platform.errors import ConfigError

# What the broker raises while it is away or restarts; the next check asks again.
BROKER_TROUBLE = (CeleryError, KombuError, RedisError, OSError)
# Idle workers answer in milliseconds; a busy machine may take a second.
_ANSWER_SECONDS = 3.0


class LiveCeleryRunLauncher(CeleryRunLauncher):
    """Celery's launcher with a liveness check, correct resume, and queues by weight of work.

    Runs of `heavy_assets` go to the queue `heavy`, all others to the default queue, unless a run's
    own tag names one. A run whose task no worker holds for `silence_seconds` counts as lost.
    """

    def __init__(
        self,
        *,
        default_queue: str = LIGHT,
        heavy_assets: list[str] | None = None,
        silence_seconds: float = 20.0,
        inst_data: ConfigurableClassData | None = None,
        **celery_options: Any,
    ) -> None:
        super().__init__(default_queue=default_queue, inst_data=inst_data, **celery_options)
        configure(self.celery)
        self.heavy_assets = frozenset(heavy_assets or ())
        self._liveness = Liveness(
            ask=lambda: held_tasks(self.celery),
            clock=time.monotonic,
            silence_seconds=silence_seconds,
            trouble=BROKER_TROUBLE,
        )

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """Return the stock launcher's configuration and ours beside it."""
        stock: Any = super().config_type()
        return {
            **stock,
            "default_queue": Field(
                StringSource,
                is_required=False,
                default_value=LIGHT,
                description="Queue of runs that are not heavy.",
            ),
            "heavy_assets": Field(
                [str], is_required=False, description="Assets whose runs go to the heavy queue."
            ),
            "silence_seconds": Field(
                float,
                is_required=False,
                default_value=20.0,
                description="How long nobody may hold a run's task before the run counts as lost.",
            ),
        }

    def resume_run(self, context: ResumeRunContext) -> None:
        """Hand a run that lost its worker to another one."""
        run = context.dagster_run
        if run.job_code_origin is None:
            raise ConfigError(f"cannot resume run {run.run_id!r}: it has no code origin")
        args = ResumeRunArgs(
            job_origin=run.job_code_origin,
            run_id=run.run_id,
            instance_ref=self._instance.get_ref(),
            set_exit_code_on_failure=True,
        )
        task = create_resume_job_task(self.celery)
        self._launch_celery_task_run(
            run=run,
            task_signature=task.si(resume_job_args_packed=pack_value(args)),
            routing_key=TASK_RESUME_JOB_NAME,
        )

    def _launch_celery_task_run(
        self, run: DagsterRun, task_signature: Any, routing_key: str
    ) -> None:
        queued = run.with_tags({DAGSTER_CELERY_QUEUE_TAG: self.queue_of(run), **run.tags})
        super()._launch_celery_task_run(queued, task_signature, routing_key)

    def queue_of(self, run: DagsterRun) -> str:
        """Return the queue that a run without a queue tag belongs in."""
        assets = {key.to_user_string() for key in run.asset_selection or ()}
        return HEAVY if assets & self.heavy_assets else self.default_queue

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Tell whether somebody still works on a started run.

        The task's stored state is not asked: a second offer of a long run ends at once as a
        success, under the same id, while the run goes on.
        """
        task_id = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG)
        if task_id is None:
            return CheckRunHealthResult(WorkerStatus.FAILED, "the run was never given to a worker")
        if self._liveness.verdict(task_id) is not Verdict.LOST:
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
        """Say which task and queue a run was given to."""
        tags = run.tags
        return (
            f"Celery task {tags.get(DAGSTER_CELERY_TASK_ID_TAG)} "
            f"on queue {tags.get(DAGSTER_CELERY_QUEUE_TAG, self.queue_of(run))}"
        )

    def terminate(self, run_id: str) -> bool:
        """Stop a run's task; False when the run was never given to a worker."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return False
        return bool(super().terminate(run_id))


def held_tasks(celery: Celery) -> frozenset[str]:
    """Ask all workers which tasks they work on; raise when the broker is away."""
    answers = celery.control.inspect(timeout=_ANSWER_SECONDS).active() or {}
    return frozenset(task["id"] for tasks in answers.values() for task in tasks)
