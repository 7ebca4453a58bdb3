"""Decide which URLs and addresses may be fetched: public ones, and those an operator allows."""

import ipaddress
import re
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import urlsplit

from yarl import URL

from news_platform.errors import ConfigError, FetchError

WEB_PORTS = frozenset({80, 443})
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# `10.1.0.0/16`, `10.1.0.0/16:8080`, `[fd00::/8]:8080`
_CIDR = re.compile(r"\[?([0-9a-fA-F:.]+/\d{1,3})\]?(?::(\d{1,5}))?")
# `rsshub.intranet:1200`, `10.1.2.3:80`, `[fd00::7]:80`
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(\d{1,5})")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class NetworkAllowlist:
    """Hosts with their ports, and networks with theirs (None: 80 and 443), that may be private."""

    hosts: frozenset[tuple[str, int]] = frozenset()
    networks: tuple[tuple[_Network, int | None], ...] = ()

    def has_host(self, host: str, port: int) -> bool:
        """Return whether this host is listed with this port."""
        return (host.lower(), port) in self.hosts

    def ports_of(self, host: str) -> frozenset[int]:
        """Return the ports that are listed for a host."""
        return frozenset(port for name, port in self.hosts if name == host.lower())

    def has_address(self, address: str, port: int | None = None) -> bool:
        """Return whether an IP address is in a listed network; with a port, also that one."""
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(
            ip.version == network.version
            and ip in network
            and (port is None or _is_port(port, listed))
            for network, listed in self.networks
        )

    def with_proxy(self, proxy: URL | None) -> "NetworkAllowlist":
        """Return the allowlist extended by the outgoing proxy, which may be dialled, too."""
        if proxy is None or not proxy.raw_host:
            return self
        return replace(self, hosts=self.hosts | {(proxy.raw_host, proxy.port or 80)})

    def has_port(self, port: int) -> bool:
        """Return whether some network is listed with this port."""
        return any(listed == port for _, listed in self.networks)


def _is_port(port: int, listed: int | None) -> bool:
    return port == listed if listed is not None else port in WEB_PORTS


def parse_allowed(entries: Iterable[str]) -> NetworkAllowlist:
    """Return the allowlist of `host:port` and CIDR entries; raise ConfigError for other text."""
    hosts: set[tuple[str, int]] = set()
    networks: list[tuple[_Network, int | None]] = []
    for entry in entries:
        if found := _CIDR.fullmatch(entry):
            port = _port(found[2], entry) if found[2] else None
            networks.append((_network(found[1], entry), port))
        elif found := _HOST.fullmatch(entry):
            hosts.add((found[1].strip("[]").lower(), _port(found[2], entry)))
        else:
            raise _invalid(entry)
    return NetworkAllowlist(frozenset(hosts), tuple(networks))


def checked_proxy(url: str | None) -> str:
    """Return the URL of the outgoing proxy, or ''; raise ConfigError if it is not one."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_proxy = parts.scheme == "http" and parts.hostname and parts.port
    except ValueError:
        is_proxy = None
    if not is_proxy:
        # The URL is not part of the message because it may contain a password.
        raise ConfigError("invalid NEWS_PLATFORM_WEB_PROXY: expected http://HOST:PORT")
    return url


def _network(text: str, entry: str) -> _Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise _invalid(entry, str(error)) from error


def _port(text: str, entry: str) -> int:
    if not 0 < int(text) <= _MAX_PORT:
        raise _invalid(entry)
    return int(text)


def _invalid(entry: str, cause: str = "") -> ConfigError:
    expected = "expected host:port, or a network such as 10.1.0.0/16 or 10.1.0.0/16:8080"
    detail = f" ({cause})" if cause else ""
    return ConfigError(f"NEWS_PLATFORM_WEB_ALLOW has {entry!r}{detail}: {expected}", thing=entry)


# How an operator opens a place of the own network; part of every refusal.
ALLOW_CURE = "to allow it, add it as host:port to NEWS_PLATFORM_WEB_ALLOW"
AddressInfo = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
]

# `is_global` is True for these, yet they contain or reach another address: NAT64, Teredo, 6to4 and
# its relays, mapped, translated and compatible IPv4, site-local IPv6, protocol assignments,
# the services of Azure's own hosts, and what later RFCs reserve for examples and segment routing.
# Multicast is checked separately.
_TUNNELS = tuple(
    ipaddress.ip_network(net)
    for net in (
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "::/96",
        "::ffff:0:0/96",
        "::ffff:0:0:0/96",
        "fec0::/10",
        "192.88.99.0/24",
        "192.0.0.0/24",
        "168.63.129.16/32",
        "3fff::/20",
        "5f00::/16",
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
