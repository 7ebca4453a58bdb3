"""An S3 server on loopback (moto), and empty buckets in it."""

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

from news_platform_tests.emulators.sharing import alone, session_pid, worker_name

_BUCKET_NUMBERS = count(1)
# Python warns of processes that still run when their object goes.
_KEPT: list[subprocess.Popen[bytes]] = []


@contextmanager
def s3_server() -> Iterator[str]:
    """Run the server on a free port and yield its URL."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # otherwise one line per request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(server_url: str) -> str:
    """Create an empty bucket and return its name."""
    name = f"{worker_name()}-{next(_BUCKET_NUMBERS)}"
    with urlopen(Request(f"{server_url}/{name}", method="PUT")):  # a plain loopback request
        return name


@contextmanager
def s3_process() -> Iterator[str]:
    """Run another server in a process of its own and yield its URL.

    Two servers in one process share their buckets, so only this one is really another store.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", __name__, str(port), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_until_open(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def shared_s3_url(folder: Path) -> str:
    """Return the URL of the server that all processes with this folder share.

    It ends with the session: it looks every second whether pytest still runs.
    """
    with alone(folder / "s3.lock"):
        known = folder / "s3.url"
        if not known.exists():
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            command = [sys.executable, "-m", __name__, str(port), str(session_pid())]
            quiet = subprocess.DEVNULL
            _KEPT.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet))
            _wait_until_open(port)
            known.write_text(f"http://127.0.0.1:{port}")
        return known.read_text()


def _serve_until_gone(port: int, pid: int) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    while Path(f"/proc/{pid}").exists():
        time.sleep(1)
    os._exit(0)


def _wait_until_open(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"no server on port {port}")


if __name__ == "__main__":
    _serve_until_gone(int(sys.argv[1]), int(sys.argv[2]))
