"""Run an app until it is interrupted, or until the process that started it tells it or dies."""

import os
import threading

import uvicorn

from news_platform.server.options import ServerOptions
from news_platform.web.allowed_hosts import AsgiApp

# Requests that are under way get this long; then the server ends.
_GRACE_SECONDS = 3


def run_app(app: AsgiApp, options: ServerOptions, *, shutdown_pipe: int | None = None) -> None:
    """Serve until Ctrl-C, TERM, or the other end of the pipe is written to or closed."""
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        # Guards read X-Forwarded-For themselves, and only from proxies that settings name.
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = uvicorn.Server(config)
    if shutdown_pipe is not None:
        threading.Thread(target=_end_with, args=(server, shutdown_pipe), daemon=True).start()
    server.run()


def _end_with(server: uvicorn.Server, pipe: int) -> None:
    """Wait for a byte, or for the end of the process that holds the other end."""
    os.read(pipe, 1)
    server.should_exit = True
