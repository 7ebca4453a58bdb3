"""`news-platform demo`: the whole graph on the sample world, offline, with a summary.

Only what is out of date is built, so a second run changes nothing and says so, and a deleted output
is built again alone.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import dagster as dg

from news_platform.cli.demo_outputs import Outputs
from news_platform.cli.options import emit, json_option
from news_platform.definitions import build_definitions
from news_platform.defs.graph import STEPS
from news_platform.defs.reconcile import WHOLE, add_partitions
from news_platform.defs.steps import Step
from news_platform.errors import ConfigError, NewsPlatformError
from news_platform.resources import Resources
from news_platform.sample.inputs import place_inputs
from news_platform.sample.resources import SampleResources
from news_platform.settings import Settings, load_settings

DEMO_ROOT = "data-demo"
# SQLite's side files come and go with every connection, also without a change.
_PASSING = ("-wal", "-shm", "-journal")
# Assets whose files name the run that wrote them. Their runs have the same id in every demo, so
# that two demos write the same bytes.
_RUNS_IN_FILES = ("raw_news",)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one asset's step did: the partitions built, and what their runs reported."""

    asset: str
    built: tuple[str, ...]
    rows: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Shop:
    """What every step of one demo run works with."""

    resources: Resources
    defs: dg.Definitions
    instance: dg.DagsterInstance
    outputs: Outputs


@click.command()
@click.option("--root", default=DEMO_ROOT, show_default=True, help="Local folder of the demo.")
@json_option
def demo(root: str, as_json: bool) -> None:
    """Run the whole graph on the sample world, offline."""
    settings = load_settings(os.environ).model_copy(update={"root": root})
    resources = SampleResources(settings, frozen_clock=True)
    started = time.monotonic()
    store = resources.data_root.store
    before = content_hash(Path(root))
    place_inputs(resources.world.folder, store)
    results = list(run_steps(resources))
    resources.ledger.close()
    after = content_hash(Path(root))
    emit(
        _document(results, before=before, after=after),
        as_json=as_json,
        text=_summary(results, root=root, changed=before != after, started=started),
    )


def run_steps(resources: Resources) -> Iterator[StepResult]:
    """Build what is out of date, asset by asset in the order of the graph."""
    outputs = Outputs.read(resources.data_root.store)
    with _instance(resources.settings) as instance:
        shop = Shop(resources, build_definitions(resources), instance, outputs)
        for step in STEPS:
            yield _run_step(step, shop)
    outputs.write()


def content_hash(root: Path) -> str:
    """Return one hash over the names and bytes of all files under a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.endswith(_PASSING):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _instance(settings: Settings) -> dg.DagsterInstance:
    """Return the instance that `make dev` shows; without DAGSTER_HOME, one that leaves no trace."""
    if settings.dagster_home is None:
        return dg.DagsterInstance.ephemeral()
    if not Path(settings.dagster_home).is_dir():
        raise ConfigError(f"DAGSTER_HOME={settings.dagster_home!r} is not a folder: create it")
    return dg.DagsterInstance.get()


def _run_step(step: Step, shop: Shop) -> StepResult:
    started = time.monotonic()
    lost = shop.outputs.forget_lost(step.asset)
    partitions = tuple(sorted({*step.stale(shop.resources), *lost}))
    add_partitions(shop.instance, shop.defs, step.asset, partitions)
    rows = [_build(step.asset, partition, shop) for partition in partitions]
    known = [count for count in rows if count is not None]
    return StepResult(
        step.asset, partitions, sum(known) if known else None, time.monotonic() - started
    )


def _build(asset: str, partition: str, shop: Shop) -> int | None:
    """Materialise one partition; return the rows it reports, if it does."""
    click.echo(f"  {asset} {'' if partition == WHOLE else partition} ...", err=True)
    with shop.outputs.noting(asset, partition):
        result = shop.defs.resolve_implicit_global_asset_job_def().execute_in_process(
            asset_selection=[dg.AssetKey(asset)],
            partition_key=None if partition == WHOLE else partition,
            instance=shop.instance,
            run_id=_run_id(asset, partition, shop.instance),
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


def _document(results: list[StepResult], *, before: str, after: str) -> Mapping[str, object]:
    return {
        "assets": [
            {"asset": done.asset, "built": done.built, "rows": done.rows} for done in results
        ],
        "changed": before != after,
        "content_sha256": after,
    }


def _summary(results: list[StepResult], *, root: str, changed: bool, started: float) -> str:
    lines = [f"{'asset':<22}{'built':>7}{'rows':>9}{'seconds':>9}"]
    lines += [
        f"{done.asset:<22}{len(done.built):>7}{'' if done.rows is None else done.rows:>9}"
        f"{done.seconds:>9.1f}"
        for done in results
    ]
    verdict = "built what was out of date" if changed else "up to date: not a byte changed"
    lines.append(f"{verdict}; {time.monotonic() - started:.0f} s; data in {root}")
    return "\n".join(lines)
