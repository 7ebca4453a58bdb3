"""Which requests a server on this machine answers, by the headers that browsers send."""

import asyncio

import pytest

from news_platform.errors import ConfigError
from news_platform.web.allowed_hosts import AllowedHosts, Message, allowed_names, refusal

ALLOWED = allowed_names(["news.example.org", "Zürich.example"])

ANSWERED: list[dict[str, str]] = [
    {"Host": "LOCALHOST:3000"},
    {"Host": "[::1]:3000"},
    {"Host": "News.Example.org"},
    {"Host": "xn--zrich-kva.example:8080"},
    {"Host": "127.0.0.1:3000", "Origin": "https://news.example.org"},
    {"Host": "127.0.0.1", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
    {"Host": "127.0.0.1", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
]
REFUSED: list[dict[str, str]] = [
    {},
    {"Host": "evil.example"},
    {"Host": "localhost.evil.example"},
    {"Host": "evil.example@localhost"},
    {"Host": "[::1]evil.example"},
    {"Host": "sub.news.example.org"},
    {"Host": "localhost\xff"},
    {"Host": "localhost", "Origin": "http://evil.example"},
    {"Host": "localhost", "Origin": "null"},
    {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
]


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


@pytest.mark.parametrize("headers", ANSWERED, ids=str)
def test_a_request_to_an_allowed_host_is_answered(headers: dict[str, str]) -> None:
    assert refusal(_raw(headers), ALLOWED) is None


@pytest.mark.parametrize("headers", REFUSED, ids=ascii)
def test_a_request_of_a_foreign_page_is_refused(headers: dict[str, str]) -> None:
    reason = refusal(_raw(headers), ALLOWED)
    assert reason is not None and reason.isascii() and "\n" not in reason


def test_a_second_host_header_is_refused() -> None:
    assert refusal([(b"host", b"localhost"), (b"host", b"localhost")], ALLOWED) is not None


@pytest.mark.parametrize("name", ["*.example.org", "http://x.example", "x.example:3000", ""])
def test_a_configured_name_that_no_host_header_can_hold_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a host name"):
        allowed_names([name])


def _answer(kind: str, host: bytes) -> list[Message]:
    """Return what the wrapped app sends; the app inside sends `inner` alone."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {}

    async def inner(_scope: Message, _receive: object, send_inner: object) -> None:
        await send({"type": "inner"})

    app = AllowedHosts(inner, allowed=ALLOWED, cure="use localhost")
    asyncio.run(app({"type": kind, "headers": [(b"host", host)]}, receive, send))
    return sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_requests_and_websockets_are_wrapped_alike(kind: str) -> None:
    assert _answer(kind, b"localhost") == [{"type": "inner"}]
    assert _answer("lifespan", b"evil.example") == [{"type": "inner"}]
    start, body = _answer(kind, b"evil.example")
    assert start["status"] == 400 and start["type"].startswith(kind)
    assert body["body"] == b"Host 'evil.example' is not allowed: use localhost\n"
