"""An S3 server on loopback (moto), and empty buckets in it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
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
