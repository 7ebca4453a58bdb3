"""Build the image, start docker-compose.yaml under podman, and build a day of the sample on it.

`make container-demo` needs root and Debian's podman, runc and mmdebstrap. The containers run in a
network of their own, which reaches nothing outside. A second run uses the images of the first.
"""

import sys
import time

import click

from deploy.containers import (
    FOLDER,
    PROCESSES,
    Containers,
    composed,
    fresh_data,
    prepare,
    run_in_own_network,
)
from deploy.podman import Podman, missing_tools
from news_platform.errors import NewsPlatformError
from news_platform.sample.world import DAYS

_TAKEN_SECONDS = 300.0
_STOP_SECONDS = 30.0


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
    _say("the image ...")
    prepare(podman)
    _say(f"the image is built after {time.monotonic() - started:.0f} s")
    sys.exit(run_in_own_network("deploy.container_demo"))


def _run(podman: Podman) -> None:
    """Start everything, build a day, look at the health, stop a worker while it works, end."""
    started, day = time.monotonic(), str(DAYS[0])
    fresh_data()
    with composed(podman) as containers:
        _say(f"up after {time.monotonic() - started:.0f} s")
        for name in ("postgres", "redis", *PROCESSES):
            containers.wait_until_healthy(f"{name}_1")
            _say(f"{name} is healthy after {time.monotonic() - started:.0f} s")
        backfill = containers.dagster.launch_backfill("raw_news", [day])
        stopped = _stop_worker(containers)
        _say(f"a worker was stopped while it worked, and ended within {stopped:.0f} s")
        containers.dagster.wait_for_backfill(backfill)
        _say(f"raw_news of {day} is built after {time.monotonic() - started:.0f} s")
        if stopped > _STOP_SECONDS:
            raise NewsPlatformError(
                f"a worker took {stopped:.0f} s to stop, expected {_STOP_SECONDS:.0f}"
            )
    click.echo(f"THE CONTAINERS WORK: one day built in {time.monotonic() - started:.0f} s")


def _stop_worker(containers: Containers) -> float:
    """Stop the worker that holds the run; return how long it took to end."""
    busy = _busy_worker(containers)
    started = time.monotonic()
    containers.stop(busy)
    return time.monotonic() - started


def _busy_worker(containers: Containers) -> str:
    """Return the worker that executes the run of the backfill."""
    deadline = time.monotonic() + _TAKEN_SECONDS
    while time.monotonic() < deadline:
        for run in containers.dagster.runs(statuses=["STARTED"]):
            node = run.tags.get("news_platform/worker")
            if node and run.asset == "raw_news":
                return containers.part_of_worker(node)
        time.sleep(0.5)
    raise NewsPlatformError(f"no worker took the run within {_TAKEN_SECONDS:.0f} s")


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NewsPlatformError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
