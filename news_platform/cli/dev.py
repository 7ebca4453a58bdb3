"""`news-platform dev`, `pause` and `resume`: run and control the automation of a root."""

import os
import sys
from pathlib import Path

import click

from news_platform.cli.options import (
    emit,
    json_option,
    refuse_taken_port,
    resources_for,
    root_option,
    settings_for,
)
from news_platform.errors import ConfigError
from news_platform.resources import open_resources
from news_platform.settings import ROOT_VARIABLE, Settings, server_addresses
from news_platform.storage.commit import root as roots
from news_platform.storage.commit.root import RootAccess
from news_platform.web.allowed_hosts import allowed_names

HOST = "127.0.0.1"
# Started by its name: this package does not import Dagster.
_SERVICES = "news_platform.defs.services.dev"
# The same location name as in all our workspace files: sensors keep their state under it.
_WORKSPACE = """load_from:
  - python_module:
      module_name: news_platform.definitions
      location_name: news_platform
"""


@click.command()
@click.option(
    "--port",
    default=3000,
    type=click.IntRange(1, 65_535),
    show_default=True,
    help="Port of the UI on 127.0.0.1.",
)
@click.option(
    "--server-port",
    default=8000,
    type=click.IntRange(1, 65_535),
    show_default=True,
    help="Port of the explorer on 127.0.0.1.",
)
@root_option
def dev(root: str, port: int, server_port: int) -> None:
    """Start the Dagster UI, its daemon and the explorer on 127.0.0.1 until interrupted."""
    settings = settings_for(root)
    home = _dagster_home(settings)
    _refuse_wrong_hosts(settings)
    refuse_taken_port(HOST, port, cure="choose another port with `make dev PORT=3001`")
    cure = "choose another port with `make dev SERVER_PORT=8001`"
    refuse_taken_port(HOST, server_port, cure=cure)
    store = open_resources(settings).data_root.store
    click.echo(f"http://{HOST}:{port} over {store.url}", err=True)
    click.echo(f"http://{HOST}:{server_port} search, articles, domains, AI policies", err=True)
    absolute = str(store.local_folder) if store.local_folder else root
    workspace = home / "workspace.yaml"
    workspace.write_text(_WORKSPACE, encoding="utf-8")
    services = ["-m", _SERVICES, "-h", HOST, "-p", str(port), "-w", str(workspace)]
    services += ["--server-port", str(server_port)]
    quiet = {
        # Dagster warns about its own beta features, which users of the graph cannot change.
        "PYTHONWARNINGS": "ignore",
        "DAGSTER_IS_DEV_CLI": "1",
        # The two link to each other, unless they are known by other names.
        **server_addresses(f"http://{HOST}:{port}", f"http://{HOST}:{server_port}"),
        **os.environ,
    }
    os.execve(sys.executable, [sys.executable, *services], {**quiet, ROOT_VARIABLE: absolute})


def _dagster_home(settings: Settings) -> Path:
    home = settings.dagster_home
    if home is None or not Path(home).is_dir():
        raise ConfigError(
            f"DAGSTER_HOME={home!r} is not a folder: run `make dev`, or set it to an "
            "absolute folder that contains our dagster.yaml"
        )
    return Path(home)


def _refuse_wrong_hosts(settings: Settings) -> None:
    try:
        allowed_names(settings.ui.allowed_hosts)
    except ConfigError as error:
        raise ConfigError(f"NEWS_PLATFORM_ALLOWED_HOSTS: {error}") from error


@click.command()
@root_option
@json_option
def pause(root: str, as_json: bool) -> None:
    """Pause all sensors until `resume`; runs in progress continue."""
    store = resources_for(root, RootAccess.WRITE).data_root.store
    roots.pause(store)
    emit({"root": store.url, "paused": True}, as_json=as_json, text=f"paused: {store.url}")


@click.command()
@root_option
@json_option
def resume(root: str, as_json: bool) -> None:
    """Start all paused sensors again."""
    store = resources_for(root, RootAccess.WRITE).data_root.store
    roots.resume(store)
    emit({"root": store.url, "paused": False}, as_json=as_json, text=f"resumed: {store.url}")
