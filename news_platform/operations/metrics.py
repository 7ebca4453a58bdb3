"""Export the state of the platform to Prometheus, read at scrape time.

Everything comes from stored state: markers, the ledger and Dagster's storage. So runs that crashed
or wait count, and only the process that is scraped has to be alive. No label has the name of a
partition, a feed or a host: their number would grow without bound.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from news_platform.composition.facts import (
    RAW_NEWS,
    AutomationFacts,
    LedgerFacts,
    RootFacts,
    RootReader,
    metric,
)
from news_platform.errors import NewsPlatformError
from news_platform.operations.ledger_facts import read_ledger_facts
from news_platform.resources import Resources
from news_platform.web.allowed_hosts import AllowedHosts, allowed_names

PATH = "/metrics"
PREFIX = "news_platform_"
CACHE_SECONDS = 15.0
Labels = tuple[str, ...]
# A reading that takes long, of a large root on a slow store, must not take all the time.
_REST_FACTOR = 5.0


@dataclass(slots=True)
class PlatformFacts:
    """All facts of one scrape; a source that could not be read has empty facts and is not up."""

    source_up: dict[str, bool] = metric(  # noqa: RUF009 - it is a `field`
        "1 if this part of the state could be read", "source"
    )
    scrape_seconds: float | None = metric("Time that reading the state took")
    root: RootFacts = field(default_factory=RootFacts)
    automation: AutomationFacts = field(default_factory=AutomationFacts)
    ledger: LedgerFacts = field(default_factory=LedgerFacts)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with its labels; a family without samples is shown all the same."""

    name: str
    help: str
    labels: Labels

    def gauge(self) -> GaugeMetricFamily:
        """Return the family without samples."""
        return GaugeMetricFamily(f"{PREFIX}{self.name}", self.help, labels=self.labels)


def _families(kind: type[Any], labels: Labels = ()) -> Iterator[Family]:
    """Yield the families that the fields of facts declare."""
    types = get_type_hints(kind)
    for one in fields(kind):
        if "help" in one.metadata:
            name, own = one.metadata["name"] or one.name, one.metadata["labels"]
            yield Family(name, one.metadata["help"], (*labels, *own))
        elif "label" in one.metadata:
            (row,) = get_args(types[one.name])
            yield from _families(row, (*labels, one.metadata["label"]))
        elif is_dataclass(types[one.name]):
            yield from _families(types[one.name])


# Declared twice if two sources have samples of it.
FAMILIES = tuple(dict.fromkeys(_families(PlatformFacts)))
"""Every metric that the endpoint shows."""


def _gauges(facts: PlatformFacts) -> Iterable[Metric]:
    gauges = {family.name: family.gauge() for family in FAMILIES}
    for name, labels, number in _samples(facts):
        gauges[name].add_metric(labels, number)
    return gauges.values()


def _samples(facts: Any, labels: Labels = ()) -> Iterator[tuple[str, Labels, float]]:
    """Yield the name, the values of the labels and the number of every fact that is known."""
    for one in fields(facts):
        value = getattr(facts, one.name)
        if "help" in one.metadata:
            name = one.metadata["name"] or one.name
            for key, number in value.items() if isinstance(value, Mapping) else [((), value)]:
                if number is not None:
                    own = (key,) if isinstance(key, str) else key
                    yield name, (*labels, *own), float(number)
        elif "label" in one.metadata:
            for row in value:
                yield from _samples(row, (*labels, getattr(row, fields(row)[0].name)))
        elif is_dataclass(value):
            yield from _samples(value)


@dataclass(slots=True, eq=False)
class PlatformCollector(Collector):
    """Collects all families; for a while it answers from memory."""

    resources: Resources
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _families: tuple[Metric, ...] = ()
    _valid_until: float = float("-inf")
    _reader: RootReader | None = None

    def collect(self) -> Iterable[Metric]:
        """Return the families; two scrapes at a time share one reading."""
        with self._lock:
            began = self.clock()
            if began >= self._valid_until:
                facts = self._read()
                facts.scrape_seconds = self.clock() - began
                self._families = tuple(_gauges(facts))
                rest = max(CACHE_SECONDS, facts.scrape_seconds * _REST_FACTOR)
                self._valid_until = self.clock() + rest
            return self._families

    def _read(self) -> PlatformFacts:
        facts = PlatformFacts()
        with _source(facts, "root"):
            facts.root = self._read_root()
        with _source(facts, "ledger"):
            facts.ledger = read_ledger_facts(self.resources)
        with _source(facts, "dagster"):
            # Imported here: Dagster takes seconds to load, which the explorer's start need not.
            from news_platform.defs.services.automation import read_automation_facts

            facts.automation = read_automation_facts(self.resources)
        return facts

    def _read_root(self) -> RootFacts:
        if self._reader is None:
            from news_platform.defs.graph import BUILD_ORDER

            names = [one.asset for one in BUILD_ORDER if one.asset != RAW_NEWS]
            self._reader = RootReader(self.resources.data_root.store, names)
        return self._reader.read()


@contextmanager
def _source(facts: PlatformFacts, name: str) -> Iterator[None]:
    """Record whether a source could be read: the scrape itself must answer."""
    facts.source_up[name] = False
    with suppress(NewsPlatformError, SQLAlchemyError, OSError):
        yield
        facts.source_up[name] = True


def metrics_route(resources: Resources) -> Route:
    """Return the route that answers a scrape; the first one reads the whole state."""
    return _route(PlatformCollector(resources))


def _route(collector: PlatformCollector) -> Route:
    # Not async: Starlette runs it in a thread, because it reads files and databases.
    def scrape(_request: Request) -> Response:
        return Response(generate_latest(collector), media_type=CONTENT_TYPE_LATEST)

    return Route(PATH, scrape, methods=["GET"], name="metrics")


def metrics_app(resources: Resources) -> AllowedHosts:
    """Return a server of the metrics alone, for loopback names and configured hosts.

    It has read the state once: that takes seconds, which no scrape should wait for.
    """
    collector = PlatformCollector(resources)
    collector.collect()
    app = Starlette(routes=[_route(collector)])
    return AllowedHosts(app, allowed=allowed_names(resources.settings.ui.allowed_hosts))
