"""An S3 server on loopback (moto), and empty buckets in it."""

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

_BUCKET_NUMBERS = count(1)


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
    name = f"bucket-{next(_BUCKET_NUMBERS)}"
    with urlopen(Request(f"{server_url}/{name}", method="PUT")):  # a plain loopback request
        return name


@contextmanager
def s3_process() -> Iterator[str]:
    """Run another server in a process of its own and yield its URL.

    Two servers in one process share their buckets, so only this one is really another store.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_until_open(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_until_open(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"no server on port {port}")
