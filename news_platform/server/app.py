"""The ASGI app of the explorer, all routes behind all guards, and how a server runs an app."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from news_platform.resources import Resources
from news_platform.server.api import api_routes, refused_json
from news_platform.server.app_state import AppState
from news_platform.server.cdx import cdx_routes
from news_platform.server.documents import API_PREFIX
from news_platform.server.guards import ServerOptions, guarded
from news_platform.server.pages import page_routes, refused_page
from news_platform.server.response_cache import Answer, ResponseCache
from news_platform.web.allowed_hosts import AsgiApp

# Requests that are under way get this long; then the server ends.
_GRACE_SECONDS = 3
_HEADER_SECONDS = 10.0


def create_app(
    resources: Resources,
    options: ServerOptions,
    *,
    more_routes: Sequence[BaseRoute] = (),
    warm: bool = False,
) -> AsgiApp:
    """Return the guarded app over a root; `more_routes` are served beside its own.

    With `warm` it loads at its start what takes seconds, instead of at the first request.
    """
    state = AppState(resources, options)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if warm:
            threading.Thread(target=state.warm_up, daemon=True).start()
        yield

    async def refuse(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        answer = _refuse(state, request, status, f"there is no page {request.url.path[:200]!r}")
        return Response(answer.body, status, media_type=answer.media_type)

    answers = ResponseCache(state, _refuse)
    app = Starlette(
        routes=[*more_routes, *cdx_routes(answers), *api_routes(answers), *page_routes(answers)],
        lifespan=lifespan,
        exception_handlers={404: refuse},
    )
    return guarded(app, options)


def _refuse(state: AppState, request: Request, status: int, message: str) -> Answer:
    make = refused_json if request.url.path.startswith(API_PREFIX) else refused_page
    return make(state, request, status, message)


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type] # chosen by what is there
    """Close connections whose request does not come to its end: uvicorn waits for ever."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the headers, or no more if they are complete."""
        super().data_received(data)
        self._await_request()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(error)
        self._stop_waiting()

    def _await_request(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._timer is None:
            self._timer = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


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
        http=PatientProtocol,
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
