"""Real handshakes: which certificates are believed, and what follows when none is.

The fetcher asks a public address as ever; only the socket leads to loopback.
"""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from news_platform.domain_metadata.fetchers import DomainFetcher, HostRobots
from news_platform.errors import FetchError
from news_platform.web.fetch import FetchOptions, Response, WebFetcher
from news_platform_tests.web.certificates import Authority, new_authority
from news_platform_tests.web.site import Answer, body, serve

HOST = "a.example"
URL = f"https://{HOST}/robots.txt"
ANSWERS: dict[str, Answer] = {"/robots.txt": body(b"User-agent: *\nDisallow: /x\n")}
QUICK = FetchOptions(total_timeout_seconds=10)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return new_authority()


def public_address(host: str) -> list[str]:
    return ["93.184.215.14"]


def detour(ports: dict[int, int]) -> type[socket.socket]:
    """Return sockets that dial loopback, at the port that stands for the one asked for."""

    class Detour(socket.socket):
        def connect(self, address: object) -> None:
            assert isinstance(address, tuple) and address[0] == public_address("")[0]
            super().connect(("127.0.0.1", ports[address[1]]))

    return Detour


async def ask(tls: ssl.SSLContext, trust: ssl.SSLContext | None) -> Response:
    """Ask for URL at a server that speaks TLS with this context."""
    async with serve(ANSWERS, tls=tls) as site:
        return await ask_at(site.port, trust)


async def ask_at(port: int, trust: ssl.SSLContext | None) -> Response:
    async with WebFetcher(
        QUICK, lookup=public_address, make_socket=detour({443: port}), trust=trust
    ) as fetcher:
        return await fetcher.fetch(URL)


async def ask_plain_server(trust: ssl.SSLContext) -> Response:
    """Ask by https at a server that speaks plain http and says so, as web servers do."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        return await ask_at(server.sockets[0].getsockname()[1], trust)


async def ask_robots(tls: ssl.SSLContext, trust: ssl.SSLContext | None) -> HostRobots:
    """Survey a host whose port 443 speaks TLS and whose port 80 answers plainly."""
    async with serve(ANSWERS, tls=tls) as secure, serve(ANSWERS) as plain:
        sockets = detour({443: secure.port, 80: plain.port})
        async with WebFetcher(
            QUICK, lookup=public_address, make_socket=sockets, trust=trust
        ) as fetcher:
            return await DomainFetcher(fetcher, lambda: datetime.now(UTC)).fetch_robots(HOST)


def reason(asking: Coroutine[None, None, Response]) -> str:
    with pytest.raises(FetchError) as caught:
        asyncio.run(asking)
    return caught.value.reason


def test_a_certificate_of_a_trusted_authority_is_believed(
    authority: Authority, tmp_path: Path
) -> None:
    found = asyncio.run(ask(authority.serving(HOST, tmp_path), authority.trusting()))
    assert (found.status, found.final_url) == (200, URL)


def test_an_unknown_authority_an_expired_certificate_and_another_hosts_are_not_believed(
    authority: Authority, tmp_path: Path
) -> None:
    assert reason(ask(authority.serving(HOST, tmp_path), None)) == "tls"
    assert reason(ask(authority.serving(HOST, tmp_path), new_authority().trusting())) == "tls"
    yesterday = datetime.now(UTC) - timedelta(days=1)
    expired = authority.serving(HOST, tmp_path, until=yesterday)
    assert reason(ask(expired, authority.trusting())) == "tls"
    other = authority.serving("b.example", tmp_path)
    assert reason(ask(other, authority.trusting())) == "tls"


def test_plain_http_on_the_port_of_tls_is_a_failure_of_tls(authority: Authority) -> None:
    assert reason(ask_plain_server(authority.trusting())) == "tls"


def test_a_host_without_a_good_certificate_is_asked_by_http_once_and_that_is_told(
    authority: Authority, tmp_path: Path
) -> None:
    found = asyncio.run(ask_robots(authority.serving("b.example", tmp_path), authority.trusting()))
    assert found.facts.tls_failed and found.facts.status_code == 200
    assert found.facts.final_url == f"http://{HOST}/robots.txt"
    assert found.body == b"User-agent: *\nDisallow: /x\n"


def test_a_host_with_a_good_certificate_is_not_asked_by_http(
    authority: Authority, tmp_path: Path
) -> None:
    found = asyncio.run(ask_robots(authority.serving(HOST, tmp_path), authority.trusting()))
    assert not found.facts.tls_failed and found.facts.final_url == URL
