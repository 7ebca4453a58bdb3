"""Start the real webserver and daemon on a root, ask them by GraphQL, and stop them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from news_platform.composition.home import make_home
from news_platform.settings import Settings

PROJECT = Path(__file__).parent.parent.parent
READY_SECONDS = 120
WEBSERVER = "news_platform.defs.services.webserver"
_LOCATIONS = """{ workspaceOrError { ... on Workspace {
    locationEntries { locationOrLoadError { __typename } } } } }"""


@dataclass(frozen=True, slots=True)
class DagsterUi:
    """A running Dagster: where it answers, and where its state lies."""

    url: str
    home: Path

    def query(self, graphql: str, **variables: object) -> dict[str, object]:
        """Ask by GraphQL; an error in the answer is an error here."""
        body = json.dumps({"query": graphql, "variables": variables}).encode()
        request = urllib.request.Request(
            f"{self.url}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            document = json.load(answer)
        assert "errors" not in document, document["errors"]
        data = document["data"]
        assert isinstance(data, dict)
        return data


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port


@contextlib.contextmanager
def running_ui(home: Path, environ: Mapping[str, str]) -> Iterator[DagsterUi]:
    """Run the webserver, and the daemon beside it, until the block ends.

    Dagster's SQLite storage is made before the two open it, as `news-platform dev` does: both would
    migrate an empty one, and its version table would have two heads for good.
    """
    prepare_home(home)
    with dg.DagsterInstance.from_config(str(home)):
        pass
    env = {**os.environ, **environ, "DAGSTER_HOME": str(home)}
    port = free_port()
    with contextlib.ExitStack() as stack:
        serve = [WEBSERVER, "-h", "127.0.0.1", "-p", str(port), "-w", "workspace.yaml"]
        stack.enter_context(_running(serve, env, home / "webserver.log"))
        beside = ["dagster._daemon", "run", "-w", "workspace.yaml"]
        stack.enter_context(_running(beside, env, home / "daemon.log"))
        ui = DagsterUi(f"http://127.0.0.1:{port}", home)
        _wait_until_ready(ui)
        yield ui


def prepare_home(home: Path) -> None:
    """Make a Dagster home with the project's instance file."""
    home.mkdir(parents=True, exist_ok=True)
    make_home(Settings(dagster_home=str(home)))


@contextlib.contextmanager
def _running(words: list[str], env: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=PROJECT,
            env=dict(env),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        stop_group(process)


def stop_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process and the children of its own session, gently and then not."""
    for sign, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)


def _wait_until_ready(ui: DagsterUi) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if "'RepositoryLocation'" in str(ui.query(_LOCATIONS)):
                return
        time.sleep(0.5)
    log = (ui.home / "webserver.log").read_text(errors="replace")[-2000:]
    raise AssertionError(f"the webserver shows no graph after {READY_SECONDS} s:\n{log}")
