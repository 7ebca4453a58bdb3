"""The state of a platform as plain values: the root, the ledger and the automation.

`doctor` judges these values and `metrics` prints them. A part that could not be read is empty.
"""
# ruff: noqa: RUF009 - `metric` is `dataclasses.field` with a help text, not a shared default

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from news_platform.datasets.collected import Collected
from news_platform.domain_store.layout import MANIFESTS
from news_platform.storage.commit.collected import CollectedUnit, list_collected, parse_listed
from news_platform.storage.commit.markers import Marker, read_markers, read_report
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import NotFound, ObjectStore

RAW_NEWS = "raw_news"
# What a report calls the rows of its dataset; the first that it has counts.
_ROWS = ("rows", "articles", "documents", "records", "blocks_kept", "messages")
_BYTES = ("bytes", "bytes_written")
# Per reading: a remote root with ten years of markers is summed up in several readings.
_MOST_READS = 2_000
_CONCURRENT_READS = 16
_EXTRACTOR = "extractor_"
_MOST_REASONS = 50
_LOSSES = ("timeout", "memory", "crash")

Counts = Mapping[str, int]
Pairs = Mapping[tuple[str, str], int]


def metric(help_text: str, *labels: str, name: str = "") -> Any:
    """Declare a fact that `metrics` prints, under the name of its field or another one.

    With labels it is numbers by the values of the labels, else one number; by default none.
    """
    empty = dict if labels else lambda: None
    metadata = {"help": help_text, "labels": labels, "name": name}
    return field(default_factory=empty, metadata=metadata)


def rows(label: str) -> Any:
    """Declare a sequence of facts; the first field of each is the value of this label."""
    return field(default=(), metadata={"label": label})


@dataclass(frozen=True, slots=True)
class RootFacts:
    """What a root holds. `pool_restarts` counts replaced worker processes."""

    paused: bool | None = metric("1 while all sensors are paused")
    dataset_partitions: Counts = metric("Partitions that have a marker", "dataset")
    dataset_rows: Counts = metric("Rows that the markers state", "dataset")
    dataset_bytes: Counts = metric("Bytes that the markers state", "dataset")
    unread_markers: Counts = metric("Markers that are not in the sums yet", "dataset")
    dropped_pages: Counts = metric("Pages of WARCs without a row, by reason", "reason")
    pool_restarts: Pairs = metric("Items that ended a worker process", "dataset", "reason")
    store_buckets: int | None = metric("Buckets of the domain store")
    store_manifests: int | None = metric("Generations of all buckets that are kept")
    store_generation: int | None = metric("Newest generation of any bucket")


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What is in the ledger. `pool_restarts` counts articles whose page ended a worker process."""

    feeds: Counts = metric("Feeds by status", "status")
    feed_health: float | None = metric("Mean health score of active feeds, 0 to 100")
    feed_alarms: Counts = metric("Open alarms about feeds and sources", "kind")
    articles: Counts = metric("Articles by status", "status")
    oldest_pending_article_seconds: float | None = metric(
        "How long the oldest pending article waits"
    )
    http_answers_last_day: Pairs = metric("Answers by class of status", "dataset", "class")
    pool_restarts: Pairs = metric("Items that ended a worker process", "dataset", "reason")
    domain_queue: Counts = metric("Messages of the survey by state", "state")
    survey_outcomes_last_day: Counts = metric("Surveyed domains by outcome", "outcome")
    outbox: Counts = metric("Rows and messages that wait to be sent", "receiver")
    sheets_quota_use: float | None = metric("Share of the Sheets quota used in the last hour")
    sheets_quota_waits_last_hour: int | None = metric("Calls that waited for the Sheets quota")


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """One of Dagster's daemons; `age_seconds` is that of its last heartbeat, None without one."""

    name: str
    is_alive: bool = metric("1 if a daemon of Dagster sends heartbeats", name="daemon_up")
    age_seconds: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SensorFacts:
    """A sensor; `age_seconds` is that of its last tick, and `error` why that one failed."""

    name: str
    is_on: bool
    age_seconds: float | None = metric(
        "Time since the last tick of a sensor", name="sensor_tick_age_seconds"
    )
    is_failing: bool = metric("1 if the last tick of a sensor failed", name="sensor_failing")
    interval_seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class StaleFacts:
    """The stale partitions of an asset, and the one that waits longest.

    `stopped` has the partitions that are not retried, and why.
    """

    asset: str
    states: Counts = metric(
        "Partitions that differ from their inputs", "state", name="stale_partitions"
    )
    lag_seconds: float = metric("How long the longest waiting partition is stale")
    attempts: int = metric("Most failures in a row of one partition")
    oldest: str = ""
    stopped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AutomationFacts:
    """What Dagster's storage knows. `red_partitions` are by asset and check.

    `unknown` says for which assets what is stale could not be found, and why.
    """

    pages_per_second: float | None = metric("Speed of the last run that collected WARCs")
    stale: Sequence[StaleFacts] = rows("asset")
    unknown: Mapping[str, str] = field(default_factory=dict)
    red_checks: Counts = metric("Partitions for which a check is red", "asset")
    red_partitions: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    runs: Counts = metric("Runs in Dagster's storage, by status", "status")
    runs_failed_last_day: int | None = metric("Runs that failed within 24 hours")
    oldest_queued_run_seconds: float | None = metric("How long the oldest queued run waits")
    daemons: Sequence[DaemonFacts] = rows("daemon")
    sensors: Sequence[SensorFacts] = rows("sensor")


@dataclass(slots=True)
class RootReader:
    """Reads a root repeatedly; of markers that have not changed, only the listing."""

    store: ObjectStore
    datasets: Sequence[str]
    _reports: dict[tuple[str, str], dict[str, object]] = field(default_factory=dict)
    _units: list[CollectedUnit] = field(default_factory=list)
    _collected: list[Collected] = field(default_factory=list)

    def read(self) -> RootFacts:
        """Return the facts of this moment."""
        collected = self._read_collected()
        dropped = Counter[str]()
        for marker in collected:
            dropped.update(marker.dropped)
        restarts = {
            ("ccnews", reason.removeprefix(_EXTRACTOR)): count
            for reason, count in dropped.items()
            if reason.startswith(_EXTRACTOR)
        }
        partitions = {RAW_NEWS: len({marker.day for marker in collected})}
        rows = {RAW_NEWS: sum(marker.rows for marker in collected)}
        sizes = {RAW_NEWS: sum(marker.bytes for marker in collected)}
        unread = {RAW_NEWS: 0}
        for dataset in self.datasets:
            markers = read_markers(self.store, dataset)
            if not markers:  # tables of the ledger, and what was never built
                continue
            reports = self._read_reports(list(markers.values()))
            partitions[dataset] = len(markers)
            unread[dataset] = len(markers) - len(reports)
            rows |= _sum(dataset, reports, _ROWS)
            sizes |= _sum(dataset, reports, _BYTES)
            if dataset == "crawl_articles":
                restarts |= {("corpus", name): n for name, n in _lost_pages(reports).items()}
        generations = self._generations()
        return RootFacts(
            paused=is_paused(self.store),
            dataset_partitions=partitions,
            dataset_rows=rows,
            dataset_bytes=sizes,
            unread_markers=unread,
            dropped_pages=dict(dropped.most_common(_MOST_REASONS)),
            pool_restarts=restarts,
            store_buckets=len(generations),
            store_manifests=sum(map(len, generations.values())),
            store_generation=max(map(max, generations.values()), default=0),
        )

    def _read_collected(self) -> list[Collected]:
        units = list_collected(self.store)
        if units != self._units:
            self._collected, self._units = parse_listed(self.store, units), units
        return self._collected

    def _read_reports(self, markers: Sequence[Marker]) -> list[dict[str, object]]:
        keys = {(marker.path, marker.etag): marker for marker in markers}
        new = [key for key in keys if key not in self._reports][:_MOST_READS]
        with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
            reports = threads.map(lambda key: self._report(keys[key]), new)
            self._reports |= dict(zip(new, reports, strict=True))
        return [self._reports[key] for key in keys if key in self._reports]

    def _report(self, marker: Marker) -> dict[str, object]:
        try:
            report = read_report(self.store, marker)
        except NotFound:  # replaced since it was listed
            return {}
        # Only what is counted: the reports of ten years would fill the memory.
        return {name: report[name] for name in (*_ROWS, *_BYTES, "dropped") if name in report}

    def _generations(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for info in self.store.list(MANIFESTS):
            bucket, _, name = info.path.removeprefix(f"{MANIFESTS}/").partition("/")
            number = name.removesuffix(".json")
            if number.isdecimal():
                found.setdefault(bucket, []).append(int(number))
        return found


def _sum(dataset: str, reports: Sequence[Mapping[str, object]], names: Sequence[str]) -> Counts:
    """Return the sum of what the reports state under the first of the names; nothing if none do."""
    found = [
        next((one for name in names if isinstance(one := report.get(name), int)), None)
        for report in reports
    ]
    stated = [number for number in found if number is not None]
    return {dataset: sum(stated)} if stated else {}


def _lost_pages(reports: Sequence[Mapping[str, object]]) -> Counts:
    counted = Counter[str]()
    for report in reports:
        dropped = report.get("dropped")
        if isinstance(dropped, dict):
            counted.update({name: dropped.get(name, 0) for name in _LOSSES})
    return dict(counted)
