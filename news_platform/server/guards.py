"""The options of a server, and the guards around its app.

Guards are ASGI wrappers: headers, hosts, rate limit, token and methods, in this order.

Clients are distinguished by their address, as trusted proxies report it.
"""

import base64
import binascii
import hmac
import ipaddress
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cachetools import LRUCache
from starlette.responses import Response
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from news_platform.errors import ConfigError
from news_platform.server.documents import API_PREFIX, error_body
from news_platform.settings import Settings
from news_platform.web.allowed_hosts import (
    LOOPBACK_NAMES,
    AllowedHosts,
    AsgiApp,
    Message,
    Receive,
    Send,
    allowed_names,
    is_loopback,
)

# Nothing is loaded from elsewhere, and no script, frame or plugin at all.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
READING_METHODS = ("GET", "HEAD")
# Longer than every valid query of a search, whatever its script.
_LONGEST_TARGET_BYTES = 16_384
# A browser that opens a page and its neighbours sends a few requests at once.
_BURST_SECONDS = 10
_LEAST_BURST = 20
# The oldest clients are forgotten, so that no crowd of addresses fills the memory.
_REMEMBERED_CLIENTS = 10_000
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where a server listens and whom it answers."""

    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: frozenset[str] = LOOPBACK_NAMES
    token: str | None = field(default=None, repr=False)
    requests_per_minute: int = 1200
    trusted_proxies: tuple[str, ...] = ()
    dagster_url: str | None = None


def server_options(settings: Settings, *, host: str, port: int) -> ServerOptions:
    """Return the options; raise ConfigError if strangers could read the data."""
    given = settings.server
    if not is_loopback(host) and not given.token:
        raise ConfigError(
            f"cannot serve on {host!r} without a token: set NEWS_PLATFORM_SERVER_TOKEN, or use "
            "127.0.0.1",
            thing=host,
        )
    if given.token and len(given.token) < _SHORTEST_TOKEN:
        raise ConfigError(
            f"NEWS_PLATFORM_SERVER_TOKEN is too short: expected at least {_SHORTEST_TOKEN} "
            "characters",
            thing="NEWS_PLATFORM_SERVER_TOKEN",
        )
    return ServerOptions(
        host=host,
        port=port,
        allowed_hosts=allowed_names(settings.ui.allowed_hosts)
        | {f"[{host}]" if ":" in host else host.lower()},
        token=given.token,
        requests_per_minute=max(0, given.requests_per_minute),
        trusted_proxies=_networks(given.trusted_proxies),
        dagster_url=_http_url("NEWS_PLATFORM_DAGSTER_URL", given.dagster_url),
    )


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise ConfigError(
                f"NEWS_PLATFORM_TRUSTED_PROXIES: {text!r} is not an address or a network such as "
                "10.0.0.5 or 10.0.0.0/24",
                thing=text,
            ) from error
    return texts


def _http_url(name: str, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"{name}={url!r} is not an address: expected http:// or https://")
    return url.rstrip("/") if url else None


def guarded(
    app: AsgiApp, options: ServerOptions, *, methods: Sequence[str] = READING_METHODS
) -> AsgiApp:
    """Return the app behind all guards."""
    inner: AsgiApp = _Requests(app, options, methods=methods)
    checked: AsgiApp = _SecureHeaders(AllowedHosts(inner, allowed=options.allowed_hosts))
    if not options.trusted_proxies:
        return checked
    # It reads X-Forwarded-For from its end, and only as far as trusted proxies wrote it.
    return cast(AsgiApp, ProxyHeadersMiddleware(cast(Any, checked), [*options.trusted_proxies]))


class _SecureHeaders:
    """Add the security headers to every response, refusals included."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        await self._app(scope, receive, send_secured)


class _Requests:
    """Refuse what comes too often, without the token, or with another method than reading."""

    def __init__(self, app: AsgiApp, options: ServerOptions, *, methods: Sequence[str]) -> None:
        self._app = app
        self._rate = ClientRates(options.requests_per_minute)
        self._token = options.token.encode() if options.token else None
        self._methods = tuple(methods)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await (self._refusal(scope) or self._app)(scope, receive, send)

    def _refusal(self, scope: Message) -> Response | None:
        # Before the token: guessing it is limited, too.
        peer, _ = scope.get("client") or ("unknown", 0)
        wait = self._rate.seconds_to_wait(client_name(peer), now=time.monotonic())
        if wait:
            seconds = math.ceil(wait)
            text = f"too many requests: try again in {seconds} s"
            return _refused(scope, 429, text, {"Retry-After": str(seconds)})
        if self._token is not None and not has_token(scope["headers"], self._token):
            login = {"WWW-Authenticate": 'Basic realm="news-platform", charset="UTF-8"'}
            cure = "send it as a bearer token, or as the password of a login"
            return _refused(scope, 401, f"a token is needed: {cure}", login)
        if scope["method"] not in self._methods:
            allowed = {"Allow": ", ".join(self._methods)}
            return _refused(scope, 405, "this server is read only", allowed)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_TARGET_BYTES:
            return _refused(scope, 414, f"the address is longer than {_LONGEST_TARGET_BYTES} bytes")
        return None


def _refused(
    scope: Message, status: int, text: str, headers: Mapping[str, str] | None = None
) -> Response:
    if scope["path"].startswith(API_PREFIX):
        return Response(error_body(status, text), status, headers, "application/json")
    return Response(f"{text}\n", status, headers, "text/plain")


def has_token(headers: Sequence[tuple[bytes, bytes]], token: bytes) -> bool:
    """Return whether a request carries the token, compared in constant time."""
    sent = [value for name, value in headers if name.lower() == b"authorization"]
    if len(sent) != 1:
        return False
    scheme, _, credentials = sent[0].partition(b" ")
    if scheme.lower() == b"bearer":
        return hmac.compare_digest(credentials.strip(), token)
    if scheme.lower() != b"basic":
        return False
    try:
        login = base64.b64decode(credentials.strip(), validate=True)
    except binascii.Error:
        return False
    return hmac.compare_digest(login.partition(b":")[2], token)


class ClientRates:
    """The requests that each client may still send: one token bucket per client."""

    def __init__(self, requests_per_minute: int) -> None:
        self._per_second = requests_per_minute / 60
        self._burst = max(_LEAST_BURST, self._per_second * _BURST_SECONDS)
        self._clients: LRUCache[str, tuple[float, float]] = LRUCache(_REMEMBERED_CLIENTS)

    def seconds_to_wait(self, client: str, *, now: float) -> float:
        """Count a request at the moment `now`; return 0, or the seconds until one is allowed."""
        if not self._per_second:
            return 0.0
        left, then = self._clients.get(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        is_allowed = left >= 1
        self._clients[client] = (left - 1 if is_allowed else left, now)
        return 0.0 if is_allowed else (1 - left) / self._per_second


def client_name(address: str) -> str:
    """Return what requests are counted by: an address, or the network of an IPv6 address."""
    # Whoever has an IPv6 address has the whole network of 64 bits.
    is_long = ":" in address and "." not in address
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if is_long else address
