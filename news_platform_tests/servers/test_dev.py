"""`news-platform dev` as a process: how soon it answers, whom it answers, and how it ends."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from news_platform_tests.servers.dagster_ui import (
    DagsterUi,
    free_port,
    stop_group,
)
from news_platform_tests.servers.nginx import DAGSTER, EXPLORER, LOGIN, Proxy, running_nginx

# On an idle machine; the tests' own neighbours may take two thirds of ours.
READY_SECONDS = 30.0
UNDER_LOAD = 3
STOP_SECONDS = 10.0
_LOCATIONS = "{ workspaceOrError { ... on Workspace { locationEntries { name } } } }"
_FOREIGN = ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example")


@dataclass(frozen=True, slots=True)
class Dev:
    """A running `news-platform dev`."""

    process: "subprocess.Popen[bytes]"
    port: int
    server_port: int
    folder: Path
    seconds_until_ready: float

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Send a GET to 127.0.0.1 with these headers; return the status and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest("GET", path, skip_host=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory, installed_wheel: Path) -> Iterator[Dev]:
    """Start `news-platform dev` of the wheel on a new sample root, with one configured host."""
    folder = tmp_path_factory.mktemp("dev")
    port, server_port = free_port(), free_port()
    words = ["dev", "--port", str(port), "--server-port", str(server_port)]
    environ = {
        "PYTHONPATH": str(installed_wheel),
        "NEWS_PLATFORM_ROOT": str(folder / "root"),
        "NEWS_PLATFORM_SAMPLE": "1",
        "NEWS_PLATFORM_ALLOWED_HOSTS": f"{EXPLORER},{DAGSTER}",
        "NEWS_PLATFORM_TRUSTED_PROXIES": "127.0.0.1",
        "NEWS_PLATFORM_SERVER_RATE": "60",
    }
    started = time.monotonic()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "news_platform.cli", *words],
            cwd=folder,
            env={name: text for name, text in os.environ.items() if name != "DAGSTER_HOME"}
            | environ,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while not _answers(f"http://127.0.0.1:{port}/server_info"):
            log_text = (folder / "log").read_text(errors="replace")
            assert process.poll() is None, log_text
            assert time.monotonic() - started < READY_SECONDS * UNDER_LOAD, log_text
            time.sleep(0.2)
        yield Dev(process, port, server_port, folder, time.monotonic() - started)
    finally:
        stop_group(process)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except (urllib.error.URLError, OSError):
        return False


def test_dev_of_the_wheel_makes_its_own_home_under_the_root(dev: Dev) -> None:
    home = dev.folder / "root/.dagster"
    assert "telemetry" in (home / "dagster.yaml").read_text()
    assert (home / "history").is_dir()


def test_dev_answers_within_half_a_minute(dev: Dev) -> None:
    assert dev.seconds_until_ready < READY_SECONDS * UNDER_LOAD
    ui = DagsterUi(f"http://127.0.0.1:{dev.port}", dev.folder / "root/.dagster")
    assert ui.query(_LOCATIONS) == {
        "workspaceOrError": {"locationEntries": [{"name": "news_platform"}]}
    }


def test_a_foreign_host_gets_400_with_one_line_and_a_configured_one_is_answered(dev: Dev) -> None:
    for host in (f"localhost:{dev.port}", "[::1]:1", EXPLORER):
        assert dev.get("/server_info", Host=host)[0] == 200, host
    for host in _FOREIGN:
        for path in ("/server_info", "/", "/graphql?query={version}", "/dagit/notebook"):
            status, body = dev.get(path, Host=host)
            assert status == 400
            assert body.count("\n") == 1 and repr(host) in body, body
            assert "NEWS_PLATFORM_ALLOWED_HOSTS" in body


async def _acknowledged(port: int, host: str, tls: ssl.SSLContext, **headers: str) -> str:
    """Open the websocket of GraphQL under a Host header; return the type of the first answer."""
    async with connect(
        # The address in the URI becomes the Host header, so the socket is opened apart from it.
        f"wss://{host}/graphql",
        host="127.0.0.1",
        port=port,
        ssl=tls,
        subprotocols=[Subprotocol("graphql-ws")],
        additional_headers=headers,
        proxy=None,
    ) as socket:
        await socket.send(json.dumps({"type": "connection_init"}))
        kind = json.loads(await socket.recv())["type"]
    assert isinstance(kind, str)
    return kind


@pytest.fixture(scope="module")
def proxy(dev: Dev, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Run the example of a proxy in front of both servers."""
    folder = tmp_path_factory.mktemp("nginx")
    with running_nginx(folder, dagster_port=dev.port, explorer_port=dev.server_port) as running:
        yield running


def test_the_proxy_asks_for_a_password_and_speaks_tls_alone(proxy: Proxy) -> None:
    for host, path in ((DAGSTER, "/server_info"), (EXPLORER, "/domains")):
        assert proxy.get(host, path) == 401
        assert proxy.get(host, path, Authorization="Basic cmVhZGVyOndyb25n") == 401
        assert proxy.get(host, path, Authorization=LOGIN) == 200
        assert proxy.get_plain(host, path) == (308, f"https://{host}{path}")


def test_the_proxy_passes_the_host_on_and_serves_no_other(proxy: Proxy) -> None:
    with pytest.raises(ssl.SSLError):
        proxy.open("evil.example")
    # Past the certificate, the servers themselves check what a page of another site sends.
    for host in (DAGSTER, EXPLORER):
        sent = {"Authorization": LOGIN, "Origin": "https://evil.example"}
        assert proxy.get(host, "/domains", **sent) == 400


def test_graphql_over_a_websocket_passes_the_proxy_with_a_password(proxy: Proxy) -> None:
    sent = {"Authorization": LOGIN, "Origin": f"https://{DAGSTER}"}
    asked = _acknowledged(proxy.port, DAGSTER, proxy.trust, **sent)
    assert asyncio.run(asked) == "connection_ack"
    with pytest.raises(InvalidStatus) as refused:
        asyncio.run(_acknowledged(proxy.port, DAGSTER, proxy.trust))
    assert refused.value.response.status_code == 401


def test_behind_the_proxy_each_client_has_its_own_limit(proxy: Proxy) -> None:
    def ask(client: str, **headers: str) -> int:
        sent = {"Authorization": LOGIN, **headers}
        return proxy.get(EXPLORER, "/static/style.css", client=client, **sent)

    assert 429 in [ask("127.0.0.3") for _ in range(40)]
    assert ask("127.0.0.3", X_Forwarded_For="192.0.2.7") == 429, "made up by the client"
    assert ask("127.0.0.4") == 200


def test_dev_prints_its_addresses_last_and_logs_to_a_file(dev: Dev) -> None:
    address = f"http://127.0.0.1:{dev.server_port}"
    deadline = time.monotonic() + READY_SECONDS * UNDER_LOAD
    while address not in (shown := (dev.folder / "log").read_text(errors="replace")):
        assert time.monotonic() < deadline, shown
        time.sleep(0.2)
    first, *_, ui, explorer = shown.splitlines()
    log = dev.folder / "root/.dagster/dev.log"
    assert first.endswith(f"log lines go to {log}")
    assert (ui, explorer) == (
        f"Dagster UI  http://127.0.0.1:{dev.port}",
        f"explorer    {address}",
    )
    assert "dagster.daemon" in log.read_text(errors="replace")


def test_the_explorer_links_to_dagster(dev: Dev) -> None:
    address = f"http://127.0.0.1:{dev.server_port}"
    with urllib.request.urlopen(f"{address}/domains", timeout=60) as answer:
        assert f'href="http://127.0.0.1:{dev.port}/asset-groups"' in answer.read().decode()


def test_an_asset_links_to_the_explorer(dev: Dev) -> None:
    ui = DagsterUi(f"http://127.0.0.1:{dev.port}", dev.folder / "root/.dagster")
    ask = """{ assetNodes(assetKeys: [{path: ["search_index"]}]) {
        metadataEntries { label ... on UrlMetadataEntry { url } } } }"""
    nodes = ui.query(ask)["assetNodes"]
    assert isinstance(nodes, list)
    links = {one["label"]: one.get("url") for one in nodes[0]["metadataEntries"]}
    assert links["explorer"] == f"http://127.0.0.1:{dev.server_port}/"


def test_term_ends_the_webserver_the_daemon_and_the_code_server(dev: Dev) -> None:
    """The last test of this file: it stops what the others use."""
    explorer = f"http://127.0.0.1:{dev.server_port}/domains"
    assert _answers(explorer)
    ours = _session(dev.process.pid)
    names = " ".join(ours.values())
    for module in ("services.webserver", "dagster._daemon", "code-server start", "cli serve"):
        assert module in names, names
    dev.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS * UNDER_LOAD
    while _answers(explorer):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert dev.process.wait(max(0.0, deadline - time.monotonic())) == 0
    while left := _session(dev.process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    assert not _answers(f"http://127.0.0.1:{dev.port}/server_info")


def _session(leader: int) -> dict[int, str]:
    """Return the command lines of the live processes of a session."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = words.decode(errors="replace")
    return found
