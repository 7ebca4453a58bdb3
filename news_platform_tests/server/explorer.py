"""A running explorer over a root, and a client that sends any header."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from news_platform.resources import open_resources
from news_platform.server.app import PatientProtocol, create_app
from news_platform.server.guards import ServerOptions, server_options
from news_platform.settings import load_settings
from news_platform.storage.commit.root import RootAccess
from news_platform.web.allowed_hosts import AsgiApp
from news_platform_tests.servers.dagster_ui import free_port

# The first status loads the whole graph, which takes minutes of a starved process.
_PATIENCE_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Explorer:
    """A server on loopback."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Reply:
        """Send a GET; underscores in the names of headers stand for hyphens."""
        return self.ask("GET", path, **headers)

    def ask(self, method: str, path: str, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)
        started = time.monotonic()
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, named, body, time.monotonic() - started)


@contextlib.contextmanager
def serving(app: AsgiApp, port: int) -> Iterator[Explorer]:
    """Run an app on a port of loopback in a thread."""
    config = uvicorn.Config(
        app,
        port=port,
        http=PatientProtocol,
        log_level="critical",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended at its start"
            time.sleep(0.01)
        yield Explorer(port)
    finally:
        server.should_exit = True
        thread.join(20)


@contextlib.contextmanager
def exploring(root: Path, **environ: str) -> Iterator[Explorer]:
    """Serve a root with these settings; without one, there is no limit of requests."""
    variables = {"NEWS_PLATFORM_SERVER_RATE": "0", **environ, "NEWS_PLATFORM_ROOT": str(root)}
    settings = load_settings(variables)
    port = free_port()
    options: ServerOptions = server_options(settings, host="127.0.0.1", port=port)
    resources = open_resources(settings, access=RootAccess.READ)
    with serving(create_app(resources, options), port) as running:
        yield running
