"""Who is answered: hosts, methods, tokens, and how often."""

import base64
import socket
import time
from pathlib import Path

import pytest

from news_platform.errors import ConfigError
from news_platform.server.guards import (
    CONTENT_SECURITY_POLICY,
    ClientRates,
    client_name,
    server_options,
)
from news_platform.settings import load_settings
from news_platform_tests.server.explorer import Explorer, exploring

TOKEN = "a-long-and-secret-token"


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_a_foreign_host_gets_400_with_one_line(small: Explorer) -> None:
    for host in ("evil.example", f"localhost.evil.example:{small.port}"):
        reply = small.get("/api/v1/search?q=bridge", Host=host)
        assert reply.status == 400
        assert reply.text.count("\n") == 1 and "NEWS_PLATFORM_ALLOWED_HOSTS" in reply.text
    for host in ("localhost", f"127.0.0.1:{small.port}", "[::1]:1"):
        assert small.get("/domains", Host=host).status == 200, host


def test_a_script_of_another_site_is_refused_and_a_link_is_not(small: Explorer) -> None:
    script = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"}
    assert small.get("/", **script).status == 400
    link = {**script, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert small.get("/", Accept="text/html", **link).status == 200


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_only_reading_is_allowed(small: Explorer, method: str) -> None:
    sent = {"Content_Length": "0", "Content_Type": "application/json"}
    reply = small.ask(method, "/api/v1/search?q=bridge", **sent)
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, HEAD"


def test_head_answers_as_get_does_without_a_body(small: Explorer) -> None:
    whole, head = small.get("/domains"), small.ask("HEAD", "/domains")
    assert head.status == 200 and head.body == b""
    assert head.headers["etag"] == whole.headers["etag"]


def test_every_answer_has_the_strict_headers(small: Explorer) -> None:
    for path in ("/", "/nothing", "/static/style.css", "/api/v1/openapi.json", "/?q=%28"):
        headers = small.get(path).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers or "uvicorn" in headers["server"]
    assert small.get("/", Host="evil.example").headers["x-content-type-options"] == "nosniff"


def test_with_a_token_every_request_needs_it(small_root: Path, search_cache: str) -> None:
    environ = {"NEWS_PLATFORM_SERVER_TOKEN": TOKEN, "NEWS_PLATFORM_SEARCH_CACHE": search_cache}
    with exploring(small_root, **environ) as guarded:
        refused = guarded.get("/")
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert guarded.get("/api/v1/status").json["error"]["status"] == 401
        for wrong in ("Bearer wrong", f"Token {TOKEN}", _basic(TOKEN, "x"), "Basic %%", "Bearer"):
            assert guarded.get("/domains", Authorization=wrong).status == 401, wrong
        for right in (f"Bearer {TOKEN}", _basic("anybody", TOKEN)):
            assert guarded.get("/domains", Authorization=right).status == 200, right


def test_another_address_needs_a_token_of_some_length() -> None:
    with pytest.raises(ConfigError, match="without a token: set NEWS_PLATFORM_SERVER_TOKEN"):
        server_options(load_settings({}), host="0.0.0.0", port=1)
    short = load_settings({"NEWS_PLATFORM_SERVER_TOKEN": "short"})
    with pytest.raises(ConfigError, match="too short"):
        server_options(short, host="0.0.0.0", port=1)
    settings = load_settings({"NEWS_PLATFORM_SERVER_TOKEN": TOKEN})
    options = server_options(settings, host="192.0.2.1", port=1)
    assert "192.0.2.1" in options.allowed_hosts
    assert TOKEN not in repr(options)


def test_a_client_waits_after_its_burst_and_others_do_not() -> None:
    limit = ClientRates(60)
    assert [limit.seconds_to_wait("a", now=0.0) for _ in range(20)] == [0.0] * 20
    assert limit.seconds_to_wait("a", now=0.0) == 1.0
    assert limit.seconds_to_wait("b", now=0.0) == 0.0
    assert limit.seconds_to_wait("a", now=1.0) == 0.0
    assert limit.seconds_to_wait("a", now=1.5) == 0.5


@pytest.mark.parametrize(
    ("address", "counted"),
    [("192.0.2.1", "192.0.2.1"), ("2001:db8:1:2::7", "2001:db8:1:2::/64"), ("unknown", "unknown")],
)
def test_an_ipv6_client_counts_as_its_network(address: str, counted: str) -> None:
    assert client_name(address) == counted


@pytest.mark.parametrize(("proxies", "is_limited"), [("127.0.0.0/8", False), ("10.0.0.0/24", True)])
def test_only_a_trusted_proxy_says_who_the_client_is(
    small_root: Path, search_cache: str, proxies: str, is_limited: bool
) -> None:
    environ = {"NEWS_PLATFORM_SERVER_RATE": "60", "NEWS_PLATFORM_SEARCH_CACHE": search_cache}
    with exploring(small_root, NEWS_PLATFORM_TRUSTED_PROXIES=proxies, **environ) as running:
        claims = (f"1.1.1.1, 198.51.100.{number}" for number in range(30))
        replies = [running.get("/static/style.css", X_Forwarded_For=claim) for claim in claims]
        same = [running.get("/static/style.css", X_Forwarded_For="1.1.1.2") for _ in range(30)]
    assert (429 in [reply.status for reply in replies]) is is_limited
    assert 429 in [reply.status for reply in same]


def test_a_request_that_never_ends_is_not_waited_for(
    small_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("news_platform.server.app._HEADER_SECONDS", 0.3)
    with (
        exploring(small_root) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection,
    ):
        whole = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        connection.sendall(whole)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET / HTTP/1.1\r\nHost:")
        started = time.monotonic()
        while connection.recv(65_536):
            pass
        assert time.monotonic() - started < 4, "uvicorn would wait for ever"


def test_too_many_requests_get_429_and_when_to_come_back(
    small_root: Path, search_cache: str
) -> None:
    environ = {"NEWS_PLATFORM_SERVER_RATE": "60", "NEWS_PLATFORM_SEARCH_CACHE": search_cache}
    with exploring(small_root, **environ) as limited:
        statuses = [limited.get("/static/style.css").status for _ in range(30)]
        assert statuses[:20] == [200] * 20
        assert 429 in statuses[20:]
        refused = limited.get("/api/v1/status")
        assert refused.status == 429 and int(refused.headers["retry-after"]) >= 1
        assert refused.json["error"]["message"].startswith("too many requests")
