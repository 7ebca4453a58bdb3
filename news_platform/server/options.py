"""Check the settings of a server: where it listens and whom it answers."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from news_platform.errors import ConfigError
from news_platform.settings import Settings
from news_platform.web.allowed_hosts import LOOPBACK_NAMES, allowed_names, is_loopback

_SHORTEST_TOKEN = 16
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where a server listens and whom it answers."""

    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: frozenset[str] = LOOPBACK_NAMES
    token: str | None = field(default=None, repr=False)
    requests_per_minute: int = 1200
    trusted_proxies: tuple[Network, ...] = ()
    dagster_url: str | None = None


def server_options(settings: Settings, *, host: str, port: int) -> ServerOptions:
    """Return the options; raise ConfigError if strangers could read the data."""
    given = settings.server
    if not is_loopback(host) and not given.token:
        raise ConfigError(
            f"cannot serve on {host!r} without a token: set NEWS_PLATFORM_SERVER_TOKEN, or use "
            "127.0.0.1",
            thing=host,
        )
    if given.token and len(given.token) < _SHORTEST_TOKEN:
        raise ConfigError(
            f"NEWS_PLATFORM_SERVER_TOKEN is too short: expected at least {_SHORTEST_TOKEN} "
            "characters",
            thing="NEWS_PLATFORM_SERVER_TOKEN",
        )
    return ServerOptions(
        host=host,
        port=port,
        allowed_hosts=_allowed(settings, host),
        token=given.token,
        requests_per_minute=max(0, given.requests_per_minute),
        trusted_proxies=parse_proxies(given.trusted_proxies),
        dagster_url=_http_url("NEWS_PLATFORM_DAGSTER_URL", given.dagster_url),
    )


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of the text `HOST:PORT`; raise ConfigError if it is another."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65_536:
        raise ConfigError(f"invalid address {text!r}: expected HOST:PORT", thing=text)
    return found["host"].strip("[]"), int(found["port"])


def _allowed(settings: Settings, host: str) -> frozenset[str]:
    try:
        names = allowed_names(settings.ui.allowed_hosts)
    except ConfigError as error:
        raise ConfigError(f"NEWS_PLATFORM_ALLOWED_HOSTS: {error}") from error
    return names | {f"[{host}]" if ":" in host else host.lower()}


def parse_proxies(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the addresses and networks of proxies; raise ConfigError for any other text."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise ConfigError(
                f"NEWS_PLATFORM_TRUSTED_PROXIES: {text!r} is not an address or a network such as "
                "10.0.0.5 or 10.0.0.0/24",
                thing=text,
            ) from error
    return tuple(found)


def _http_url(name: str, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"{name}={url!r} is not an address: expected http:// or https://")
    return url.rstrip("/") if url else None
