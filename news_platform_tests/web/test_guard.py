"""Which addresses we dial: the table of the internet's odd corners, and the socket itself."""

import asyncio
import re
import socket

import aiohttp
import pytest

from news_platform.errors import FetchError
from news_platform.web.guard import BlockedAddress, checked_url, guarded_socket, is_public

PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450::1")
OTHERS = (
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1",
    "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1",
    "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250",
    "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
    "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1", "2001::1", "2001:db8::1",
    "2002:7f00:1::", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    "ff0e::1", "192.0.0.9", "168.63.129.16", "::ffff:0:7f00:1", "3fff::1", "5f00::1",
    "not an address", "",
)  # fmt: skip


def test_only_an_ordinary_address_is_public() -> None:
    assert [address for address in PUBLIC + OTHERS if is_public(address)] == list(PUBLIC)


@pytest.mark.parametrize("place", [("127.0.0.1", 80), ("10.0.0.1", 443), ("8.8.8.8", 8080)])
def test_the_socket_refuses_private_addresses_and_foreign_ports(place: tuple[str, int]) -> None:
    with pytest.raises(BlockedAddress):
        guarded_socket({})((socket.AF_INET, socket.SOCK_STREAM, 6, "", place))


def test_the_socket_opens_for_public_web_addresses_and_for_mapped_places() -> None:
    mapped = guarded_socket({"a.example": ("127.0.0.1", 43211)})
    for place in (("8.8.8.8", 443), ("127.0.0.1", 43211)):
        mapped((socket.AF_INET, socket.SOCK_STREAM, 6, "", place)).close()
    for address in ("127.0.0.1", "127.0.0.2"):
        with pytest.raises(BlockedAddress):
            mapped((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 43212)))


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]/"])
def test_an_ip_literal_that_passes_no_resolver_is_stopped_at_the_socket(url: str) -> None:
    async def dial() -> None:
        connector = aiohttp.TCPConnector(socket_factory=guarded_socket({}))
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url):
            raise AssertionError("dialled")

    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        asyncio.run(dial())
    assert isinstance(caught.value.os_error, BlockedAddress)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://a.test:22/", "blocked_port"),
        ("http://a.test:99999/", "bad_url"),
        ("//a.test/", "bad_url"),
        ("http://:secret@a.test/", "bad_url"),
        ("http://a\0b.test/", "bad_url"),
    ],
)
def test_other_urls_are_refused_with_their_name(url: str, reason: str) -> None:
    with pytest.raises(FetchError) as caught:
        checked_url(url)
    # A password in the address is hidden, as in every error.
    shown = re.sub("//[^/]*@", "//***@", url)
    assert (caught.value.reason, caught.value.thing) == (reason, shown)
