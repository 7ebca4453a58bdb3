"""Parse NEWS_PLATFORM_WEB_ALLOW into the private hosts and networks that fetches may reach."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from yarl import URL

from news_platform.errors import ConfigError

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
    parts = urlsplit(url)
    try:
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
