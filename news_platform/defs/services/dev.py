"""Run one code server, the UI, the daemon and the explorer until interrupted or until one ends.

`python -m news_platform.defs.services.dev` does what `dagster dev` does, with our webserver:
`dagster dev` starts Dagster's own, which answers every Host header.
"""

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import click
from dagster import DagsterInstance
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.interrupts import setup_interrupt_handlers
from dagster._utils.log import configure_loggers
from dagster_shared.ipc import get_ipc_shutdown_pipe, send_ipc_shutdown_message

from news_platform.defs.housekeeping import adopt
from news_platform.errors import NewsPlatformError
from news_platform.resources import open_resources, store_options
from news_platform.settings import load_settings
from news_platform.storage.commit.root import read_world
from news_platform.storage.objects.store import open_store

_STOP_SECONDS = 60.0
# The explorer has nothing to finish.
_STOP_EXPLORER_SECONDS = 8.0
_LOOK_SECONDS = 1.0
_WEBSERVER = "news_platform.defs.services.webserver"
# Started by its name: the explorer does not need Dagster, nor Dagster the explorer.
_EXPLORER = ("news_platform.cli", "serve")
_LOG = logging.getLogger("dagster")
_Processes: TypeAlias = "dict[str, subprocess.Popen[bytes]]"


@click.command(context_settings={"help_option_names": ["--help"]})
@click.option("--host", "-h", default="127.0.0.1", show_default=True, help="Address of the UI.")
@click.option("--port", "-p", default=3000, show_default=True, help="Port of the UI.")
@click.option("--workspace", "-w", required=True, help="Workspace file.")
@click.option("--server-port", type=int, help="Port of the explorer; without it there is none.")
@click.option("--terminal", type=int, default=2, help="Descriptor for --addresses and the end.")
@click.option("--addresses", default="", help="What to print when all services answer.")
def run_services(
    host: str,
    port: int,
    workspace: str,
    server_port: int | None,
    terminal: int,
    addresses: str,
) -> None:
    """Start all services, and stop them on Ctrl-C or TERM; exit with 1 if one ends by itself."""
    lines = dagster_log_format(load_settings(os.environ).logs.format)
    configure_loggers(formatter=lines, log_level="INFO")
    setup_interrupt_handlers()  # TERM ends it as Ctrl-C does
    ended: str | None = None
    _adopt_root()
    with contextlib.suppress(KeyboardInterrupt), _code_server(workspace) as served:
        commands = {
            "webserver": [_WEBSERVER, "-h", host, "-p", str(port), "-w", served],
            "daemon": ["dagster._daemon", "run", "-w", served, "--log-format", lines],
        }
        if server_port is not None:
            commands["explorer"] = [*_EXPLORER, "--host", host, "--port", str(server_port)]
        with _running(commands, terminal) as processes:
            ended = _wait_until_ready(processes, host, [port, server_port or port])
            if ended is None:
                os.write(terminal, f"{addresses}\n".encode())
                ended = _first_to_end(processes)
    if ended:
        os.write(terminal, f"error: {ended}\n".encode())
        sys.exit(1)


def _adopt_root() -> None:
    """Tell a new home what the root holds: else everything would show as missing."""
    settings = load_settings(os.environ)
    with DagsterInstance.get() as instance:
        if instance.get_asset_keys(limit=1):
            return
        try:
            if read_world(open_store(settings.root, options=store_options(settings))) is not None:
                done = adopt(open_resources(settings), instance)
                _LOG.info("Reported %d stored partitions to a new home", done.materializations)
        except NewsPlatformError as error:
            _LOG.warning("Cannot report what the root holds: %s", error)


def dagster_log_format(form: str) -> str:
    """Return the name that Dagster has for a format of ours, for its own services."""
    return "json" if form == "json" else "colored"


@contextlib.contextmanager
def _code_server(workspace: str) -> Iterator[str]:
    """Load the definitions once, in a process that is restarted if it dies; give its workspace."""
    with (
        DagsterInstance.get() as instance,
        ProxyServerManager(
            instance,
            workspace_load_target=WorkspaceFileTarget([workspace]),
            code_server_log_level="warning",
        ) as servers,
        tempfile.TemporaryDirectory() as folder,
    ):
        file = Path(folder) / "workspace.yaml"
        specs = {"load_from": servers.get_code_server_specs()}
        file.write_text(json.dumps(specs), encoding="utf-8")  # JSON is YAML too
        yield str(file)


@contextlib.contextmanager
def _running(commands: dict[str, list[str]], terminal: int) -> Iterator[_Processes]:
    """Start Python modules that are told to end by a pipe, as Dagster's own services are."""
    processes: _Processes = {}
    pipes: list[int] = []
    try:
        for name, words in commands.items():
            read_end, write_end = get_ipc_shutdown_pipe()
            command = [sys.executable, "-m", *words, "--shutdown-pipe", str(read_end)]
            processes[name] = subprocess.Popen(command, pass_fds=[read_end])
            pipes.append(write_end)
        yield processes
    finally:
        os.write(terminal, b"stopping\n")
        for write_end in pipes:
            send_ipc_shutdown_message(write_end)
        # The explorer first: it must not wait for the others.
        for name in sorted(processes, key=lambda it: it != "explorer"):
            _wait(name, processes[name])


def _wait(name: str, process: "subprocess.Popen[bytes]") -> None:
    seconds = _STOP_EXPLORER_SECONDS if name == "explorer" else _STOP_SECONDS
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        _LOG.warning("The %s did not end within %.0f s: killing it", name, seconds)
        process.kill()


def _wait_until_ready(processes: _Processes, host: str, ports: list[int]) -> str | None:
    """Return when all ports answer, or what ended before."""
    while not all(_answers(host, port) for port in ports):
        if ended := _ended(processes):
            return ended
        time.sleep(_LOOK_SECONDS)
    return None


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_LOOK_SECONDS).close()
    except OSError:
        return False
    return True


def _first_to_end(processes: _Processes) -> str:
    while (ended := _ended(processes)) is None:
        time.sleep(_LOOK_SECONDS)
    return ended


def _ended(processes: _Processes) -> str | None:
    for name, process in processes.items():
        if (code := process.poll()) is not None:
            return f"the {name} ended by itself with exit code {code}"
    return None


if __name__ == "__main__":
    run_services()
