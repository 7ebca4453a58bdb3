"""Count the whole platform at scrape time, as families of Prometheus.

Everything comes from stored state: markers, the ledger and Dagster's storage. So runs that crashed
or wait count, and no process has to be alive but the one that is asked. No label has the name of a
partition, a feed or a host: their number would grow without bound.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import dagster as dg
import sqlalchemy as sa
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.status import open_instance
from news_platform.errors import NewsPlatformError
from news_platform.operations.automation import (
    read_daemons,
    read_lags,
    read_pages_per_second,
    read_red_checks,
    read_runs,
    read_sensors,
)
from news_platform.operations.ledger_facts import LedgerFacts, open_ledger, read_ledger_facts
from news_platform.operations.root_facts import RAW_NEWS, RootFacts, RootReader
from news_platform.resources import Resources
from news_platform.storage.commit.root import is_paused

PREFIX = "news_platform_"
SOURCES = ("root", "ledger", "dagster")
CACHE_SECONDS = 15.0
# A look that takes long, at a large root on a slow store, must not take all the time.
_REST_FACTOR = 5.0
_MOST_REASONS = 50

Labels = tuple[str, ...]
Samples = Mapping[Labels, float]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with its labels; a family without samples is shown all the same."""

    name: str
    help: str
    labels: Labels = ()

    def gauge(self, samples: Samples) -> Metric:
        """Return the family with its samples."""
        gauge = GaugeMetricFamily(f"{PREFIX}{self.name}", self.help, labels=self.labels)
        for values, number in samples.items():
            gauge.add_metric(values, number)
        return gauge


FAMILIES: tuple[Family, ...] = (
    Family("source_up", "1 if this part of the state could be read", ("source",)),
    Family("scrape_seconds", "Time that reading the state took"),
    Family("paused", "1 while all sensors are paused"),
    Family("dataset_partitions", "Partitions that have a marker", ("dataset",)),
    Family("dataset_rows", "Rows that the markers state", ("dataset",)),
    Family("dataset_bytes", "Bytes that the markers state", ("dataset",)),
    Family("unread_markers", "Markers that are not in the sums yet", ("dataset",)),
    Family("dropped_pages", "Pages of WARCs without a row, by reason", ("reason",)),
    Family("pool_restarts", "Items that ended a worker process", ("room", "reason")),
    Family("store_buckets", "Buckets of the domain store"),
    Family("store_manifests", "Generations of all buckets that are kept"),
    Family("store_generation", "Newest generation of any bucket"),
    Family("pages_per_second", "Speed of the last run that collected WARCs"),
    Family("stale_partitions", "Partitions that differ from their inputs", ("asset", "state")),
    Family("lag_seconds", "How long the longest waiting partition is stale", ("asset",)),
    Family("attempts", "Most failures in a row of one partition", ("asset",)),
    Family("red_checks", "Partitions for which a check is red", ("asset",)),
    Family("runs", "Runs in Dagster's storage, by status", ("status",)),
    Family("runs_failed_last_day", "Runs that failed within 24 hours"),
    Family("oldest_queued_run_seconds", "How long the oldest queued run waits"),
    Family("daemon_up", "1 if a daemon of Dagster sends heartbeats", ("daemon",)),
    Family("sensor_tick_age_seconds", "Time since the last tick of a sensor", ("sensor",)),
    Family("sensor_failing", "1 if the last tick of a sensor failed", ("sensor",)),
    Family("feeds", "Feeds by status", ("status",)),
    Family("feed_health", "Mean health score of active feeds, 0 to 100"),
    Family("feed_alarms", "Open alarms about feeds and sources", ("kind",)),
    Family("articles", "Articles by status", ("status",)),
    Family("oldest_pending_article_seconds", "How long the oldest pending article waits"),
    Family("http_answers_last_day", "Answers by class of status", ("room", "class")),
    Family("domain_queue", "Messages of the survey by state", ("state",)),
    Family("survey_outcomes_last_day", "Surveyed domains by outcome", ("outcome",)),
    Family("outbox", "Rows and messages that wait to be sent", ("receiver",)),
    Family("sheets_quota_use", "Share of the Sheets quota used in the last hour"),
    Family("sheets_quota_waits_last_hour", "Calls that waited for the Sheets quota"),
)
"""Every metric that the endpoint shows, in its order."""


@dataclass(slots=True, eq=False)
class PlatformCollector(Collector):
    """Collects all families; within `cache_seconds` it answers from memory."""

    resources: Resources
    cache_seconds: float = CACHE_SECONDS
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _families: tuple[Metric, ...] = ()
    _valid_until: float = float("-inf")
    _reader: RootReader | None = None

    def collect(self) -> Iterable[Metric]:
        """Return the families; two scrapes at a time share one look."""
        with self._lock:
            began = self.clock()
            if began >= self._valid_until:
                self._families = tuple(self._look(began))
                took = self.clock() - began
                self._valid_until = self.clock() + max(self.cache_seconds, took * _REST_FACTOR)
            return self._families

    def describe(self) -> Iterable[Metric]:
        """Return no names: registering must not read the whole state."""
        return ()

    def _look(self, began: float) -> Iterator[Metric]:
        samples: dict[str, Samples] = {}
        up: dict[Labels, float] = {}
        looks = (self._root_samples, self._ledger_samples, self._dagster_samples)
        for source, look in zip(SOURCES, looks, strict=True):
            try:
                for name, found in look().items():
                    samples[name] = {**samples.get(name, {}), **found}
                up[(source,)] = 1.0
            except (NewsPlatformError, sa.exc.SQLAlchemyError, dg.DagsterError, OSError):
                # The scrape itself must answer: an alert watches `source_up`.
                up[(source,)] = 0.0
        samples["source_up"] = up
        samples["scrape_seconds"] = {(): self.clock() - began}
        for family in FAMILIES:
            yield family.gauge(samples.get(family.name, {}))

    def _root_samples(self) -> dict[str, Samples]:
        store = self.resources.data_root.store
        if self._reader is None:
            names = [one.asset for one in BUILD_ORDER if one.asset != RAW_NEWS]
            self._reader = RootReader(store, names)
        return {"paused": {(): float(is_paused(store))}, **_of_root(self._reader.read())}

    def _ledger_samples(self) -> dict[str, Samples]:
        resources = self.resources
        with open_ledger(resources) as engine:
            if engine is None:
                return {}
            quota = resources.settings.sheets.calls_per_minute
            facts = read_ledger_facts(engine, now=resources.clock.now(), calls_per_minute=quota)
        return _of_ledger(facts)

    def _dagster_samples(self) -> dict[str, Samples]:
        with open_instance(self.resources.settings) as instance:
            return {} if instance is None else self._of_instance(instance)

    def _of_instance(self, instance: dg.DagsterInstance) -> dict[str, Samples]:
        now = self.resources.clock.now()
        lags, runs = read_lags(instance, now=now), read_runs(instance, now=now)
        sensors, speed = read_sensors(instance, now=now), read_pages_per_second(instance)
        return {
            "pages_per_second": {} if speed is None else {(): speed},
            "stale_partitions": {
                (lag.asset, str(state)): count
                for lag in lags
                for state, count in lag.states.items()
            },
            "lag_seconds": {(lag.asset,): lag.oldest_seconds for lag in lags},
            "attempts": {(lag.asset,): lag.attempts for lag in lags},
            "red_checks": {
                (asset,): sum(map(len, checks.values()))
                for asset, checks in read_red_checks(instance).items()
            },
            "runs": _by_label(runs.counts),
            "runs_failed_last_day": {(): runs.failed_last_day},
            "oldest_queued_run_seconds": {(): runs.oldest_queued_seconds},
            "daemon_up": {
                (one.name,): float(one.is_alive) for one in read_daemons(instance, now=now)
            },
            "sensor_tick_age_seconds": {
                (one.name,): one.age_seconds for one in sensors if one.age_seconds is not None
            },
            "sensor_failing": {(one.name,): float(bool(one.error)) for one in sensors},
        }


def build_registry(
    resources: Resources, *, cache_seconds: float = CACHE_SECONDS
) -> CollectorRegistry:
    """Return a registry with the platform's metrics alone."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PlatformCollector(resources, cache_seconds))
    return registry


def _of_root(facts: RootFacts) -> dict[str, Samples]:
    datasets = facts.datasets
    dropped = sorted(facts.dropped.items(), key=lambda item: -item[1])[:_MOST_REASONS]
    return {
        "dataset_partitions": {(name,): one.partitions for name, one in datasets.items()},
        "dataset_rows": {
            (name,): one.rows for name, one in datasets.items() if one.rows is not None
        },
        "dataset_bytes": {
            (name,): one.bytes for name, one in datasets.items() if one.bytes is not None
        },
        "unread_markers": {(name,): one.unread for name, one in datasets.items()},
        "dropped_pages": _by_label(dict(dropped)),
        "pool_restarts": _by_labels(facts.restarts),
        "store_buckets": {(): facts.store_buckets},
        "store_manifests": {(): facts.store_manifests},
        "store_generation": {(): facts.newest_generation},
    }


def _of_ledger(facts: LedgerFacts) -> dict[str, Samples]:
    return {
        "feeds": _by_label(facts.feeds),
        "feed_health": {(): facts.feed_health},
        "feed_alarms": _by_label(facts.alarms),
        "articles": _by_label(facts.articles),
        "oldest_pending_article_seconds": {(): facts.oldest_pending_seconds},
        "http_answers_last_day": _by_labels(facts.answers),
        "domain_queue": _by_label(facts.queue),
        "survey_outcomes_last_day": _by_label(facts.outcomes),
        "outbox": _by_label(facts.outbox),
        "sheets_quota_use": {(): facts.quota_use},
        "sheets_quota_waits_last_hour": {(): facts.quota_waits},
        "pool_restarts": {("rss", reason): count for reason, count in facts.lost.items()},
    }


def _by_labels(counts: Mapping[tuple[str, str], int]) -> Samples:
    return {labels: number for labels, number in counts.items()}


def _by_label(counts: Mapping[str, int]) -> Samples:
    return {(name,): number for name, number in counts.items()}
