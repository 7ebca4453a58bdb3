"""The Celery application: `celery -A news_platform.cluster.app worker -Q heavy,light`."""

import os
from collections.abc import Mapping
from typing import Any

from celery import Celery
from celery.signals import setup_logging, task_prerun
from dagster import DagsterInstance, DagsterRunStatus
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import unpack_value
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_execute_job_task

from news_platform.cluster.queues import configure
from news_platform.errors import ConfigError
from news_platform.logs import configure_logging
from news_platform.setting_sections.platform import ClusterSettings
from news_platform.settings import environment_secrets, load_settings

# Shown with each run in the Dagster UI, where it can be searched.
WORKER_TAG = "news_platform/worker"
# A run that has started is being executed by the worker it is tagged with.
_WAITING = (DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING)


def build_app(settings: ClusterSettings) -> Celery:
    """Return the Celery application for the broker in the settings."""
    if settings.broker_url is None:
        raise ConfigError(
            "NEWS_PLATFORM_BROKER_URL is not set: set it to the URL of the Redis broker"
        )
    built: Celery = configure(
        make_app({"broker": settings.broker_url}), redelivery_seconds=settings.redelivery_seconds
    )
    create_execute_job_task(built)
    return built


def run_id_of(task_arguments: Mapping[str, Any]) -> str | None:
    """Return the run id in the arguments of a task, or None for a task that is not a run."""
    for packed in task_arguments.values():
        args = unpack_value(packed) if isinstance(packed, dict) else None
        if isinstance(args, ExecuteRunArgs):
            return args.run_id
    return None


def name_worker(task: Any = None, kwargs: Mapping[str, Any] | None = None, **_: Any) -> None:
    """Tag a run with its worker; a second delivery of a started run changes nothing."""
    run_id = run_id_of(kwargs or {})
    if run_id is None:
        return
    with DagsterInstance.get() as instance:
        run = instance.get_run_by_id(run_id)
        if run is not None and run.status in _WAITING:
            instance.add_run_tags(run_id, {WORKER_TAG: task.request.hostname})


def write_our_lines(**_: Any) -> None:
    """Write the lines of all loggers of a worker as every other process of the platform does."""
    logs = load_settings(os.environ).logs
    configure_logging(logs.format, logs.level, secrets=environment_secrets(os.environ))


task_prerun.connect(name_worker)
# Connected, it also keeps Celery from setting up loggers of its own.
setup_logging.connect(write_our_lines)
app = build_app(load_settings(os.environ).cluster)
