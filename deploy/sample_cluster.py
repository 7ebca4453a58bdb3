"""Run the sample world on one machine, and on a whole cluster on this machine.

`make cluster-demo` compares the two; the long fault runs inject faults into the cluster.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import yaml

from deploy.compare import Content, read_contents
from deploy.graphql import Dagster
from deploy.processes import Machine, Process
from news_platform.definitions import build_definitions
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import load_settings
from news_platform_tests.emulators.postgres import new_database, postgres_server
from news_platform_tests.emulators.redis import RedisServer, free_port, redis_server
from news_platform_tests.emulators.s3 import new_bucket, s3_server

HERE = Path(__file__).parent
LOCATION = "news_platform"
WORKERS = ("one", "two")
# Maps the URL of the object store to the one that the cluster uses, such as that of a fault proxy.
StoreProxy = Callable[[str], AbstractContextManager[str]]


@dataclass(frozen=True)
class SampleCluster:
    """The running cluster: its webserver, resources, Dagster storage and processes."""

    dagster: Dagster
    resources: Resources
    instance: dg.DagsterInstance
    defs: dg.Definitions
    redis: RedisServer
    processes: Mapping[str, Process]


def run_on_one_machine(folder: Path) -> dict[str, Content]:
    """Run `news-platform demo` in a separate process and return the content it built."""
    environ = {**os.environ, "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world")}
    environ.pop("DAGSTER_HOME", None)
    command = "from news_platform.cli.main import run; run()"
    root = folder / "one"
    arguments = (sys.executable, "-c", command, "demo", "--root", str(root), "--json")
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True)
    if done.returncode != 0:
        raise NewsPlatformError(f"the demo on one machine failed: {done.stderr.strip()[-500:]}")
    resources = SampleResources(
        load_settings(environ).model_copy(update={"root": str(root)}), frozen_clock=True
    )
    contents = read_contents(resources.data_root.store, resources.ledger.engine)
    resources.ledger.close()
    return contents


@contextmanager
def sample_cluster(
    folder: Path, *, store_proxy: StoreProxy = nullcontext
) -> Iterator[SampleCluster]:
    """Start every part on loopback; stop each of them at the end."""
    with ExitStack() as parts:
        postgres = parts.enter_context(postgres_server())
        redis = parts.enter_context(redis_server(folder / "redis"))
        s3 = parts.enter_context(s3_server())
        environ = {
            **os.environ,
            **_store_settings(parts.enter_context(store_proxy(s3)), bucket=new_bucket(s3)),
            "NEWS_PLATFORM_SAMPLE": "1",
            "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world"),
            "NEWS_PLATFORM_LEDGER_URL": new_database(postgres),
            "NEWS_PLATFORM_DAGSTER_POSTGRES_URL": new_database(postgres),
            "NEWS_PLATFORM_BROKER_URL": redis.url,
        }
        parts.callback(_set_environ, dict(os.environ))
        _set_environ(environ)  # dagster.yaml refers to them, and this process opens it too
        port = free_port()
        machine = _machine(folder, environ)
        processes = _start(machine, port, parts)
        resources = SampleResources(load_settings(environ), frozen_clock=True)
        place_inputs(resources.world.folder, resources.data_root.store)
        instance = parts.enter_context(dg.DagsterInstance.from_config(str(machine.home)))
        dagster = Dagster(f"http://127.0.0.1:{port}", LOCATION)
        dagster.wait_until_up()
        yield SampleCluster(
            dagster,
            resources,
            instance,
            build_definitions(resources),
            redis=redis,
            processes=processes,
        )
        resources.ledger.close()


def _store_settings(url: str, *, bucket: str) -> dict[str, str]:
    return {
        "NEWS_PLATFORM_ROOT": f"s3://{bucket}/root",
        "NEWS_PLATFORM_LOGS_URL": f"s3://{bucket}/logs",
        "NEWS_PLATFORM_S3_ENDPOINT": url,
        "NEWS_PLATFORM_S3_ACCESS_KEY": "demo-key",
        "NEWS_PLATFORM_S3_SECRET_KEY": "demo-secret",
        "NEWS_PLATFORM_ALLOW_HTTP": "1",
    }


def _set_environ(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)


def _start(machine: Machine, port: int, parts: ExitStack) -> dict[str, Process]:
    workers = [machine.worker(name) for name in WORKERS]
    processes = [*workers, machine.daemon(), machine.webserver(port)]
    for process in processes:
        parts.callback(process.stop)
        process.start()
    return {process.name: process for process in processes}


def _machine(folder: Path, environ: Mapping[str, str]) -> Machine:
    home = folder / "home"
    home.mkdir()
    config = yaml.safe_load((HERE / "dagster.yaml").read_text())
    # Only the backfill runs here, so it may use both workers.
    config["concurrency"]["runs"]["tag_concurrency_limits"] = []
    (home / "dagster.yaml").write_text(yaml.safe_dump(config))
    workspace = home / "workspace.yaml"
    location = {"module_name": "deploy.sample_location", "location_name": LOCATION}
    workspace.write_text(yaml.safe_dump({"load_from": [{"python_module": location}]}))
    return Machine(home, workspace, environ)
