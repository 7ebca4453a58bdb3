"""Configure the queues that the launcher and every worker share, and report their state."""

from collections.abc import Mapping
from dataclasses import dataclass

from celery import Celery
from celery.exceptions import CeleryError
from dagster_celery.make_app import make_app
from kombu.entity import Exchange, Queue
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from news_platform.errors import StoreUnavailable
from news_platform.setting_sections.platform import ClusterSettings

HEAVY, LIGHT = "heavy", "light"
# If a worker dies before its run has started, another worker gets the task after this time. A run
# that takes longer is delivered a second time too; Dagster then sees that it has started and ends
# the second task.
REDELIVERY_SECONDS = 60
_SCAN_SECONDS = 5
# A worker that is told to stop (QUIT, or TERM with REMAP_SIGTERM=SIGQUIT) ends its run within this
# time, or gives it up; the launcher then sees that nobody holds it, and starts it again.
STOP_SECONDS = 20
# Errors while the broker is down or restarts; the next check tries again.
BROKER_ERRORS = (CeleryError, KombuError, RedisError, OSError)
_ANSWER_SECONDS = 3.0


def configure(app: Celery, *, redelivery_seconds: int = REDELIVERY_SECONDS) -> Celery:
    """Configure our queues, and redelivery of tasks whose worker has died."""
    app.conf.update(
        task_queues=[
            Queue(name, Exchange(name, type="topic"), routing_key=f"{name}.#")
            for name in (HEAVY, LIGHT)
        ],
        task_routes={},
        task_default_queue=LIGHT,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        # The outcome of a run is in Dagster's own storage.
        task_ignore_result=True,
        # A prefetched task would wait for its busy worker while others are idle.
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_soft_shutdown_timeout=STOP_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Dagster prints every event of a run; Celery would log each line as a warning.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_transport_options={
            "visibility_timeout": redelivery_seconds,
            "unacked_restore_interval": _SCAN_SECONDS,
            "unacked_restore_throttle": 1,
            # The lock of the redelivery scan must expire soon after its holder was killed.
            "unacked_mutex_expire": redelivery_seconds,
        },
    )
    return app


@dataclass(frozen=True, slots=True)
class Queues:
    """The workers that answered, the queues that they serve, and the tasks that wait in each."""

    workers: tuple[str, ...]
    served: frozenset[str]
    waiting: Mapping[str, int]


def read_queues(settings: ClusterSettings) -> Queues:
    """Return the state of the queues; raise StoreUnavailable if the broker does not answer."""
    # Without the tasks of a worker: only the broker is asked.
    app = configure(make_app({"broker": settings.broker_url}))
    try:
        with app.connection_for_read(connect_timeout=_ANSWER_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, timeout=_ANSWER_SECONDS)
            channel = connection.default_channel
            waiting = {name: int(channel.client.llen(name)) for name in (HEAVY, LIGHT)}
        answers = app.control.inspect(timeout=_ANSWER_SECONDS).active_queues() or {}
    except BROKER_ERRORS as error:
        raise StoreUnavailable(f"the broker does not answer: {error}") from error
    served = frozenset(str(queue["name"]) for queues in answers.values() for queue in queues)
    return Queues(tuple(sorted(answers)), served, waiting)
