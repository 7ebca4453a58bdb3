"""Pure: who sends a request, behind proxies that are trusted to say for whom they ask."""

import ipaddress
from collections.abc import Iterable, Sequence

from news_platform.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return addresses and networks; raise ConfigError for what is neither."""
    return tuple(map(_network, texts))


def client_address(
    peer: str, headers: Iterable[tuple[bytes, bytes]], trusted: Sequence[Network]
) -> str:
    """Return the nearest address that is not a trusted proxy's.

    Each proxy appends whom it serves to X-Forwarded-For. The list is read from its end, and only as
    far as trusted proxies wrote it: everything before that, the client may have made up.
    """
    address = peer
    for claimed in reversed(_forwarded(headers) if trusted else []):
        if not _is_trusted(address, trusted) or _parse(claimed) is None:
            break
        address = claimed
    return address


def _forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    lines = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return [part.strip() for line in lines for part in line.split(",")]


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(parsed in network for network in trusted)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not an address or a network such as 10.0.0.5 or 10.0.0.0/24", thing=text
        ) from error
