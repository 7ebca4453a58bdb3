"""A whole toy cluster on this machine: PostgreSQL, Redis, two workers and the daemon."""

import json
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
import yaml
from dagster._core.execution.backfill import PartitionBackfill

from deploy.processes import Machine, Process
from news_platform_tests.cluster import toy
from news_platform_tests.emulators.redis import RedisServer, redis_server

# Planted where settings hold secrets; none may appear in a log, a run or an event.
SECRETS = {
    "NEWS_PLATFORM_S3_SECRET_KEY": "planted-object-store-secret",
    "NEWS_PLATFORM_ALERT_WEBHOOK": "https://hooks.example/planted-webhook-secret",
}
BROKER_SECRET, DATABASE_SECRET = "planted-broker-secret", "planted-database-secret"
DEPLOY = Path(__file__).parents[2] / "deploy"


@dataclass(frozen=True)
class ToyCluster:
    """The running parts, and the folder that the toy asset fills."""

    machine: Machine
    folder: Path
    redis: RedisServer
    workers: tuple[Process, Process]
    daemon: Process
    instance: dg.DagsterInstance

    def backfill(self, keys: Sequence[str]) -> None:
        """Request these partitions as one backfill; the daemon launches its runs."""
        self.instance.add_backfill(
            PartitionBackfill.from_asset_partitions(
                backfill_id="toy",
                asset_graph=toy.defs.resolve_asset_graph(),
                partition_names=list(keys),
                asset_selection=[dg.AssetKey("toy")],
                backfill_timestamp=time.time(),
                tags={},
                dynamic_partitions_store=self.instance,
                all_partitions=False,
                title=None,
                description=None,
                run_config=None,
            )
        )

    def done(self) -> set[str]:
        """Return the partitions whose file is complete."""
        return {path.stem for path in self.folder.glob("*.txt")}

    def found(self) -> dict[str, str]:
        """Return the content of each finished partition."""
        return {path.stem: path.read_text() for path in self.folder.glob("*.txt")}

    def all_text(self) -> str:
        """Return the text of all logs, runs and events."""
        logs = [path.read_text(errors="replace") for path in self.machine.home.glob("*.log")]
        runs = self.instance.get_runs()
        events = [str(entry) for run in runs for entry in self.instance.all_logs(run.run_id)]
        return "\n".join([*logs, *(str((run.run_config, run.tags)) for run in runs), *events])

    def worker_lines(self) -> list[dict[str, object]]:
        """Return the log lines of our own loggers in both workers."""
        lines = [line for one in self.workers for line in one.log.read_text().splitlines()]
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if line["logger"].startswith("news_platform.")]

    def worker_in(self) -> set[str]:
        """Return the workers in the tags of all runs so far."""
        return {run.tags.get("news_platform/worker", "") for run in self.instance.get_runs()}


class LeapingClock:
    """A wall clock that can be set for all processes started after `install`.

    The monotonic clock is not affected, as when an administrator sets the time.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._file = folder / "leap"
        self._library = folder / "leaping_clock.so"
        source = Path(__file__).with_name("leaping_clock.c")
        compiler = ("cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC")
        subprocess.run((*compiler, "-o", str(self._library), str(source)), check=True)
        self._file.write_bytes(struct.pack("q", 0))

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Preload the clock into processes started from now on; it shows the true time at first."""
        patch.setenv("LD_PRELOAD", str(self._library))
        patch.setenv("LEAP_FILE", str(self._file))

    def leap(self, *, days: int) -> None:
        """Set all these clocks to this many days from the true time."""
        with self._file.open("r+b") as leap:
            leap.write(struct.pack("q", days * 86_400))


@contextmanager
def toy_cluster(
    tmp_path: Path, *, postgres_url: str, patch: pytest.MonkeyPatch, seconds: float
) -> Iterator[ToyCluster]:
    """Start every part on its own port; stop each of them at the end."""
    with ExitStack() as parts:
        redis = parts.enter_context(redis_server(tmp_path / "redis", password=BROKER_SECRET))
        folder = tmp_path / "toys"
        folder.mkdir()
        _set_environment(patch, postgres_url, broker=redis.url, folder=folder, seconds=seconds)
        machine = _machine(tmp_path)
        instance = parts.enter_context(dg.DagsterInstance.from_config(str(machine.home)))
        workers = (machine.worker("one"), machine.worker("two"))
        daemon = machine.daemon()
        for process in (*workers, daemon):
            parts.callback(process.stop)
            process.start()
        yield ToyCluster(machine, folder, redis, workers, daemon, instance)


def wait_until(true: Callable[[], bool], *, seconds: float) -> float:
    """Wait until a condition is true; return how long it took, or fail after the timeout."""
    started = time.monotonic()
    while not true():
        if time.monotonic() - started > seconds:
            pytest.fail(f"still not true after {seconds} s")
        time.sleep(0.2)
    return time.monotonic() - started


def _set_environment(
    patch: pytest.MonkeyPatch, postgres_url: str, *, broker: str, folder: Path, seconds: float
) -> None:
    # The server accepts every local connection, so any password works.
    database = sa.make_url(postgres_url).set(password=DATABASE_SECRET)
    patch.setenv(
        "NEWS_PLATFORM_DAGSTER_POSTGRES_URL", database.render_as_string(hide_password=False)
    )
    for name, value in SECRETS.items():
        patch.setenv(name, value)
    patch.setenv("NEWS_PLATFORM_BROKER_URL", broker)
    patch.setenv("NEWS_PLATFORM_LOGS_URL", str(folder / "logs"))
    patch.setenv("NEWS_PLATFORM_REDELIVERY_SECONDS", "15")
    patch.setenv("NEWS_PLATFORM_LOG_FORMAT", "json")
    patch.setenv("TOY_FOLDER", str(folder))
    patch.setenv("TOY_SECONDS", str(seconds))


def _machine(tmp_path: Path) -> Machine:
    home = tmp_path / "home"
    home.mkdir()
    config = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    config["run_monitoring"]["poll_interval_seconds"] = 2
    config["run_launcher"]["config"]["silence_seconds"] = 8.0
    config["concurrency"]["runs"]["tag_concurrency_limits"] = []
    (home / "dagster.yaml").write_text(yaml.safe_dump(config))
    workspace = home / "workspace.yaml"
    location = {"module_name": toy.__name__, "location_name": "toy"}
    workspace.write_text(yaml.safe_dump({"load_from": [{"python_module": location}]}))
    return Machine(home, workspace, os.environ)
