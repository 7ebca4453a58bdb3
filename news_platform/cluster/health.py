"""Ask the broker which workers live, which queues they serve, and how much waits in each."""

from collections.abc import Mapping
from dataclasses import dataclass

from dagster_celery.make_app import make_app

from news_platform.cluster.launcher import BROKER_ERRORS
from news_platform.cluster.queues import HEAVY, LIGHT, configure
from news_platform.errors import StoreUnavailable
from news_platform.setting_sections.platform import ClusterSettings

_ANSWER_SECONDS = 3.0


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
