"""Refuse requests by their Host and Origin headers, as a function and as an ASGI wrapper.

A page of any site can make a browser send requests to a server on 127.0.0.1. Its own name may
resolve to 127.0.0.1 (DNS rebinding): the Host header tells. Or it calls 127.0.0.1 itself, from a
script, a form, an image or a websocket: Origin and Sec-Fetch-Site tell. Programs that are not
browsers send neither of the two.
"""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from news_platform.errors import ConfigError
from news_platform.web.urls import plain_host

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::\d{1,5})?", re.IGNORECASE)

Headers = Iterable[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def allowed_names(configured: Iterable[str]) -> frozenset[str]:
    """Return the loopback names and the configured ones; raise ConfigError for what is no name."""
    return LOOPBACK_NAMES | {_name(text) for text in configured}


def _name(text: str) -> str:
    match = _HOST.fullmatch(text)
    # A wildcard would let a rebinding site in that owns a name below it.
    if match is None or match[1] != text or "*" in text:
        raise ConfigError(
            f"{text!r} is not a host name: expected one such as news.example.org, without "
            "scheme, port or wildcard",
            thing=text,
        )
    return text.lower() if text.startswith("[") else plain_host(text)


def refusal(headers: Headers, allowed: frozenset[str]) -> str | None:
    """Return why a request must not be answered, or None if it may be.

    The port does not matter: a site cannot choose it without the name.
    """
    sent: dict[str, list[str]] = {}
    for name, value in headers:
        sent.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    hosts = sent.get("host", [])
    if len(hosts) != 1 or _host_of(hosts[0]) not in allowed:
        return f"Host {', '.join(hosts)!a} is not allowed"
    for origin in sent.get("origin", []):
        if _host_of(origin.partition("://")[2]) not in allowed:
            return f"Origin {origin!a} is not allowed"
    # Following a link from another site is a navigation, which shows a page and runs no query.
    if sent.get("sec-fetch-site") == ["cross-site"] and sent.get("sec-fetch-mode") != ["navigate"]:
        return "requests from pages of other sites are not allowed"
    return None


def _host_of(text: str) -> str | None:
    match = _HOST.fullmatch(text)
    return match[1].lower() if match else None


class AllowedHosts:
    """An ASGI app that passes on what is sent to an allowed host, and answers 400 otherwise."""

    def __init__(self, app: AsgiApp, *, allowed: frozenset[str], cure: str) -> None:
        """Wrap an app; `cure` ends the one line of each refusal."""
        self._app = app
        self._allowed = allowed
        self._cure = cure

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on a request or a websocket, or refuse it; other events are passed on."""
        reason = (
            refusal(scope["headers"], self._allowed)
            if scope["type"] in ("http", "websocket")
            else None
        )
        if reason is None:
            await self._app(scope, receive, send)
        else:
            await _send_bad_request(scope, send, f"{reason}: {self._cure}\n")


async def _send_bad_request(scope: Message, send: Send, text: str) -> None:
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": f"{prefix}.response.start", "status": 400, "headers": headers})
    await send({"type": f"{prefix}.response.body", "body": body})
