"""Sum up what the markers of a root say: partitions, rows and bytes, dropped pages, generations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from news_platform.datasets.collected import Collected
from news_platform.domain_store.layout import MANIFESTS
from news_platform.storage.commit.collected import list_collected, parse_listed
from news_platform.storage.commit.collected_months import CollectedUnit
from news_platform.storage.commit.markers import Marker, read_markers, read_report
from news_platform.storage.objects.store import NotFound, ObjectStore

RAW_NEWS = "raw_news"
# What a report calls the rows of its dataset; the first that it has counts.
_ROWS = ("rows", "articles", "documents", "records", "blocks_kept", "messages")
_BYTES = ("bytes", "bytes_written")
# Of each look at a root: a remote one with ten years of markers is summed up in several looks.
_MOST_READS = 2_000
_CONCURRENT_READS = 16
_EXTRACTOR = "extractor_"


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """The partitions of a dataset, and the rows and bytes that their markers state, if any do."""

    partitions: int
    rows: int | None
    bytes: int | None
    unread: int = 0


@dataclass(frozen=True, slots=True)
class RootFacts:
    """What a root holds. `restarts` counts replaced worker processes by room and reason."""

    datasets: Mapping[str, DatasetFacts]
    dropped: Mapping[str, int]
    restarts: Mapping[tuple[str, str], int]
    store_buckets: int
    store_manifests: int
    newest_generation: int


@dataclass(slots=True)
class RootReader:
    """Reads a root again and again; of markers that have not changed, only the listing."""

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
        generations = self._generations()
        found = {RAW_NEWS: _raw_news_facts(collected)}
        restarts = {("ccnews", reason): n for reason, n in _restarts(dropped).items()}
        for dataset in self.datasets:
            markers = read_markers(self.store, dataset)
            reports = self._read_reports(list(markers.values()))
            if not markers:  # tables of the ledger, and what was never built
                continue
            found[dataset] = _facts(len(markers), reports)
            if dataset == "crawl_articles":
                restarts |= {("corpus", name): n for name, n in _lost_pages(reports).items()}
        return RootFacts(
            found,
            dict(dropped),
            restarts,
            store_buckets=len(generations),
            store_manifests=sum(len(one) for one in generations.values()),
            newest_generation=max((max(one) for one in generations.values()), default=0),
        )

    def _read_collected(self) -> list[Collected]:
        units = list_collected(self.store)
        if units != self._units:
            self._collected, self._units = parse_listed(self.store, units), units
        return self._collected

    def _read_reports(self, markers: Sequence[Marker]) -> list[dict[str, object]]:
        keys = [(marker.path, marker.etag) for marker in markers]
        new = [
            (key, marker)
            for key, marker in zip(keys, markers, strict=True)
            if key not in self._reports
        ][:_MOST_READS]
        with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
            reports = threads.map(lambda item: self._report(item[1]), new)
            self._reports |= {key: report for (key, _), report in zip(new, reports, strict=True)}
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


def _raw_news_facts(collected: Sequence[Collected]) -> DatasetFacts:
    return DatasetFacts(
        len({marker.day for marker in collected}),
        sum(marker.rows for marker in collected),
        sum(marker.bytes for marker in collected),
    )


def _facts(partitions: int, reports: Sequence[Mapping[str, object]]) -> DatasetFacts:
    return DatasetFacts(
        partitions,
        _sum(reports, _ROWS),
        _sum(reports, _BYTES),
        partitions - len(reports),
    )


def _sum(reports: Sequence[Mapping[str, object]], names: Sequence[str]) -> int | None:
    found = [
        next((one for name in names if isinstance(one := report.get(name), int)), None)
        for report in reports
    ]
    stated = [number for number in found if number is not None]
    return sum(stated) if stated else None


def _restarts(dropped: Mapping[str, int]) -> dict[str, int]:
    """Return the records of WARCs that ended a worker process, by reason."""
    return {
        reason.removeprefix(_EXTRACTOR): count
        for reason, count in dropped.items()
        if reason.startswith(_EXTRACTOR)
    }


def _lost_pages(reports: Sequence[Mapping[str, object]]) -> dict[str, int]:
    counted = Counter[str]()
    for report in reports:
        dropped = report.get("dropped")
        if isinstance(dropped, dict):
            counted.update({name: dropped.get(name, 0) for name in ("timeout", "memory", "crash")})
    return dict(counted)
