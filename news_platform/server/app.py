"""The ASGI app of the explorer: all routes behind all guards."""

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from news_platform.resources import Resources
from news_platform.server.answers import Answer, Answers
from news_platform.server.api_routes import api_routes, refused_json
from news_platform.server.documents import API_PREFIX
from news_platform.server.guards import guarded
from news_platform.server.options import ServerOptions
from news_platform.server.pages import page_routes, refused_page
from news_platform.server.site import Site
from news_platform.web.allowed_hosts import AsgiApp


def site_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the pages and of the API, as a plain list to add others to."""
    answers = Answers(site, _refuse)
    return [*api_routes(answers), *page_routes(answers)]


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
    site = Site(resources, options)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if warm:
            threading.Thread(target=site.warm_up, daemon=True).start()
        yield

    async def refuse(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        answer = _refuse(site, request, status, f"there is no page {request.url.path[:200]!r}")
        return Response(answer.body, status, media_type=answer.media_type)

    app = Starlette(
        routes=[*more_routes, *site_routes(site)],
        lifespan=lifespan,
        exception_handlers={404: refuse},
    )
    return guarded(app, options)


def _refuse(site: Site, request: Request, status: int, message: str) -> Answer:
    make = refused_json if request.url.path.startswith(API_PREFIX) else refused_page
    return make(site, request, status, message)
