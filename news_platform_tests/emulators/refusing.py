"""A server on loopback that refuses every request and repeats it, as a careless one does."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class _Refusing(BaseHTTPRequestHandler):
    """Refuse everything, and repeat the request in the answer as a careless server does."""

    # A database driver sends no line to wait for.
    timeout = 0.5

    def do_GET(self) -> None:
        """Answer 403."""
        body = f"{self.path} {self.headers}".encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def refusing_server() -> Iterator[str]:
    """Run the server and yield its host and port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
