"""ASGI wrappers around an app: headers, hosts, rate limit, token and methods, in this order.

Clients are distinguished by their address, as trusted proxies report it.
"""

import base64
import binascii
import hmac
import ipaddress
import math
import time
from collections.abc import Iterable, Sequence

from cachetools import LRUCache

from news_platform.server.documents import API_PREFIX, error_body
from news_platform.server.options import Network, ServerOptions
from news_platform.web.allowed_hosts import AllowedHosts, AsgiApp, Message, Receive, Send

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


def guarded(
    app: AsgiApp, options: ServerOptions, *, methods: Sequence[str] = READING_METHODS
) -> AsgiApp:
    """Return the app behind all guards."""
    inner: AsgiApp = _Requests(app, options, methods=methods)
    names = ", ".join(sorted(options.allowed_hosts))
    cure = f"use one of {names}, or add a name to NEWS_PLATFORM_ALLOWED_HOSTS"
    hosts = AllowedHosts(inner, allowed=options.allowed_hosts, cure=cure)
    return _SecureHeaders(hosts)


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
        self._proxies = options.trusted_proxies
        self._methods = tuple(methods)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refusal(scope)
            if refused is None:
                await self._app(scope, receive, send)
            else:
                await _send_refusal(scope, send, *refused)

    def _refusal(self, scope: Message) -> tuple[int, str, tuple[tuple[bytes, bytes], ...]] | None:
        # Before the token: guessing it is limited, too.
        peer, _ = scope.get("client") or ("unknown", 0)
        client = client_address(peer, scope["headers"], self._proxies)
        wait = self._rate.seconds_to_wait(client, now=time.monotonic())
        if wait:
            seconds = math.ceil(wait)
            header = (b"retry-after", str(seconds).encode())
            return 429, f"too many requests: try again in {seconds} s", (header,)
        if self._token is not None and not has_token(scope["headers"], self._token):
            header = (b"www-authenticate", b'Basic realm="news-platform", charset="UTF-8"')
            cure = "send it as a bearer token, or as the password of a login"
            return 401, f"a token is needed: {cure}", (header,)
        if scope["method"] not in self._methods:
            header = (b"allow", ", ".join(self._methods).encode())
            return 405, "this server is read only", (header,)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_TARGET_BYTES:
            return 414, f"the address is longer than {_LONGEST_TARGET_BYTES} bytes", ()
        return None


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


async def _send_refusal(
    scope: Message, send: Send, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    is_api = scope["path"].startswith(API_PREFIX)
    body = error_body(status, text) if is_api else f"{text}\n".encode()
    media_type = b"application/json" if is_api else b"text/plain; charset=utf-8"
    fixed = [
        (b"content-type", media_type),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": fixed})
    await send({"type": "http.response.body", "body": body})


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


def client_address(
    peer: str, headers: Iterable[tuple[bytes, bytes]], trusted: Sequence[Network]
) -> str:
    """Return the nearest address that is not a trusted proxy's.

    Each proxy appends whom it serves to X-Forwarded-For. The list is read from its end, and only as
    far as trusted proxies wrote it: everything before that, the client may have made up.
    """
    address = peer
    for claimed in reversed(_forwarded(headers) if trusted else []):
        if not _is_trusted(address, trusted) or _parse(claimed) is None:
            break
        address = claimed
    return address


def _forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    lines = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return [part.strip() for line in lines for part in line.split(",")]


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(parsed in network for network in trusted)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
