"""A receiver of webhooks on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "planted-secret"


@dataclass
class Webhook:
    """A receiver that answers as it was told, then with 200, and keeps what it got."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def serve_webhook(webhook: Webhook) -> Iterator[Webhook]:
    """Serve a receiver on loopback."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            webhook.bodies.append(json.loads(body))
            webhook.raw.append(body)
            webhook.headers.append(dict(self.headers))
            self.send_response(webhook.answers.pop(0) if webhook.answers else 200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    webhook.url = f"http://127.0.0.1:{server.server_port}/hook/{SECRET}"
    try:
        yield webhook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
