"""Queues and acknowledgement that the launcher and every worker must agree on."""

from celery import Celery
from kombu.entity import Exchange, Queue

HEAVY, LIGHT = "heavy", "light"
# A worker that dies before its run has started leaves the task to another one after so long. A run
# that takes longer is offered a second time too; Dagster then sees that it has started and lets go.
REDELIVERY_SECONDS = 60
_SCAN_SECONDS = 5


def configure(app: Celery, *, redelivery_seconds: int = REDELIVERY_SECONDS) -> Celery:
    """Give an application our queues, and tasks that outlive the worker that took them."""
    app.conf.update(
        task_queues=[
            Queue(name, Exchange(name, type="topic"), routing_key=f"{name}.#")
            for name in (HEAVY, LIGHT)
        ],
        task_routes={},
        task_default_queue=LIGHT,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        # Dagster's own storage says how a run ended.
        task_ignore_result=True,
        # A task that waits inside a busy worker would wait for that worker alone.
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Dagster prints each event of a run; Celery would log every line of it as a warning.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_transport_options={
            "visibility_timeout": redelivery_seconds,
            "unacked_restore_interval": _SCAN_SECONDS,
            "unacked_restore_throttle": 1,
            # The lock of the scan must not outlive a killed scanner for long.
            "unacked_mutex_expire": redelivery_seconds,
        },
    )
    return app
