"""`news-platform demo`: build the whole graph on the sample world, offline, and print a summary.

Only partitions that are out of date are built: a second run changes nothing and reports that, and
after a file was deleted only its partition is built again.
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

from news_platform.cli.command import Output, command, table
from news_platform.datasets.dataset import WHOLE
from news_platform.definitions import build_definitions
from news_platform.defs.checks import Reporter, evaluate_all, red_partitions
from news_platform.defs.graph import BUILD_ORDER, CHECKS
from news_platform.defs.rebuild_rules import Fingerprints, RebuildRule
from news_platform.defs.sensors import add_partitions
from news_platform.errors import ConfigError, NewsPlatformError, StorageError
from news_platform.resources import Resources
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import Settings
from news_platform.storage.commit.markers import delete_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import has_removed, input_filter

OUTPUTS_FILE = "demo.json"
# Inputs, the ledger and markers are not outputs of a partition.
_NOT_OUTPUTS = ("world/", "raw/", "snapshots/", "markers/", "ledger.", "root.json", OUTPUTS_FILE)
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


@command(access=None, default_root="data-demo")
def demo(settings: Settings) -> Output:
    """Build the whole graph on the sample world, offline."""
    resources, root = SampleResources(settings, frozen_clock=True), settings.root
    started = time.monotonic()
    store = resources.data_root.store
    if store.local_folder is None:
        raise ConfigError(f"cannot build the demo in {root!r}: expected a local folder", thing=root)
    before = content_hash(store.local_folder)
    place_inputs(resources.world.folder, store, is_refused=input_filter(store))
    results = list(build_all(resources))
    resources.ledger.close()
    after = content_hash(store.local_folder)
    document = {
        "assets": [{"asset": one.asset, "built": one.built, "rows": one.rows} for one in results],
        "changed": before != after,
        "content_sha256": after,
    }
    rows = ((one.asset, len(one.built), one.rows, one.seconds) for one in results)
    done = "built what was out of date" if before != after else "up to date: no byte changed"
    seconds = time.monotonic() - started
    lines = [
        table(("asset", "built", "rows", "seconds"), rows),
        f"{done}; {seconds:.0f} s; data in {root}",
    ]
    return Output(document, "\n".join(lines))


def build_all(resources: Resources) -> Iterator[AssetResult]:
    """Build what is out of date, asset by asset in the order of the graph."""
    outputs = Outputs.read(resources.data_root.store)
    with _instance(resources.settings) as instance:
        run = DemoRun(resources, build_definitions(resources), instance, outputs)
        for rule in BUILD_ORDER:
            yield _build_asset(_or_missing(rule, outputs), run)
        _report_red_last(resources, instance)
    outputs.write()


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
    """Return one hash of the names and bytes of all files under a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.endswith(_PASSING):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _instance(settings: Settings) -> dg.DagsterInstance:
    """Return the instance that `make dev` shows, or a temporary one without DAGSTER_HOME."""
    if settings.dagster_home is None:
        return dg.DagsterInstance.ephemeral()
    if not Path(settings.dagster_home).is_dir():
        raise ConfigError(f"DAGSTER_HOME={settings.dagster_home!r} is not a folder: create it")
    return dg.DagsterInstance.get()


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
