"""docker-compose.yaml under podman, in a network of its own, which reaches nothing outside.

A folder that all containers share, under the same path as here, stands for the object store.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from deploy.graphql import Dagster
from deploy.podman import Podman
from news_platform.errors import NewsPlatformError
from news_platform.sample.world import write_world

HERE = Path(__file__).parent
FOLDER = HERE.parent / ".containers"
DATA = FOLDER / "data"
WORLD = FOLDER / "world"
IMAGE, TAG = "news-platform", "0.3.0"
LOCATION = "news_platform"
PROCESSES = ("daemon", "webserver", "worker")
WORKERS = ("worker_1", "worker_2")
_PROJECT = "news"
_USER = 10001
# Seconds on an idle machine; minutes where dozens of processes share two cores.
_HEALTHY_SECONDS = 600.0
_ENV_FILE = HERE / ".env"
_MADE_HERE = "# Written by a run of the containers; deleted at its end.\n"
_SETTINGS = {
    "POSTGRES_PASSWORD": "demo-postgres",
    "REDIS_PASSWORD": "demo-redis",
    "NEWS_PLATFORM_ROOT": f"{DATA}/root",
    "NEWS_PLATFORM_LOGS_URL": f"{DATA}/logs",
    "NEWS_PLATFORM_SAMPLE": "1",
    "NEWS_PLATFORM_SAMPLE_WORLD": str(WORLD),
    "NEWS_PLATFORM_MAX_CONCURRENT_RUNS": "2",
}


def prepare(podman: Podman) -> None:
    """Make the base images and the sample world once, and the image of this tree."""
    write_world(WORLD)
    podman.make_stand_ins(ca_bundle=os.environ.get("SSL_CERT_FILE"))
    # The registry's certificates are in the stand-in; its clients are told where.
    certificates = "/etc/ssl/certs/ca-certificates.crt"
    words = ["--env", f"SSL_CERT_FILE={certificates}", "--network", "host", "--layers"]
    file = ["--file", str(HERE / "Dockerfile"), "--tag", f"{IMAGE}:{TAG}"]
    podman.run("build", "--quiet", *words, *file, str(HERE.parent))


def run_in_own_network(module: str) -> int:
    """Run `python -m MODULE --inside` where nothing but the containers can be reached."""
    command = f"ip link set lo up; exec {sys.executable} -m {module} --inside"
    return subprocess.run(["unshare", "-n", "sh", "-c", command], check=False).returncode


@dataclass(frozen=True)
class Containers:
    """The running containers of the Compose file; a part is named like `worker_1`."""

    podman: Podman
    dagster: Dagster
    override: Path

    def wait_until_healthy(self, part: str) -> None:
        """Run the healthcheck of a part until it passes; raise if it does not within minutes."""
        deadline = time.monotonic() + _HEALTHY_SECONDS
        while True:
            try:
                self.podman.run("healthcheck", "run", container(part))
            except NewsPlatformError as error:
                if time.monotonic() > deadline:
                    raise NewsPlatformError(f"{part} is not healthy: {error}") from error
                time.sleep(2)
            else:
                return

    def stop(self, part: str) -> None:
        """Send TERM to a part, and wait until it has ended."""
        self.podman.run("stop", "--time", "60", container(part))

    def part_of_worker(self, node: str) -> str:
        """Return the part behind a Celery node such as `celery@0f3c…`."""
        for part in WORKERS:
            name = self.podman.run("inspect", "--format", "{{.Config.Hostname}}", container(part))
            if node.endswith(f"@{name}"):
                return part
        raise NewsPlatformError(f"no worker is called {node!r}")

    def compose(self, *words: str) -> None:
        """Run a command of podman-compose."""
        files = ("-f", str(HERE / "docker-compose.yaml"), "-f", str(self.override))
        program = str(Path(sys.executable).parent / "podman-compose")
        done = subprocess.run(
            (program, "-p", _PROJECT, *files, *words),
            env=self.podman.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NewsPlatformError(
                f"podman-compose {words[0]} failed: {done.stderr.strip()[-500:]}"
            )


def container(part: str) -> str:
    """Return the name of the container of a part."""
    return f"{_PROJECT}_{part}"


@contextmanager
def composed(podman: Podman) -> Iterator[Containers]:
    """Start the containers; stop and remove them and their volumes at the end."""
    shared = {name: {"volumes": [f"{DATA}:{DATA}", f"{WORLD}:{WORLD}:ro"]} for name in PROCESSES}
    override = FOLDER / "override.yaml"
    override.write_text(yaml.safe_dump({"services": shared}))
    _write_settings(_SETTINGS)
    containers = Containers(podman, Dagster("http://127.0.0.1:3000", LOCATION), override)
    try:
        containers.compose("down", "--volumes")  # what a killed run left behind
        containers.compose("up", "--detach")
        containers.dagster.wait_until_up()
        yield containers
    finally:
        containers.compose("down", "--volumes", "--timeout", "10")
        _ENV_FILE.unlink()


def fresh_data() -> Path:
    """Return the shared folder, empty, and owned by the user of the image."""
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    os.chown(DATA, _USER, _USER)
    return DATA


def _write_settings(settings: Mapping[str, str]) -> None:
    if _ENV_FILE.exists() and not _ENV_FILE.read_text().startswith(_MADE_HERE):
        raise NewsPlatformError(f"{_ENV_FILE} exists and would be replaced: move it away")
    lines = (f"{name}={value}\n" for name, value in settings.items())
    _ENV_FILE.write_text(_MADE_HERE + "".join(lines))
