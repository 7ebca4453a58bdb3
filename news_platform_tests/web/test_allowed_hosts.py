"""Which requests a server on this machine answers, by the headers that browsers send."""

import asyncio

import pytest

from news_platform.defs.services.webserver import graphql_refusal
from news_platform.errors import ConfigError
from news_platform.web.allowed_hosts import AllowedHosts, Message, allowed_names, refusal

ALLOWED = allowed_names(["news.example.org", "Zürich.example"])

OWN = {"Host": "127.0.0.1:3000", "Origin": "http://127.0.0.1:3000"}
BEHIND_TLS = {"Host": "news.example.org", "Origin": "https://news.example.org"}
FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": "text/html"}
PROGRAM = {"Host": "localhost:3000", "Content-Type": "application/json; charset=utf-8"}

ANSWERED: list[tuple[str, dict[str, str]]] = [
    ("GET", {"Host": "LOCALHOST:3000"}),
    ("GET", {"Host": "[::1]:3000"}),
    ("GET", {"Host": "News.Example.org"}),
    ("GET", {"Host": "xn--zrich-kva.example:8080"}),
    ("GET", {"Host": "127.0.0.1", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}),
    ("GET", {"Host": "127.0.0.1", "Sec-Fetch-Site": "cross-site", **FOLLOWED}),
    ("GET", {"Host": "127.0.0.1", "Sec-Fetch-Site": "same-site", **FOLLOWED}),
    ("POST", OWN),
    ("POST", {**OWN, "Sec-Fetch-Site": "same-origin", "Content-Type": "text/plain"}),
    ("POST", {"Host": "[::1]:3000", "Origin": "http://[::1]:3000"}),
    ("POST", BEHIND_TLS),
    ("POST", {"Host": "news.example.org:8443", "Origin": "https://news.example.org:8443"}),
    ("POST", {"Host": "news.example.org:80", "Origin": "http://news.example.org"}),
    ("POST", PROGRAM),
    ("websocket", OWN),
    ("websocket", BEHIND_TLS),
]
REFUSED: list[tuple[str, dict[str, str]]] = [
    ("GET", {}),
    ("GET", {"Host": "evil.example"}),
    ("GET", {"Host": "localhost.evil.example"}),
    ("GET", {"Host": "evil.example@localhost"}),
    ("GET", {"Host": "[::1]evil.example"}),
    ("GET", {"Host": "sub.news.example.org"}),
    ("GET", {"Host": "localhost\xff"}),
    ("GET", {"Host": "evil.example", "Sec-Fetch-Site": "none", **FOLLOWED}),
    ("GET", {"Host": "localhost", "Origin": "http://evil.example"}),
    ("GET", {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
    ("GET", {"Host": "localhost", "Sec-Fetch-Site": "same-site"}),
    ("GET", {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
    (
        "GET",
        {
            "Host": "localhost",
            "Sec-Fetch-Site": "cross-site",
            **FOLLOWED,
            "Sec-Fetch-Dest": "iframe",
        },
    ),
    ("POST", {"Host": "localhost", "Sec-Fetch-Site": "cross-site", **FOLLOWED}),
    *(
        (method, {**OWN, "Origin": origin})
        for method in ("POST", "PUT", "DELETE", "websocket")
        for origin in (
            "null",
            "http://evil.example",
            "http://127.0.0.1:8000",  # the explorer
            "http://127.0.0.1",
            "http://localhost:3000",
            "https://127.0.0.1:3000",
            "http://sub.127.0.0.1:3000",
            "http://127.0.0.1:3000.evil.example",
            "http://127.0.0.1:3000/",
            "HTTP",
            "",
        )
    ),
    ("POST", {**BEHIND_TLS, "Origin": "https://dagster.news.example.org"}),
    ("POST", {**OWN, "Sec-Fetch-Site": "same-site"}),
    ("POST", {"Host": "localhost:3000"}),
    ("POST", {"Host": "localhost:3000", "Content-Type": "text/plain"}),
    ("POST", {"Host": "localhost:3000", "Content-Type": "text/plain; application/json"}),
    ("POST", {"Host": "localhost:3000", "Content-Type": "multipart/form-data; boundary=x"}),
    ("POST", {**PROGRAM, "Sec-Fetch-Site": "same-origin"}),
    ("POST", {**PROGRAM, "Sec-Fetch-Mode": "cors"}),
    ("websocket", {"Host": "localhost:3000"}),
]


def _scope(kind: str, headers: dict[str, str]) -> Message:
    """Return the scope of a request with this method, or of a websocket."""
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    if kind == "websocket":
        return {"type": kind, "scheme": "ws", "path": "/graphql", "headers": raw}
    return {"type": "http", "scheme": "http", "method": kind, "path": "/graphql", "headers": raw}


@pytest.mark.parametrize(("kind", "headers"), ANSWERED, ids=str)
def test_what_our_own_pages_and_programs_send_is_answered(
    kind: str, headers: dict[str, str]
) -> None:
    assert refusal(_scope(kind, headers), ALLOWED) is None


@pytest.mark.parametrize(("kind", "headers"), REFUSED, ids=ascii)
def test_a_request_of_a_foreign_page_is_refused(kind: str, headers: dict[str, str]) -> None:
    reason = refusal(_scope(kind, headers), ALLOWED)
    assert reason is not None and reason.isascii() and "\n" not in reason


def test_a_second_host_header_is_refused() -> None:
    scope = _scope("GET", {"Host": "localhost"})
    scope["headers"] *= 2
    assert refusal(scope, ALLOWED) is not None


@pytest.mark.parametrize(
    ("method", "headers", "is_answered"),
    [
        ("GET", {}, False),
        ("GET", {"Accept": "image/avif,*/*"}, False),
        ("GET", {"Accept": "text/html,*/*"}, True),  # the playground, which runs nothing
        ("HEAD", {"Accept": "text/html"}, False),
        ("POST", {"Content-Type": "application/json"}, True),
        ("POST", {"Content-Type": "application/graphql"}, False),
        ("POST", {"Content-Type": "text/plain"}, False),
        ("POST", {}, False),
    ],
    ids=str,
)
def test_graphql_runs_only_what_is_sent_as_json_by_post(
    method: str, headers: dict[str, str], is_answered: bool
) -> None:
    scope = _scope(method, headers)
    assert (graphql_refusal(scope) is None) == is_answered
    assert graphql_refusal({**scope, "path": "/server_info"}) is None


@pytest.mark.parametrize("name", ["*.example.org", "http://x.example", "x.example:3000", ""])
def test_a_configured_name_that_no_host_header_can_hold_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a host name"):
        allowed_names([name])


@pytest.mark.parametrize("kind", ["GET", "websocket"])
def test_requests_and_websockets_are_wrapped_alike(kind: str) -> None:
    own = {"Host": "localhost", "Origin": "http://localhost"}
    assert _answer(_scope(kind, own)) == [{"type": "inner"}]
    assert _answer({"type": "lifespan"}) == [{"type": "inner"}]
    start, body = _answer(_scope(kind, {"Host": "evil.example"}))
    expected = "websocket.http.response.start" if kind == "websocket" else "http.response.start"
    assert (start["type"], start["status"]) == (expected, 400)
    assert body["body"].startswith(b"Host 'evil.example' is not allowed: use one of ")
    assert body["body"].endswith(b"NEWS_PLATFORM_ALLOWED_HOSTS\n")


def _answer(scope: Message) -> list[Message]:
    """Return what the wrapped app sends; the app inside sends `inner` alone."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {}

    async def inner(_scope: Message, _receive: object, send_inner: object) -> None:
        await send({"type": "inner"})

    asyncio.run(AllowedHosts(inner, allowed=ALLOWED)(scope, receive, send))
    return sent
