"""A loopback web server for tests: bodies by path, with ETags."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def serve(pages: Mapping[str, bytes]) -> Iterator[tuple[str, int]]:
    """Serve the pages with ETags from a thread; yield the address and port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = pages.get(self.path)
            tag = f'"{hash(body)}"'
            if body is not None and self.headers.get("If-None-Match") == tag:
                self._send(304, b"", tag)
            else:
                self._send(404 if body is None else 200, body or b"", tag)

        def _send(self, status: int, body: bytes, tag: str) -> None:
            self.send_response(status)
            self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", _content_type(self.path))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _content_type(path: str) -> str:
    if path.endswith((".xml", ".rss", ".atom")):
        return "application/xml"
    return "application/json" if path.endswith(".json") else "text/html; charset=utf-8"
