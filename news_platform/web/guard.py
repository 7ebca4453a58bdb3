"""Decide whether a URL or an IP address may be connected to; nothing is looked up here."""

import ipaddress
import re
import socket
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from yarl import URL

from news_platform.errors import FetchError
from news_platform.web.network_allowlist import WEB_PORTS, NetworkAllowlist

# How an operator opens a place of the own network; part of every refusal.
ALLOW_CURE = "to allow it, add it as host:port to NEWS_PLATFORM_WEB_ALLOW"
AddressInfo = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
]

# `is_global` is True for these, yet they contain or reach another address: NAT64, Teredo, 6to4 and
# its relays, mapped and compatible IPv4, site-local IPv6. Multicast is checked separately.
_TUNNELS = tuple(
    ipaddress.ip_network(net)
    for net in (
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "::/96",
        "::ffff:0:0/96",
        "fec0::/10",
        "192.88.99.0/24",
    )
)
_NOTHING = NetworkAllowlist()
# A resolver written in C would stop at the first of these and look up another name.
_NO_HOST_CHARACTER = re.compile(r"[\x00-\x20\x7f]")


class BlockedAddress(OSError):
    """The address to connect to is not on the public internet."""


@lru_cache(maxsize=8192)
def is_public(address: str) -> bool:
    """Return True for an ordinary public IP address, False for any other text."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    tunnelled = any(ip.version == net.version and ip in net for net in _TUNNELS)
    return ip.is_global and not ip.is_multicast and not tunnelled


def is_address(host: str) -> bool:
    """Return True if a host is an IP literal (IPv6 without its brackets)."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def checked_url(
    url: str, *, mapped: Collection[str] = (), allowed: NetworkAllowlist = _NOTHING
) -> URL:
    """Return the URL if we may fetch it, else raise FetchError (bad_url, blocked_port).

    Hosts in `mapped` lead to an address that the operator chose, so any port is allowed. Places in
    `allowed` are open at the ports that they are listed with.
    """
    try:
        target = URL(url)
    except ValueError as error:
        raise FetchError(f"cannot fetch {url!r}: {error}", thing=url, reason="bad_url") from error
    login = target.raw_user or target.raw_password
    if target.scheme not in ("http", "https") or not target.raw_host or login:
        expected = "an http or https URL with a host and no credentials"
        raise FetchError(f"cannot fetch {url!r}: not {expected}", thing=url, reason="bad_url")
    if _NO_HOST_CHARACTER.search(target.raw_host):
        message = f"cannot fetch {url!r}: the host contains a blank or control character"
        raise FetchError(message, thing=url, reason="bad_url")
    port = target.port or 0
    is_listed = allowed.has_host(target.raw_host, port) or allowed.has_port(port)
    if port not in WEB_PORTS and target.raw_host not in mapped and not is_listed:
        message = f"cannot fetch {url!r}: port {port} is not 80 or 443; {ALLOW_CURE}"
        raise FetchError(message, thing=url, reason="blocked_port")
    return target


def guarded_socket(
    host_map: Mapping[str, tuple[str, int]],
    *,
    allowed: NetworkAllowlist = _NOTHING,
    granted: Collection[tuple[str, int]] = (),
    make: type[socket.socket] = socket.socket,
) -> Callable[[AddressInfo], socket.socket]:
    """Return a socket factory that checks the address of each connection, then calls `make`.

    A check in the resolver is not enough: IP literals bypass it, and a second lookup may give
    another address (DNS rebinding). `granted` are the addresses and ports of listed hosts, which
    the resolver adds when it has looked them up.
    """
    mapped = frozenset(host_map.values())

    def open_socket(info: AddressInfo) -> socket.socket:
        family, kind, proto, _, place = info
        address, port = str(place[0]), int(str(place[1]))
        is_open = port in WEB_PORTS and is_public(address)
        is_listed = (address, port) in granted or allowed.has_address(address, port)
        if (address, port) not in mapped and not is_open and not is_listed:
            message = f"{address} port {port} is not a public web address; {ALLOW_CURE}"
            raise BlockedAddress(message)
        return make(family, kind, proto)

    return open_socket
