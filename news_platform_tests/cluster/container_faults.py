"""Backfill ten days on the composed containers while each part is killed and the image upgraded.

The last line says that every dataset equals one machine's, or what differs.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import dagster as dg
import yaml
from pydantic import TypeAdapter

from deploy.compare import Content, differences, read_contents
from deploy.containers import (
    DATA,
    FOLDER,
    HERE,
    IMAGE,
    LOCATION,
    PROCESSES,
    TAG,
    WORKERS,
    WORLD,
    Containers,
    composed,
    fresh_data,
    prepare,
    run_in_own_network,
)
from deploy.graphql import RunInfo
from deploy.podman import Podman
from deploy.ten_days import DAYS, TenDays, write_ten_days
from news_platform.cli.demo import build_all
from news_platform.datasets.dataset import WHOLE
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.errors import NewsPlatformError
from news_platform.sample.world import write_world
from news_platform.settings import load_settings

# How long a part is away, and how long anything may take on a busy machine.
_AWAY_SECONDS = 5.0
_LONGEST_SECONDS = 1800.0
_NEXT_TAG = "next"
_ROUNDS = 3
# One backfill builds both, with a run for each day; the rest follows when all days are there.
_BACKFILLED = ("raw_news", "crawl_articles")
_CODE = "/opt/news-platform"
_WORKSPACE = DATA / "workspace.yaml"
_ONE, _MANY = DATA / "one.json", DATA / "many.json"
_CONTENTS = TypeAdapter(dict[str, Content])
_MODULE = "news_platform_tests.cluster.container_faults"
_STARTED = time.monotonic()


def main(arguments: list[str]) -> None:
    """Build the ten days on one machine and on containers, at the same time; compare them."""
    if arguments:
        {"--one-machine": _on_one_machine, "--inside": _on_containers}[arguments[0]]()
        return
    fresh_data()
    write_world(WORLD)
    write_ten_days(WORLD, DATA / "crawl")
    one = subprocess.Popen((sys.executable, "-m", _MODULE, "--one-machine"))
    podman = Podman.create(FOLDER)
    prepare(podman)
    _tag_next(podman)
    _say("the images are built")
    failed = run_in_own_network(_MODULE) or one.wait()
    if failed:
        sys.exit(1)
    _compare(_read_result(_ONE), _read_result(_MANY))


def _tag_next(podman: Podman) -> None:
    """Build the image of the next version: the same code under another label."""
    recipe = FOLDER / "next"
    recipe.mkdir(exist_ok=True)
    (recipe / "Dockerfile").write_text(
        f"FROM localhost/{IMAGE}:{TAG}\nLABEL org.opencontainers.image.version={_NEXT_TAG}\n"
    )
    podman.run("build", "--quiet", "--tag", f"{IMAGE}:{_NEXT_TAG}", str(recipe))


def _settings(root: Path, **more: str) -> dict[str, str]:
    return {
        "NEWS_PLATFORM_ROOT": str(root),
        "NEWS_PLATFORM_CRAWL_URL": str(DATA / "crawl"),
        # In the run's own process: two processes more for each of the runs would take minutes.
        "NEWS_PLATFORM_WORKERS": "0",
        "NEWS_PLATFORM_SAMPLE": "1",
        "NEWS_PLATFORM_SAMPLE_WORLD": str(WORLD),
        **more,
    }


def _on_one_machine() -> None:
    """Build the ten days in this process, without containers."""
    resources = TenDays(load_settings(_settings(DATA / "one")), frozen_clock=True)
    for _ in build_all(resources):
        pass
    _write_result(_ONE, resources)
    _say("one machine has built its ten days")


def _on_containers() -> None:
    """Build the same on containers that fail."""
    location = {
        "module_name": "deploy.ten_days_location",
        "location_name": LOCATION,
        "working_directory": _CODE,
    }
    _WORKSPACE.write_text(yaml.safe_dump({"load_from": [{"python_module": location}]}))
    # One slot more than a backfill may take, which leaves it both workers.
    settings = _settings(DATA / "root", NEWS_PLATFORM_MAX_CONCURRENT_RUNS="3")
    podman = Podman.create(FOLDER)
    with composed(podman, settings=settings, services=_services()) as containers:
        _say("the containers are up")
        _backfill_with_faults(containers)
        _build_rest(containers)


def _services() -> dict[str, dict[str, object]]:
    """Return what differs from docker-compose.yaml: the code location, which is mounted."""
    mounted = {"volumes": [f"{HERE}:{_CODE}/deploy:ro"], "environment": {"PYTHONPATH": _CODE}}
    commands = yaml.safe_load((HERE / "docker-compose.yaml").read_text())["services"]
    services: dict[str, dict[str, object]] = {}
    for name in PROCESSES:
        words = [
            str(_WORKSPACE) if word == "deploy/workspace.yaml" else word
            for word in commands[name]["command"]
        ]
        services[name] = {**mounted, "command": words}
    return services


def _backfill_with_faults(containers: Containers) -> None:
    """Backfill the ten days; after every other day something else goes wrong."""
    dagster = containers.dagster
    keys = [str(day) for day in DAYS]
    backfill = dagster.launch_backfill(_BACKFILLED[0], keys, with_assets=_BACKFILLED[1:])
    faults: tuple[tuple[str, Callable[[], None]], ...] = (
        ("a busy worker", lambda: _kill(containers, _busy_worker(containers))),
        ("the daemon", lambda: _kill(containers, "daemon_1")),
        ("the image", lambda: _upgrade(containers)),
        ("PostgreSQL", lambda: _kill(containers, "postgres_1")),
        ("Redis", lambda: _kill(containers, "redis_1")),
    )
    for number, (name, fault) in enumerate(faults):
        _wait(partial(_is_working, containers, days=2 * number))
        _say(f"{len(_built(containers))} days are built; {name} goes")
        fault()
    _wait(lambda: len(_built(containers)) == len(DAYS))
    _say(f"all days are built; backfill {backfill}")


def _is_working(containers: Containers, *, days: int) -> bool:
    """Return whether that many days are built and a worker executes a run."""
    return len(_built(containers)) >= days and bool(_started(containers))


def _kill(containers: Containers, part: str) -> None:
    """Kill a part, and start it again a little later, as its supervisor would."""
    containers.kill(part)
    time.sleep(_AWAY_SECONDS)
    containers.start(part)


def _upgrade(containers: Containers) -> None:
    """Bring every process of ours to the next image, while a run is executed."""
    containers.upgrade(_NEXT_TAG)
    for part in ("daemon_1", "webserver_1", *WORKERS):
        if not (found := containers.image(part)).endswith(f"{IMAGE}:{_NEXT_TAG}"):
            raise NewsPlatformError(f"{part} still runs {found!r} after the upgrade")


def _busy_worker(containers: Containers) -> str:
    nodes = (run.tags.get("news_platform/worker", "") for run in _started(containers))
    return containers.part_of_worker(next(nodes))


def _built(containers: Containers) -> set[str]:
    """Return the days of which a run has succeeded; a run of a backfill states a range of one."""
    done = (run for run in _runs(containers, "SUCCESS") if "raw_news" in run.asset)
    return {run.tags["dagster/asset_partition_range_end"] for run in done}


def _started(containers: Containers) -> list[RunInfo]:
    return [run for run in _runs(containers, "STARTED") if "news_platform/worker" in run.tags]


def _runs(containers: Containers, status: str) -> list[RunInfo]:
    """Return runs; none while the webserver or its database is away."""
    try:
        return containers.dagster.runs(statuses=[status])
    except (NewsPlatformError, OSError, ValueError):
        return []


def _build_rest(containers: Containers) -> None:
    """Build what follows the days."""
    server = containers.address("postgres_1")
    ledger = f"postgresql+psycopg2://platform:demo-postgres@{server}/ledger"
    settings = _settings(DATA / "root", NEWS_PLATFORM_LEDGER_URL=ledger)
    resources = TenDays(load_settings(settings), frozen_clock=True)
    for step in BUILD_ORDER:
        _build(step, resources, containers)
    _write_result(_MANY, resources)


def _build(step: RebuildRule, resources: TenDays, containers: Containers) -> None:
    """Build the stale partitions of an asset, in as many rounds as its sensor would need.

    Days that are built side by side may each need the other first.
    """
    for _ in range(_ROUNDS):
        keys = sorted(step.stale(resources))
        if not keys:
            return
        if step.asset in _BACKFILLED:
            raise NewsPlatformError(f"the backfill left {step.asset} of {keys} undone")
        _run_once(step, keys, containers)
    if left := sorted(step.stale(resources)):
        raise NewsPlatformError(f"{step.asset} is stale after {_ROUNDS} rounds: {left}")


def _run_once(step: RebuildRule, keys: list[str], containers: Containers) -> None:
    if keys == [WHOLE]:
        containers.dagster.materialize(step.asset)
    else:
        if isinstance(step.partitions, dg.DynamicPartitionsDefinition):
            containers.dagster.add_partitions(str(step.partitions.name), keys)
        containers.dagster.backfill(step.asset, keys, is_built=lambda: True)
    _say(f"{step.asset} is built: {', '.join(keys)}")


def _write_result(file: Path, resources: TenDays) -> None:
    found = read_contents(resources.data_root.store, resources.ledger.engine)
    resources.ledger.close()
    file.write_bytes(_CONTENTS.dump_json(found))


def _read_result(file: Path) -> dict[str, Content]:
    return _CONTENTS.validate_json(file.read_bytes())


def _compare(one: dict[str, Content], many: dict[str, Content]) -> None:
    if different := differences(one, many):
        raise NewsPlatformError(f"different from one machine: {', '.join(different)}")
    rows = sum(content.rows for content in many.values())
    seconds = time.monotonic() - _STARTED
    click.echo(f"THE SAME: {len(many)} datasets, {rows} rows, {seconds:.0f} s")


def _wait(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not is_true():
        if time.monotonic() > deadline:
            raise NewsPlatformError(f"still waiting after {_LONGEST_SECONDS:.0f} s")
        time.sleep(2)


def _say(text: str) -> None:
    click.echo(f"{time.monotonic() - _STARTED:>6.0f} s  {text}", err=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NewsPlatformError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
