"""Serve the metrics over HTTP: as a route of a larger server, or alone."""

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from news_platform.resources import Resources
from news_platform.web.allowed_hosts import AllowedHosts, allowed_names

PATH = "/metrics"


def metrics_route(resources: Resources) -> Route:
    """Return the route that answers a scrape with all metrics of these resources."""
    # At the first scrape: Dagster takes seconds to load.
    return _route(cache(lambda: _registry(resources)))


def _registry(resources: Resources) -> CollectorRegistry:
    from news_platform.operations.metrics import build_registry

    return build_registry(resources)


def _route(registry: Callable[[], CollectorRegistry]) -> Route:
    # Not async: Starlette runs it in a thread, because it reads files and databases.
    def scrape(_request: Request) -> Response:
        return Response(metrics_text(registry()), media_type=CONTENT_TYPE_LATEST)

    return Route(PATH, scrape, methods=["GET"], name="metrics")


def metrics_text(registry: CollectorRegistry) -> bytes:
    """Return all metrics in Prometheus's text format."""
    return generate_latest(registry)


def metrics_app(resources: Resources) -> AllowedHosts:
    """Return the server that has the metrics alone, for loopback names and configured hosts.

    It has looked once: the first look takes seconds, which no scrape should wait for.
    """
    registry = _registry(resources)
    metrics_text(registry)
    app = Starlette(routes=[_route(lambda: registry)])
    allowed = allowed_names(resources.settings.ui.allowed_hosts)
    names = ", ".join(sorted(allowed))
    cure = f"use one of {names}, or add a name to NEWS_PLATFORM_ALLOWED_HOSTS"
    return AllowedHosts(app, allowed=allowed, cure=cure)
