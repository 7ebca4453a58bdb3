"""Read what a simulation did: runs, bytes, waits, ticks and datasets, for its judgement."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import dagster as dg

from news_platform.ccnews.maintenance import accept_broken
from news_platform.ccnews.pipeline import collect_day
from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.defs.runs import RANGE_END_TAG, RANGE_START_TAG, REASON_TAG, run_assets
from news_platform.domain_store.catalog import write_catalog
from news_platform.domain_store.layout import range_keys
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_range
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import stage_input
from news_platform.resources import Resources, build_options, collect_options
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.units import wanted_inputs
from news_platform_tests.year.ideal import followed_by, ideal_runs
from news_platform_tests.year.plan import Arrival
from news_platform_tests.year.simulated import Place

ASSETS = ("raw_news", "domain_buckets", "domain_store", "domain_catalog")
_PARTITION = "dagster/partition"
_RETRY = "dagster/parent_run_id"
_MAKERS = (_RETRY, "dagster/sensor_name", "dagster/schedule_name", "dagster/backfill")
_SAME_FILES = ("news/raw", "news/captures", "news/feed_candidates", "news/dropped")


@dataclass(frozen=True, slots=True)
class MadeRun:
    """One run: what it built, why, when, and how it ended."""

    run_id: str
    asset: str
    first: str
    last: str
    status: str
    made_by: str
    reason: str
    at: datetime

    def builds(self, day: str) -> bool:
        """Return whether a day is among its partitions."""
        return self.first <= day <= self.last


@dataclass
class YearFigures:
    """What a simulation took, beside what it had to take."""

    runs: Mapping[str, int] = field(default_factory=dict)
    ideal: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    bytes_staged: int = 0
    bytes_merged: int = 0
    bytes_held: int = 0
    longest_wait: timedelta = timedelta()
    waits: Sequence[str] = ()
    unexplained: Sequence[str] = ()
    broken_ticks: Sequence[str] = ()
    stale: Mapping[str, object] = field(default_factory=dict)
    different: Sequence[str] = ()
    alerts: Sequence[str] = ()

    @property
    def run_ratio(self) -> float:
        """Return runs per ideal run."""
        return sum(self.runs.values()) / sum(self.ideal.values())

    @property
    def byte_ratio(self) -> float:
        """Return bytes written to stage 1 and store per byte that they have to hold."""
        return (self.bytes_staged + self.bytes_merged) / (2 * self.bytes_held)


def read_figures(place: Place, instance: dg.DagsterInstance) -> YearFigures:
    """Read all figures of a finished simulation."""
    runs = list(_runs(instance))
    ours = [run for run in runs if run.asset in ASSETS]
    waits = list(_waits(place, ours))
    staged, merged = (
        _metadata_sum(instance, "domain_buckets", "bytes"),
        _metadata_sum(instance, "domain_store", "bytes_added"),
    )
    ticks = read_ticks(place)
    named = _named_runs(ticks)
    # A retry is explained by its failed run.
    failed = {(run.run_id, "") for run in runs if run.status == "FAILURE"}
    return YearFigures(
        runs=dict(Counter(run.asset for run in ours)),
        ideal=ideal_runs(place.plan),
        failed=sum(run.status != "SUCCESS" for run in ours),
        bytes_staged=staged,
        bytes_merged=merged,
        bytes_held=_held_bytes(instance),
        longest_wait=max((wait for _, wait in waits), default=timedelta()),
        waits=[f"{one.name}: {wait}" for one, wait in waits if wait],
        unexplained=[f"{run}" for run in runs if not _is_explained(run, named | failed)],
        broken_ticks=[f"{one['name']}: {one['error']}" for one in ticks if one["error"]],
        alerts=_alerts(place),
    )


def _runs(instance: dg.DagsterInstance) -> Iterator[MadeRun]:
    for record in instance.get_run_records(ascending=True):
        run, tags = record.dagster_run, record.dagster_run.tags
        assets = run_assets(run)
        single = tags.get(_PARTITION, "")
        yield MadeRun(
            run.run_id,
            next((one for one in ASSETS if one in assets), run.job_name),
            tags.get(RANGE_START_TAG, single),
            tags.get(RANGE_END_TAG, single),
            run.status.value,
            _made_by(tags),
            tags.get(REASON_TAG, ""),
            record.create_timestamp.replace(tzinfo=UTC),
        )


def _made_by(tags: Mapping[str, str]) -> str:
    # The instance tries runs of schedules and backfills again; those keep the tags of the first.
    for tag in _MAKERS:
        if tag in tags:
            return f"{tag.partition('/')[2]} {tags[tag]}"
    return ""


def _named_runs(ticks: Sequence[Mapping[str, object]]) -> frozenset[tuple[str, str]]:
    """Return the sensor or schedule and the id of every run that a tick names."""
    pairs = ((str(tick["name"]), tick["runs"]) for tick in ticks)
    return frozenset(
        (name, str(one)) for name, ids in pairs if isinstance(ids, list) for one in ids
    )


def _is_explained(run: MadeRun, named: frozenset[tuple[str, str]]) -> bool:
    """Return whether a tick names the run, and a run of a sensor says why it was requested."""
    kind, _, name = run.made_by.partition(" ")
    match kind:
        case "backfill":
            return True
        case "parent_run_id":
            return (name, "") in named
        case "schedule_name":
            return (name, run.run_id) in named
        case _:
            return (name, run.run_id) in named and "stale since" in run.reason


def read_ticks(place: Place) -> list[dict[str, object]]:
    """Return the log of ticks, each once, as it was when it was last seen."""
    rows = (json.loads(line) for line in place.ticks.read_text().splitlines())
    return list({(row["name"], row["id"]): row for row in rows}.values())


def _waits(place: Place, runs: Sequence[MadeRun]) -> Iterator[tuple[Arrival, timedelta]]:
    """Yield how much later than it had to each WARC was followed, outages apart."""
    plan = place.plan
    for one in plan.arrivals:
        if one.day in plan.days:
            day = str(one.day)
            begun = (run.at for run in runs if run.asset == "domain_buckets" and run.builds(day))
            followed = min((at for at in begun if at >= one.at), default=plan.end)
            wait = followed - followed_by(plan, one) - _outage(place, one.at, followed)
            yield one, max(wait, timedelta())


def _outage(place: Place, start: datetime, end: datetime) -> timedelta:
    """Return how long the crawl or the root was down between two moments."""
    parts = (min(one.end, end) - max(one.start, start) for one in place.plan.outages)
    return sum((part for part in parts if part > timedelta()), timedelta())


def _metadata_sum(instance: dg.DagsterInstance, asset: str, name: str) -> int:
    return sum(value for _, value in _metadata(instance, asset, name))


def _metadata(instance: dg.DagsterInstance, asset: str, name: str) -> Iterator[tuple[str, int]]:
    """Yield a figure of every materialization of an asset, oldest first."""
    cursor: str | None = None
    while True:
        found = instance.fetch_materializations(
            dg.AssetKey(asset), limit=500, cursor=cursor, ascending=True
        )
        for record in found.records:
            event = record.asset_materialization
            if event is not None and name in event.metadata:
                yield str(event.partition), int(str(event.metadata[name].value))
        cursor = found.cursor
        if not found.has_more:
            return


def _held_bytes(instance: dg.DagsterInstance) -> int:
    """Return the staged bytes of the last version of every day."""
    return sum(dict(_metadata(instance, "domain_buckets", "bytes")).values())


def _alerts(place: Place) -> list[str]:
    if not place.alerts.exists():
        return []
    return [json.loads(line)["text"] for line in place.alerts.read_text().splitlines()]


def build_undisturbed(place: Place) -> Resources:
    """Build all datasets from the final crawl at once, without Dagster and without trouble."""
    resources, plan = place.resources(is_disturbed=False), place.plan
    store, now = resources.data_root.store, plan.end
    if plan.broken is not None:
        info = resources.crawl.store.head(plan.broken.path)
        accept_broken(store, plan.broken.name, info=info)
    options = build_options(resources.settings.domain_store, store)
    for day in (*plan.history, *plan.days):
        report = collect_day(
            day,
            crawl=resources.crawl.sources,
            root=store,
            options=collect_options(resources.settings.ccnews),
            now=now,
            attempt="undisturbed",
        )
        assert not report.failed, report.failed
        batch = str(day)
        stage_input(day_input(store, batch), store=store, batch=batch, options=options)
    for key in range_keys(options.buckets):
        build_range(key, store=store, options=options, now=now)
    write_catalog(store, inputs=wanted_inputs(store, DOMAIN_CATALOG).get(WHOLE, ""))
    return resources


def differences(ours: ObjectStore, undisturbed: ObjectStore) -> list[str]:
    """Return where the datasets of two roots differ."""
    folders = (*_SAME_FILES, "domain_buckets")
    found = []
    for folder in folders:
        left, right = _digests(ours, folder), _digests(undisturbed, folder)
        names = sorted({*left, *right})
        found += [name for name in names if left.get(name) != right.get(name)]
    # In how many fragments a domain lies depends on the order in which its days were merged.
    left_rows, right_rows = (
        read_table(store, DOMAIN_CATALOG.path, DOMAIN_CATALOG).drop("fragments")
        for store in (ours, undisturbed)
    )
    found += [] if left_rows.equals(right_rows) else [DOMAIN_CATALOG.path]
    return found + _different_domains(ours, undisturbed)


def _digests(store: ObjectStore, folder: str) -> Mapping[str, str]:
    return {
        info.path: hashlib.sha256(store.read(info.path)).hexdigest() for info in store.list(folder)
    }


def _different_domains(ours: ObjectStore, undisturbed: ObjectStore) -> list[str]:
    """Compare the store by what it returns: its files depend on the order of the batches."""
    left, right = DomainStore(ours), DomainStore(undisturbed)
    names = {*map(str, left.domains()), *map(str, right.domains())}
    return sorted(name for name in names if _records(left, name) != _records(right, name))


def _records(store: DomainStore, domain: str) -> list[str]:
    return sorted(json.dumps(dict(row), sort_keys=True) for row in store.records(domain))
