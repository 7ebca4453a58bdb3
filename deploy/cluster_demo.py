"""`make cluster-demo`: the sample through a cluster on this machine, compared with one machine.

Starts PostgreSQL, Redis, an S3 emulator, the webserver, the daemon and two workers, backfills the
graph through them, and ends with one line: the same, or what differs.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import dagster as dg
import yaml

from deploy.compare import Content, differences, read_contents
from deploy.graphql import Dagster, RunInfo
from deploy.processes import Machine
from news_platform.definitions import build_definitions
from news_platform.defs.graph import STEPS
from news_platform.defs.reconcile import WHOLE, add_partitions
from news_platform.defs.steps import Step
from news_platform.doors import Doors
from news_platform.errors import NewsPlatformError
from news_platform.sample.inputs import place_inputs
from news_platform.settings import load_settings
from news_platform_tests.emulators.postgres import new_database, postgres_server
from news_platform_tests.emulators.redis import free_port, redis_server
from news_platform_tests.emulators.s3 import new_bucket, s3_server

HERE = Path(__file__).parent
LOCATION = "news_platform"
WORKERS = ("one", "two")
_WORKER_TAG = "news_platform/worker"


@dataclass(frozen=True)
class DemoCluster:
    """The running cluster: its webserver, its doors for reading, and Dagster's storage."""

    dagster: Dagster
    doors: Doors
    instance: dg.DagsterInstance
    defs: dg.Definitions


def main() -> None:
    """Run the demo; exit with 1 when any dataset differs or a worker had nothing to do."""
    started = time.monotonic()
    with TemporaryDirectory(prefix="news-platform-cluster-") as name:
        folder = Path(name)
        one = _one_machine(folder)
        with _cluster(folder) as cluster:
            for step in STEPS:
                _run_step(step, cluster)
            runs = cluster.dagster.runs()
            many = read_contents(cluster.doors.data_root.store, cluster.doors.ledger.engine)
    _show_runs(runs)
    _show_contents(one, many)
    _end(differences(one, many), runs, seconds=time.monotonic() - started)


def _one_machine(folder: Path) -> dict[str, Content]:
    """Run `news-platform demo` in a process of its own and read what it built."""
    _say("the sample on one machine ...")
    environ = {**os.environ, "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world")}
    environ.pop("DAGSTER_HOME", None)
    command = "from news_platform.cli.main import run; run()"
    root = folder / "one"
    arguments = (sys.executable, "-c", command, "demo", "--root", str(root), "--json")
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True)
    if done.returncode != 0:
        raise NewsPlatformError(f"the demo on one machine failed: {done.stderr.strip()[-500:]}")
    doors = Doors(replace(load_settings(environ), root=str(root), sample=True), frozen_clock=True)
    contents = read_contents(doors.data_root.store, doors.ledger.engine)
    doors.ledger.close()
    return contents


@contextmanager
def _cluster(folder: Path) -> Iterator[DemoCluster]:
    """Start every part on loopback, and stop each by its own process."""
    _say("starting PostgreSQL, Redis, S3, webserver, daemon and two workers ...")
    with ExitStack() as parts:
        environ = _environment(folder, parts)
        os.environ.update(environ)  # dagster.yaml names them, and this process opens it too
        machine = _machine(folder, environ)
        port = free_port()
        workers = tuple(machine.worker(name) for name in WORKERS)
        for process in (*workers, machine.daemon(), machine.webserver(port)):
            parts.callback(process.stop)
            process.start()
        doors = Doors(load_settings(environ), frozen_clock=True)
        place_inputs(doors.data_root.world, doors.data_root.store)
        instance = parts.enter_context(dg.DagsterInstance.from_config(str(machine.home)))
        dagster = Dagster(f"http://127.0.0.1:{port}", LOCATION)
        dagster.wait_until_up()
        yield DemoCluster(dagster, doors, instance, build_definitions(doors))
        doors.ledger.close()


def _environment(folder: Path, parts: ExitStack) -> dict[str, str]:
    postgres = parts.enter_context(postgres_server())
    redis = parts.enter_context(redis_server(folder / "redis"))
    s3 = parts.enter_context(s3_server())
    return {
        **os.environ,
        "NEWS_PLATFORM_ROOT": f"s3://{new_bucket(s3)}/root",
        "NEWS_PLATFORM_SAMPLE": "1",
        "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world"),
        "NEWS_PLATFORM_S3_ENDPOINT": s3,
        "NEWS_PLATFORM_S3_ACCESS_KEY": "demo-key",
        "NEWS_PLATFORM_S3_SECRET_KEY": "demo-secret",
        "NEWS_PLATFORM_ALLOW_HTTP": "1",
        "NEWS_PLATFORM_LEDGER_URL": new_database(postgres),
        "NEWS_PLATFORM_DAGSTER_POSTGRES_URL": new_database(postgres),
        "NEWS_PLATFORM_BROKER_URL": redis.url,
    }


def _machine(folder: Path, environ: Mapping[str, str]) -> Machine:
    home = folder / "home"
    home.mkdir()
    config = yaml.safe_load((HERE / "dagster.yaml").read_text())
    # Nothing but the backfill runs here: it may have both workers.
    config["concurrency"]["runs"]["tag_concurrency_limits"] = []
    (home / "dagster.yaml").write_text(yaml.safe_dump(config))
    workspace = home / "workspace.yaml"
    location = {"module_name": "deploy.sample_location", "location_name": LOCATION}
    workspace.write_text(yaml.safe_dump({"load_from": [{"python_module": location}]}))
    return Machine(home, workspace, environ)


def _run_step(step: Step, cluster: DemoCluster) -> None:
    """Build what is out of date of one asset: as a backfill, or as one run."""
    started = time.monotonic()
    keys = tuple(step.stale(cluster.doors))
    if keys == (WHOLE,):
        cluster.dagster.materialise(step.asset)
    elif keys:
        add_partitions(cluster.instance, cluster.defs, step.asset, keys)
        cluster.dagster.backfill(step.asset, keys, is_built=lambda: not step.stale(cluster.doors))
    _say(f"  {step.asset:<24}{len(keys):>4} partitions {time.monotonic() - started:>6.1f} s")


def _show_runs(runs: list[RunInfo]) -> None:
    _say(f"{'asset':<26}{'partition':<26}{'worker':<12}status")
    for run in reversed(runs):
        tags = run.tags
        worker = tags.get(_WORKER_TAG, "nobody")
        partition = tags.get("dagster/partition", tags.get("dagster/asset_partition_range_end", ""))
        _say(f"{run.asset:<26}{partition:<26}{worker:<12}{run.status}")


def _show_contents(one: Mapping[str, Content], many: Mapping[str, Content]) -> None:
    _say(f"{'dataset':<32}{'one machine':>12}{'cluster':>10}  same rows")
    for name in sorted({*one, *many}):
        left, right = one.get(name), many.get(name)
        counts = f"{left.rows if left else 0:>12}{right.rows if right else 0:>10}"
        _say(f"{name:<32}{counts}  {'yes' if left == right else 'NO'}")


def _end(different: list[str], runs: list[RunInfo], *, seconds: float) -> None:
    work = Counter(run.tags.get(_WORKER_TAG) for run in runs if run.status == "SUCCESS")
    idle = [name for name in WORKERS if work[f"{name}@local"] == 0]
    if different or idle:
        faults = [f"differs: {', '.join(different)}"] if different else []
        faults += [f"worker {name} ran nothing" for name in idle]
        click.echo(f"NOT THE SAME after {seconds:.0f} s: {'; '.join(faults)}")
        sys.exit(1)
    shares = " and ".join(str(work[f"{name}@local"]) for name in WORKERS)
    click.echo(
        f"THE SAME: every dataset equals one machine's; workers ran {shares} runs; {seconds:.0f} s"
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    main()
