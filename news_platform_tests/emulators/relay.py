"""A loopback HTTP relay of complete requests and answers, so that a test can change either."""

import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

# Headers about one connection or one transfer; the relay sends its own.
_OWN_HEADERS = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request with its complete body; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `declared_size` is the Content-Length, `body` is what is sent.

    After an answer that is shorter than declared, the connection is closed, `stall_seconds` later.
    With `silent`, nothing is sent.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    declared_size: int
    silent: bool = False
    stall_seconds: float = 0.0


class Service(Protocol):
    """Anything that answers requests."""

    def answer(self, request: Request) -> Answer: ...


@contextmanager
def serve(service: Service, *, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on a loopback port, a free one by default, and yield the URL."""

    class Handler(_Handler):
        answerer = service

    with _Server(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def forward(request: Request, upstream: str) -> Answer:
    """Send the request to another server and return its answer."""
    connection = HTTPConnection(urlsplit(upstream).netloc, timeout=30)
    headers = {name: value for name, value in request.headers.items() if name not in _OWN_HEADERS}
    try:
        connection.request(request.method, request.target, request.body, headers)
        response = connection.getresponse()
        body = response.read()
        kept = {name.lower(): value for name, value in response.getheaders()}
        size = int(kept.get("content-length", len(body)))
        kept = {name: value for name, value in kept.items() if name not in _OWN_HEADERS}
        return Answer(response.status, kept, body, size)
    finally:
        connection.close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnected, as killed ones do; report all other errors."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    answerer: Service
    protocol_version = "HTTP/1.1"
    # Headers and body are one packet each; waiting for more data would cost 40 ms per request.
    disable_nagle_algorithm = True

    def _relay(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        self._send(self.answerer.answer(Request(self.command, self.path, headers, body)))

    def _send(self, answer: Answer) -> None:
        if answer.silent:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(answer.declared_size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
            sleep(answer.stall_seconds)
            self.close_connection = self.close_connection or len(answer.body) < answer.declared_size

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _relay

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the test's assertions report failures."""
