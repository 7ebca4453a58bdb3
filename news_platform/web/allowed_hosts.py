"""Refuse requests by their Host, Origin and Sec-Fetch headers, as a function and an ASGI wrapper.

A page of any site can make a browser send requests to a server on 127.0.0.1. Its own name may
resolve to 127.0.0.1 (DNS rebinding): the Host header tells. Or it calls 127.0.0.1 itself, from a
script, a form, an image or a websocket, perhaps from another port: Origin and Sec-Fetch-Site tell.
Programs that are not browsers send neither of the two, and say that what they send is JSON, which
a page of another site cannot.
"""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from news_platform.errors import ConfigError
from news_platform.web.urls import plain_host

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::(\d{1,5}))?", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
_OWN_SITES = ("same-origin", "none")

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
            f"NEWS_PLATFORM_ALLOWED_HOSTS: {text!r} is not a host name: expected one such as "
            "news.example.org, without scheme, port or wildcard",
            thing=text,
        )
    return text.lower() if text.startswith("[") else plain_host(text)


def refusal(scope: Message, allowed: frozenset[str]) -> str | None:
    """Return why a request or a websocket must not be answered, or None if it may be."""
    sent: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        sent.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    hosts, origins = sent.get("host", []), sent.get("origin", [])
    host = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if host is None or host[1].lower() not in allowed:
        cure = f"use one of {', '.join(sorted(allowed))}, or add a name to the setting"
        return f"Host {', '.join(hosts)!a} is not allowed: {cure} NEWS_PLATFORM_ALLOWED_HOSTS"
    if _is_navigation(scope, sent):
        return None
    ours = _own_origins(scope, hosts[0])
    for origin in origins:
        if _origin(*origin.split("://", 1)) not in ours:
            return f"Origin {origin!a} is not allowed: open the page under the name of this server"
    if any(site not in _OWN_SITES for site in sent.get("sec-fetch-site", [])):
        return "requests from pages of other sites are not allowed"
    if scope["type"] == "websocket":
        return None if origins else "a websocket needs the header Origin"
    return None if origins or scope["method"] in ("GET", "HEAD") else _program_refusal(sent)


def _is_navigation(scope: Message, sent: dict[str, list[str]]) -> bool:
    """Return whether a link to a page is followed, which shows the page and changes nothing."""
    return (
        scope.get("method") == "GET"
        and sent.get("sec-fetch-mode") == ["navigate"]
        and sent.get("sec-fetch-dest") == ["document"]
        and "text/html" in "".join(sent.get("accept", []))
    )


def _own_origins(scope: Message, host: str) -> set[tuple[str, str, int] | None]:
    scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
    own = _origin(scheme, host)
    # Under any other name a proxy may be in front, which speaks TLS and need not say so.
    is_local = own is None or own[1] in LOOPBACK_NAMES
    return {own, _origin(scheme if is_local else "https", host)} - {None}


def _origin(scheme: str, host: str = "") -> tuple[str, str, int] | None:
    """Return scheme, name and port of the parts of an origin; None if they are none."""
    found = _HOST.fullmatch(host)
    if found is None or scheme not in _PORTS:
        return None
    return scheme, found[1].lower(), int(found[2] or _PORTS[scheme])


def _program_refusal(sent: dict[str, list[str]]) -> str | None:
    """Return why a change without an Origin is refused; programs that are not browsers pass."""
    if any(name.startswith("sec-fetch-") for name in sent):
        return "a browser must send the header Origin with a change"
    if "".join(sent.get("content-type", [])).partition(";")[0].strip() != "application/json":
        return "a change must be sent as Content-Type: application/json"
    return None


class AllowedHosts:
    """An ASGI app that passes on what is sent to an allowed host, and answers 400 otherwise."""

    def __init__(
        self,
        app: AsgiApp,
        *,
        allowed: frozenset[str],
        also: Callable[[Message], str | None] = lambda scope: None,
    ) -> None:
        """Wrap an app; `also` returns why a request that passed is refused nevertheless."""
        self._app = app
        self._allowed = allowed
        self._also = also

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on a request or a websocket, or refuse it; other events are passed on."""
        reason = None
        if scope["type"] in ("http", "websocket"):
            reason = refusal(scope, self._allowed) or self._also(scope)
        if reason is None:
            await self._app(scope, receive, send)
        else:
            await _send_bad_request(scope, send, f"{reason}\n")


async def _send_bad_request(scope: Message, send: Send, text: str) -> None:
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": f"{prefix}.response.start", "status": 400, "headers": headers})
    await send({"type": f"{prefix}.response.body", "body": body})
