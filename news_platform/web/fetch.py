"""Fetch a URL politely, within bounds, and only from public addresses.

Every redirect is checked like the first request. Cookies live within one fetch: sites set one and
lead to the same page again, or to a login without it. A body is cut at its cap while it is being
inflated, and `Response.truncated` reports the cut. Every HTTP status is a Response. A FetchError
means that there was no response; its `reason` is one word to count by:

    timeout  nxdomain  dns  refused  reset  tls  blocked_address  blocked_port  bad_url
    too_many_redirects  bad_encoding  incomplete  protocol  network  host_waits
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Protocol, Self

import aiohttp
from yarl import URL

from news_platform.errors import FetchError
from news_platform.web.guard import BlockedAddress, NetworkAllowlist, checked_url, guarded_socket
from news_platform.web.rate_limits import ConcurrencyLimits
from news_platform.web.resolver import CachingResolver, Lookup, ResolverOptions
from news_platform.web.responses import (
    REDIRECT_STATUSES,
    FetchCookies,
    ResponseBody,
    host_wait_seconds,
    next_url,
)

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_NO_REPEATED_HEADERS: Mapping[str, tuple[str, ...]] = MappingProxyType({})
# Real sites send policies of 20 KB in one header; aiohttp's default limit is 8 KB.
_MAX_HEADER_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Response:
    """A server's response after redirects.

    `headers` have lower-case names. `redirects` are the URLs that led to `final_url`, in order, and
    `redirect_statuses` the status of each of them. `truncated` means that `body` was cut at the
    cap. `elapsed_seconds` does not include the time spent waiting for our own rate limits.
    `repeated_headers` has the lines of headers that were sent more than once.
    """

    url: str
    final_url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...] = ()
    elapsed_seconds: float = 0.0
    truncated: bool = False
    redirect_statuses: tuple[int, ...] = ()
    repeated_headers: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: _NO_REPEATED_HEADERS
    )

    def header_lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a header as they were sent."""
        lines = self.repeated_headers.get(name)
        if lines is None and name in self.headers:
            lines = (self.headers[name],)
        return lines or ()


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Identity, limits and timeouts of a fetcher; `pause_seconds` is between requests to a host.

    `host_map` sends requests for a host, http or https, as plain HTTP to an address and port, for
    sites that a test or demo serves itself. Only these may have a private address, and
    `per_address` does not apply to them. Without `measures_time` every response takes 0 seconds, so
    that two runs over the same sites record the same. With `waits_for_hosts`, a host that answers
    429, or 503 with Retry-After, is not asked again before its time (HostWaits). `allowed` are
    places of own networks. Other places are reached through `proxy`, if there is one:
    `http://HOST:PORT`.
    """

    user_agent: str = "NewsPlatformBot/0.1"
    contact: str = ""
    total_timeout_seconds: float = 30.0
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 15.0
    per_host: int = 2
    pause_seconds: float = 0.0
    per_address: int = 8
    max_connections: int = 256
    max_body_bytes: int = 10 * 1024 * 1024
    max_redirects: int = 5
    max_crawl_delay_seconds: float = 30.0
    keepalive_seconds: float = 5.0
    resolver: ResolverOptions = field(default_factory=ResolverOptions)
    host_map: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    measures_time: bool = True
    waits_for_hosts: bool = False
    allowed: NetworkAllowlist = field(default_factory=NetworkAllowlist)
    proxy: str = field(default="", repr=False)

    @property
    def identity(self) -> str:
        """Return the User-Agent header: the product and the contact address."""
        return f"{self.user_agent} (+{self.contact})" if self.contact else self.user_agent


class HostWaits(FetchError):
    """The host has asked us to wait, by an answer to another request; it was not asked again."""

    def __init__(self, host: str, wait_seconds: float) -> None:
        message = f"{host!r} has asked us to wait {wait_seconds:.0f} seconds"
        super().__init__(message, thing=host, reason="host_waits")
        self.wait_seconds = wait_seconds


class Fetcher(Protocol):
    """Fetches URLs: the web, or a dict in a test."""

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        private_headers: Mapping[str, str] = _NO_HEADERS,
        max_body_bytes: int | None = None,
    ) -> Response:
        """GET a URL, following redirects; raise FetchError if there is no response.

        `private_headers`, such as a login, are sent only to the origin of this URL.
        """
        ...


class PoliteFetcher(Fetcher, Protocol):
    """A fetcher that respects crawl delays."""

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Wait at least this long between two requests to a host from now on."""
        ...


class _Received(NamedTuple):
    """One response, which may be a redirect."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    repeated: Mapping[str, tuple[str, ...]]

    @property
    def set_cookies(self) -> tuple[str, ...]:
        line = self.headers.get("set-cookie")
        return self.repeated.get("set-cookie") or ((line,) if line else ())


@dataclass(slots=True)
class _Budget:
    """Seconds left of a fetch; waiting for our own rate limits does not count."""

    left_seconds: float


def system_lookup(host: str) -> Sequence[str]:
    """Return the addresses of a host from the operating system, in its order of preference."""
    found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class WebFetcher:
    """Fetch from the real web with one aiohttp session; use as an async context manager.

    `trust` holds the trusted certificate authorities, by default the system's.
    """

    def __init__(
        self,
        options: FetchOptions,
        *,
        lookup: Lookup = system_lookup,
        make_socket: type[socket.socket] = socket.socket,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.options = options
        self._lookup = lookup
        self._make_socket = make_socket
        self._trust = trust
        self._hosts = ConcurrencyLimits(options.per_host, delay_seconds=options.pause_seconds)
        self._waiting: dict[str, float] = {}  # until when, on the event loop's clock
        self._addresses = ConcurrencyLimits(options.per_address)
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        options = self.options
        self._proxy = URL(options.proxy) if options.proxy else None
        self._resolver = CachingResolver(
            self._lookup,
            host_map=options.host_map,
            options=options.resolver,
            allowed=options.allowed.with_proxy(self._proxy),
        )
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            use_dns_cache=False,
            socket_factory=guarded_socket(
                options.host_map,
                allowed=options.allowed,
                granted=self._resolver.granted,
                make=self._make_socket,
            ),
            ssl=self._trust or True,
            limit=options.max_connections,
            keepalive_timeout=options.keepalive_seconds,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": options.identity, "Accept-Encoding": "gzip, deflate, br"},
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=options.connect_timeout_seconds,
                sock_read=options.read_timeout_seconds,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        self._session = await self._resources.enter_async_context(session)
        self._resources.push_async_callback(self._resolver.close)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Wait this long between two requests to a host, at most `max_crawl_delay_seconds`."""
        self._hosts.set_delay(host, min(seconds, self.options.max_crawl_delay_seconds))

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        private_headers: Mapping[str, str] = _NO_HEADERS,
        max_body_bytes: int | None = None,
    ) -> Response:
        """GET a URL, following redirects; raise FetchError if there is no response.

        `private_headers`, such as a login, are sent only to the origin of this URL.
        """
        cap = self.options.max_body_bytes if max_body_bytes is None else max_body_bytes
        budget = _Budget(self.options.total_timeout_seconds)
        target = self._checked(url)
        own_origin = target.origin() if private_headers else None
        redirects: list[str] = []
        statuses: list[int] = []
        cookies = FetchCookies()
        while True:
            # Another site must not learn the login, not even by a redirect of the first one.
            is_own = own_origin is not None and target.origin() == own_origin
            private = private_headers if is_own else _NO_HEADERS
            sent = {**headers, **cookies.headers(target), **private}
            received = await self._request(target, headers=sent, cap_bytes=cap, budget=budget)
            is_redirect = received.status in REDIRECT_STATUSES
            location = received.headers.get("location") if is_redirect else None
            if location is None:
                return Response(
                    url=url,
                    final_url=str(target),
                    status=received.status,
                    headers=received.headers,
                    body=received.body,
                    redirects=tuple(redirects),
                    redirect_statuses=tuple(statuses),
                    elapsed_seconds=self._elapsed_seconds(budget),
                    truncated=received.truncated,
                    repeated_headers=received.repeated,
                )
            redirects.append(str(target))
            statuses.append(received.status)
            following = next_url(
                target,
                location,
                visited=redirects,
                max_redirects=self.options.max_redirects,
                has_new_cookie=cookies.add(received.set_cookies, target),
            )
            target = self._checked(following)

    def _checked(self, url: str) -> URL:
        options = self.options
        target = checked_url(url, mapped=options.host_map, allowed=options.allowed)
        host, port = target.raw_host or "", target.port or 0
        # The proxy may be dialled for others, but is not a site itself.
        is_proxy = self._proxy is not None and host == self._proxy.raw_host
        if is_proxy and not options.allowed.has_host(host, port):
            message = f"cannot fetch {url!r}: it is the outgoing proxy"
            raise FetchError(message, thing=url, reason="blocked_address")
        return target

    def _elapsed_seconds(self, budget: _Budget) -> float:
        options = self.options
        return options.total_timeout_seconds - budget.left_seconds if options.measures_time else 0.0

    async def _request(
        self, target: URL, *, headers: Mapping[str, str], cap_bytes: int, budget: _Budget
    ) -> _Received:
        host = target.raw_host or ""
        async with self._hosts.enter(host):
            # Only now: the answer to the request before this one may ask us to wait.
            self._refuse_waiting(host)
            if host in self.options.host_map:
                received = await self._timed_get(
                    target, headers=headers, cap_bytes=cap_bytes, budget=budget
                )
            else:
                address = await self._address(target)
                async with self._addresses.enter(address):
                    received = await self._timed_get(
                        target, headers=headers, cap_bytes=cap_bytes, budget=budget
                    )
            if self.options.waits_for_hosts and (wait := host_wait_seconds(*received[:2])):
                self._waiting[host] = asyncio.get_running_loop().time() + wait
            return received

    def _refuse_waiting(self, host: str) -> None:
        """Raise HostWaits while a host wants no request."""
        if (until := self._waiting.get(host)) is None:
            return
        left = until - asyncio.get_running_loop().time()
        if left > 0:
            raise HostWaits(host, left)
        del self._waiting[host]

    async def _address(self, target: URL) -> str:
        """Return the address for the limit per address; raise FetchError if it is not open."""
        host = target.raw_host or ""
        try:
            return (await self._resolver.addresses(host))[0]
        except FetchError as error:
            # Behind a proxy, names of the outside may be unknown to the own name server.
            if self._proxy_for(target) is None or error.reason == "blocked_address":
                raise
            return host

    def _proxy_for(self, target: URL) -> URL | None:
        """Return the proxy; None without one, and for listed places, which are reached directly."""
        if self._proxy is None:
            return None
        host, allowed = target.raw_host or "", self.options.allowed
        is_own = host in self.options.host_map or allowed.ports_of(host)
        return None if is_own or allowed.has_address(host) else self._proxy

    async def _timed_get(
        self, target: URL, *, headers: Mapping[str, str], cap_bytes: int, budget: _Budget
    ) -> _Received:
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            async with asyncio.timeout(budget.left_seconds):
                return await self._get(target, headers=headers, cap_bytes=cap_bytes)
        except (aiohttp.ClientError, OSError, FetchError) as error:
            raise _as_fetch_error(error, str(target)) from error
        finally:
            budget.left_seconds -= clock() - started

    async def _get(self, target: URL, *, headers: Mapping[str, str], cap_bytes: int) -> _Received:
        mapped = target.raw_host in self.options.host_map
        dialled = target.with_scheme("http") if mapped else target
        async with self._session.get(
            dialled, headers=headers, allow_redirects=False, proxy=self._proxy_for(target)
        ) as raw:
            received_headers, repeated = _merged_headers(raw)
            if raw.status in REDIRECT_STATUSES:
                return _Received(raw.status, received_headers, b"", False, repeated)
            body = ResponseBody(received_headers.get("content-encoding", ""), cap_bytes=cap_bytes)
            while not body.full and (piece := await raw.content.readany()):
                body.feed(piece)
            if body.full:
                raw.close()  # the rest is not needed, so the connection is dropped
            return _Received(raw.status, received_headers, body.finish(), body.full, repeated)


def _merged_headers(
    raw: aiohttp.ClientResponse,
) -> tuple[dict[str, str], Mapping[str, tuple[str, ...]]]:
    """Return the headers by lower-case name, and the lines of those that were sent repeatedly.

    Repeated ones are joined by commas (RFC 9110).
    """
    headers: dict[str, str] = {}
    repeated: dict[str, tuple[str, ...]] = {}
    for name, value in raw.headers.items():
        key = name.lower()
        if key in headers:
            repeated[key] = (*repeated.get(key, (headers[key],)), value)
            headers[key] = f"{headers[key]}, {value}"
        else:
            headers[key] = value
    return headers, repeated or _NO_REPEATED_HEADERS


def _as_fetch_error(error: aiohttp.ClientError | OSError | FetchError, url: str) -> FetchError:
    """Return the error of a fetch, with one word of why to count by."""
    if isinstance(error, FetchError):
        return FetchError(f"cannot fetch {url!r}: {error}", thing=url, reason=error.reason)
    detail = str(error) or type(error).__name__
    return FetchError(f"cannot fetch {url!r}: {detail}", thing=url, reason=_reason(error))


_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "timeout"),
    (BlockedAddress, "blocked_address"),
    (ConnectionRefusedError, "refused"),
    (ConnectionResetError, "reset"),
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.InvalidURL, "bad_url"),
    (aiohttp.ClientSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (aiohttp.ClientPayloadError, "incomplete"),
    (aiohttp.ServerDisconnectedError, "reset"),
    (aiohttp.ClientResponseError, "protocol"),
)


def _reason(error: BaseException | None) -> str:
    """Return the reason of the first known cause in the chain of exceptions."""
    while error is not None:
        for kind, reason in _REASONS:
            if isinstance(error, kind):
                return reason
        error = error.__cause__ or error.__context__
    return "network"
