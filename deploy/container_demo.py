"""Build the image, start docker-compose.yaml under podman, and build a day of the sample on it.

`make container-demo` needs root and Debian's podman, runc and mmdebstrap. The containers run in a
network of their own, which reaches nothing outside. A second run uses the images of the first.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import yaml

from deploy.graphql import Dagster
from deploy.podman import Podman, missing_tools
from news_platform.errors import NewsPlatformError

HERE = Path(__file__).parent
FOLDER = HERE.parent / ".containers"
IMAGE = "news-platform:0.2.0"
PROJECT = "news"
LOCATION = "news_platform"
_USER = 10001
_START_SECONDS = 120.0
_PROCESSES = ("daemon", "webserver", "worker")
_SETTINGS = """POSTGRES_PASSWORD=demo-postgres
REDIS_PASSWORD=demo-redis
NEWS_PLATFORM_ROOT=/data/root
NEWS_PLATFORM_LOGS_URL=/data/logs
NEWS_PLATFORM_SAMPLE=1
NEWS_PLATFORM_SAMPLE_WORLD=/data/world
NEWS_PLATFORM_MAX_CONCURRENT_RUNS=2
"""
# Puts the example's inputs where an operator's uploads would be.
_PLACE_INPUTS = """
import os
from news_platform.sample.resources import SampleResources
from news_platform.sample.world import place_inputs
from news_platform.settings import load_settings
resources = SampleResources(load_settings(os.environ), frozen_clock=True)
place_inputs(resources.world.folder, resources.data_root.store)
print(resources.partition_days[0])
"""


def main(arguments: list[str]) -> None:
    """Build the images, then run the demo in a network of its own."""
    if lacking := missing_tools():
        click.echo(f"SKIPPED: container-demo needs {', '.join(lacking)}")
        return
    podman = Podman.create(FOLDER)
    if arguments == ["--inside"]:
        _run(podman)
        return
    started = time.monotonic()
    _say("stand-ins for the base images ...")
    podman.make_stand_ins(ca_bundle=os.environ.get("SSL_CERT_FILE"))
    _say("the image ...")
    _build(podman)
    _say(f"  {time.monotonic() - started:.0f} s")
    command = f"ip link set lo up; exec {sys.executable} -m deploy.container_demo --inside"
    done = subprocess.run(["unshare", "-n", "sh", "-c", command], check=False)
    sys.exit(done.returncode)


def _build(podman: Podman) -> None:
    # The registry's certificates are in the stand-in; its clients are told where.
    certificates = "/etc/ssl/certs/ca-certificates.crt"
    words = ["--env", f"SSL_CERT_FILE={certificates}", "--network", "host"]
    file = ["--file", str(HERE / "Dockerfile")]
    podman.run("build", "--quiet", *words, *file, "--tag", IMAGE, str(HERE.parent))


def _run(podman: Podman) -> None:
    """Start everything, build a day, look at the health, stop a worker while it works, end."""
    started = time.monotonic()
    with _composed(podman) as dagster:
        _say(f"up after {time.monotonic() - started:.0f} s")
        day = podman.run("exec", f"{PROJECT}_daemon_1", "python", "-c", _PLACE_INPUTS)
        for name in ("postgres", "redis", *_PROCESSES):
            podman.run("healthcheck", "run", f"{PROJECT}_{name}_1")
        _say("all healthchecks pass")
        backfill = dagster.launch_backfill("raw_news", [day])
        _say(f"raw_news of {day} ...")
        stopped = _stop_worker(podman)
        _say(f"a worker was stopped while it worked, and ended within {stopped:.0f} s")
        dagster.wait_for_backfill(backfill)
        _say(f"raw_news of {day} is built after {time.monotonic() - started:.0f} s")
        if stopped > 30:
            raise NewsPlatformError(f"a worker took {stopped:.0f} s to stop, expected 30")
    click.echo(f"THE CONTAINERS WORK: one day built in {time.monotonic() - started:.0f} s")


def _stop_worker(podman: Podman) -> float:
    """Stop the worker that holds the run; return how long it took to end."""
    busy = _busy_worker(podman)
    started = time.monotonic()
    podman.run("stop", "--time", "60", busy)
    return time.monotonic() - started


def _busy_worker(podman: Podman) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for number in (1, 2):
            if _is_busy(podman, name := f"{PROJECT}_worker_{number}"):
                return name
        time.sleep(0.2)
    raise NewsPlatformError(f"no worker took the run within {_START_SECONDS:.0f} s")


def _is_busy(podman: Podman, name: str) -> bool:
    """Return whether the worker has processes of ours that parse foreign bytes."""
    return "isolation.worker" in podman.run("top", name, "args", check=False)


@contextmanager
def _composed(podman: Podman) -> Iterator[Dagster]:
    """Start the containers; stop and remove them and their volumes at the end."""
    shutil.rmtree(FOLDER / "data", ignore_errors=True)
    data = FOLDER / "data"
    data.mkdir()
    os.chown(data, _USER, _USER)
    override = FOLDER / "override.yaml"
    # The demo shares one folder instead of an object store.
    shared = {name: {"volumes": [f"{data}:/data"]} for name in _PROCESSES}
    override.write_text(yaml.safe_dump({"services": shared}))
    settings = HERE / ".env"
    if settings.exists():
        raise NewsPlatformError(f"{settings} exists: the demo would replace it; move it away")
    settings.write_text(_SETTINGS)
    try:
        _compose(podman, override, "down", "--volumes")  # what a killed demo left behind
        _compose(podman, override, "up", "--detach")
        dagster = Dagster("http://127.0.0.1:3000", LOCATION)
        dagster.wait_until_up()
        yield dagster
    finally:
        _compose(podman, override, "down", "--volumes", "--timeout", "10")
        settings.unlink()


def _compose(podman: Podman, override: Path, *words: str) -> None:
    files = ("-f", str(HERE / "docker-compose.yaml"), "-f", str(override))
    command = (str(Path(sys.executable).parent / "podman-compose"), "-p", PROJECT, *files, *words)
    done = subprocess.run(command, env=podman.environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NewsPlatformError(f"podman-compose {words[0]} failed: {done.stderr.strip()[-500:]}")


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NewsPlatformError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
