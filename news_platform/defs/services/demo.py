"""Build the whole graph in this process, in a fixed order, as `news-platform demo` does.

Only partitions that are out of date are built: a second run changes nothing, and after a file was
deleted only its partition is built again.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import dagster as dg

from news_platform.composition.home import FOLDER as HOME_FOLDER
from news_platform.composition.home import make_home
from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.registry import DATASETS
from news_platform.defs.checks import Reporter, evaluate_all, red_partitions
from news_platform.defs.graph import BUILD_ORDER, CHECKS
from news_platform.defs.rebuild_rules import Fingerprints, RebuildRule
from news_platform.defs.sensors import add_partitions
from news_platform.errors import NewsPlatformError, StorageError
from news_platform.resources import Resources
from news_platform.storage.commit.markers import delete_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import unit_states
from news_platform.takedowns.build_filters import has_removed

OUTPUTS_FILE = "demo.json"
# Inputs, the ledger and markers are not outputs of a partition.
_NOT_OUTPUTS = (
    *("world/", "raw/", "snapshots/", "markers/", "ledger.", "root.json"),
    OUTPUTS_FILE,
    f"{HOME_FOLDER}/",
)
# SQLite's side files come and go with every connection, even if nothing changes.
_PASSING = ("-wal", "-shm", "-journal")
# Assets whose files name the run that wrote them. Their runs have the same id in every demo, so
# that two demos write the same bytes.
_RUNS_IN_FILES = ("raw_news",)


@dataclass
class Outputs:
    """The files of each partition, by asset, stored in the root next to the data.

    They show when a file was deleted, which no marker does.
    """

    store: ObjectStore
    paths: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @classmethod
    def read(cls, store: ObjectStore) -> "Outputs":
        """Read what earlier runs recorded."""
        if not store.exists(OUTPUTS_FILE):
            return cls(store)
        return cls(store, json.loads(store.read(OUTPUTS_FILE)))

    def write(self) -> None:
        """Store the record, unless it is stored already."""
        body = json.dumps(self.paths, indent=1, sort_keys=True).encode()
        if not self.store.exists(OUTPUTS_FILE) or self.store.read(OUTPUTS_FILE) != body:
            self.store.put(OUTPUTS_FILE, body)

    def missing(self, asset: str) -> tuple[str, ...]:
        """Return the partitions of which a file is missing; their markers are deleted."""
        present = self._etags().keys()
        recorded = self.paths.get(asset, {})
        missing = sorted(key for key, paths in recorded.items() if not present >= set(paths))
        for key in missing:
            delete_marker(self.store, asset, key)
        return tuple(missing)

    @contextmanager
    def recording(self, asset: str, partition: str) -> Iterator[None]:
        """Record what is written while this partition is built; fail if a file stays missing."""
        before = self._etags()
        missing = set(self.paths.get(asset, {}).get(partition, ())) - before.keys()
        yield
        after = self._etags()
        changed = {path for path, etag in after.items() if before.get(path) != etag}
        # What was taken down is never built again.
        if missing and not changed and not has_removed(self.store):
            raise StorageError(
                f"{asset} cannot build {min(missing)!r} again: "
                "delete the demo folder and run the demo again",
                thing=min(missing),
            )
        known = self.paths.setdefault(asset, {}).get(partition, [])
        self.paths[asset][partition] = sorted(changed | set(known) & after.keys())

    def _etags(self) -> dict[str, str]:
        return {
            info.path: info.etag
            for info in self.store.list()
            if not info.path.startswith(_NOT_OUTPUTS)
        }


@dataclass(frozen=True, slots=True)
class AssetResult:
    """What was built of one asset, and how many rows its runs reported."""

    asset: str
    built: tuple[str, ...]
    rows: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class DemoRun:
    """What all builds of one demo run share."""

    resources: Resources
    defs: dg.Definitions
    instance: dg.DagsterInstance
    outputs: Outputs


def build_all(resources: Resources, defs: dg.Definitions) -> Iterator[AssetResult]:
    """Build what is out of date, asset by asset in the order of the graph."""
    outputs = Outputs.read(resources.data_root.store)
    home = make_home(resources.settings)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        run = DemoRun(resources, defs, instance, outputs)
        _observe_inputs(run)
        for rule in BUILD_ORDER:
            yield _build_asset(_or_missing(rule, outputs), run)
        _report_red_last(resources, instance)
    outputs.write()


def _observe_inputs(run: DemoRun) -> None:
    """Report what outside systems have placed, as the sensors do: else it shows as never seen."""
    for name, dataset in DATASETS.items():
        if dataset.is_asset and dataset.version is None:
            is_whole, store = dataset.partitions == "whole", run.resources.data_root.store
            states = {WHOLE: ""} if is_whole else unit_states(store, dataset)
            add_partitions(run.instance, run.defs, name, () if is_whole else sorted(states))
            seen = run.instance.fetch_observations(dg.AssetKey(name), limit=1).records
            for key in () if seen else sorted(states):
                run.instance.report_runless_asset_event(
                    dg.AssetObservation(name, partition=None if is_whole else key)
                )


def _report_red_last(resources: Resources, instance: dg.DagsterInstance) -> None:
    """Evaluate red checks again: the UI shows the result of a check that was reported last."""
    red = red_partitions(instance, CHECKS)
    evaluate_all(
        [one for one in CHECKS if red[one.key]],
        resources,
        Reporter(instance, str(uuid.uuid4())),
        is_time_left=lambda: True,
        log=lambda _text: None,
    )


def _or_missing(rule: RebuildRule, outputs: Outputs) -> RebuildRule:
    """Return a rule that also rebuilds partitions with missing files."""

    def stale(resources: Resources) -> Fingerprints:
        missing = outputs.missing(rule.asset)  # first: it deletes markers
        return dict.fromkeys(missing, "missing") | dict(rule.stale(resources))

    return RebuildRule(rule.asset, stale)


def content_hash(root: Path) -> str:
    """Return one hash of the names and bytes of all files of a root, without Dagster's state."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        is_ours = HOME_FOLDER not in path.relative_to(root).parts
        if is_ours and path.is_file() and not path.name.endswith(_PASSING):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _build_asset(rule: RebuildRule, run: DemoRun) -> AssetResult:
    started = time.monotonic()
    asset, partitions = rule.asset, tuple(sorted(rule.stale(run.resources)))
    add_partitions(run.instance, run.defs, asset, partitions)
    rows = [_build(asset, partition, run) for partition in partitions]
    known = [count for count in rows if count is not None]
    return AssetResult(asset, partitions, sum(known) if known else None, time.monotonic() - started)


def _build(asset: str, partition: str, run: DemoRun) -> int | None:
    """Materialise one partition; return the number of rows that it reports, if any."""
    click.echo(f"  {asset} {'' if partition == WHOLE else partition} ...", err=True)
    with run.outputs.recording(asset, partition):
        result = run.defs.resolve_implicit_global_asset_job_def().execute_in_process(
            asset_selection=[dg.AssetKey(asset)],
            partition_key=None if partition == WHOLE else partition,
            instance=run.instance,
            run_id=_run_id(asset, partition, run.instance),
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    if not result.success:
        raise NewsPlatformError(f"{asset} {partition} failed: {_cause(result)}", thing=asset)
    return _reported_rows(result, asset)


def _run_id(asset: str, partition: str, instance: dg.DagsterInstance) -> str | None:
    """Return the id of the run; None: Dagster chooses one."""
    if asset not in _RUNS_IN_FILES:
        return None
    run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"news-platform demo {asset} {partition}"))
    return None if instance.has_run(run_id) else run_id


def _cause(result: dg.ExecuteInProcessResult) -> str:
    for event in result.get_step_failure_events():
        error = event.step_failure_data.error
        if error is not None:
            return (error.cause or error).message
    return "see the run in the Dagster UI"


def _reported_rows(result: dg.ExecuteInProcessResult, asset: str) -> int | None:
    counts = [
        event.materialization.metadata[name].value
        for event in result.get_asset_materialization_events()
        for name in ("dagster/partition_row_count", "dagster/row_count")
        if name in event.materialization.metadata and event.asset_key == dg.AssetKey(asset)
    ]
    return sum(int(str(count)) for count in counts) if counts else None
