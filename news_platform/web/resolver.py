"""Resolve a host name to its public addresses; results and failures are cached."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from news_platform.errors import FetchError
from news_platform.web.guard import ALLOW_CURE, NetworkAllowlist, is_address, is_public

Lookup = Callable[[str], Sequence[str]]
"""Return the addresses of a host, or raise socket.gaierror; may block."""

# The name has no address; every other failure is a problem of the name server.
_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_MAX_REMEMBERED = 20_000
_NOTHING = NetworkAllowlist()


@dataclass(frozen=True, slots=True)
class ResolverOptions:
    """Cache times and the timeout of a lookup."""

    ttl_seconds: float = 300.0
    # Shorter than the pause before any retry, so that a retry makes a new lookup.
    negative_ttl_seconds: float = 30.0
    timeout_seconds: float = 10.0
    threads: int = 32
    # A name that always exists. A machine without network or name server reports "no such name" for
    # every name, so this is believed only after this or any other name was found.
    control_name: str = "a.root-servers.net"


@dataclass(frozen=True, slots=True)
class _LookupResult:
    addresses: tuple[str, ...]
    expires_at: float  # on the event loop's clock
    reason: str = ""
    problem: str = ""


class CachingResolver(AbstractResolver):
    """The resolver of one fetcher; hosts in `host_map` resolve to the address given there."""

    def __init__(
        self,
        lookup: Lookup,
        *,
        host_map: Mapping[str, tuple[str, int]],
        options: ResolverOptions,
        allowed: NetworkAllowlist = _NOTHING,
    ) -> None:
        self._lookup = lookup
        self._allowed = allowed
        # The addresses and ports of listed hosts, for the guard that sees addresses only.
        self.granted: set[tuple[str, int]] = set()
        self._host_map = host_map
        self._options = options
        self._results: dict[str, _LookupResult] = {}
        self._pending: dict[str, asyncio.Task[_LookupResult]] = {}
        self._is_alive = not options.control_name
        # The event loop's own pool has few threads, and all would wait for dead name servers.
        self._threads = ThreadPoolExecutor(options.threads, thread_name_prefix="names")

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Return the public addresses of a host.

        Raise FetchError with reason nxdomain, dns or blocked_address.
        """
        if host in self._host_map:
            return (self._host_map[host][0],)
        result = self._results.get(host)
        if result is None or result.expires_at <= asyncio.get_running_loop().time():
            result = await self._lookup_once(host)
        if result.reason:
            message = f"cannot resolve host {host!r}: {result.problem}"
            raise FetchError(message, thing=host, reason=result.reason)
        return result.addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses as aiohttp expects them; a mapped host also gets its port."""
        port = self._host_map[host][1] if host in self._host_map else port
        return [_result(host, address, port) for address in await self.addresses(host)]

    async def close(self) -> None:
        """Stop new lookups; threads that still wait for a name server end on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _lookup_once(self, host: str) -> _LookupResult:
        task = self._pending.get(host)
        if task is None:
            task = self._pending[host] = asyncio.create_task(self._lookup_and_cache(host))
            task.add_done_callback(lambda _: self._pending.pop(host, None))
        return await asyncio.shield(task)

    async def _lookup_and_cache(self, host: str) -> _LookupResult:
        loop = asyncio.get_running_loop()
        result = await self._checked_lookup(host, loop)
        if len(self._results) >= _MAX_REMEMBERED:
            del self._results[next(iter(self._results))]
        self._results[host] = result
        return result

    async def _checked_lookup(self, host: str, loop: asyncio.AbstractEventLoop) -> _LookupResult:
        forget_at = loop.time() + self._options.negative_ttl_seconds
        try:
            found = await self._find_addresses(host, loop)
        except socket.gaierror as error:
            missing = error.errno in _NO_SUCH_NAME and await self._is_working(loop)
            reason = "nxdomain" if missing else "dns"
            return _LookupResult((), forget_at, reason, error.strerror or str(error))
        except (TimeoutError, UnicodeError) as error:
            return _LookupResult(
                (), forget_at, "dns", str(error) or "the name server did not answer in time"
            )
        usable = self._usable(host, found)
        if not usable:
            problem = f"no public address in {list(found)}; {ALLOW_CURE}"
            return _LookupResult((), forget_at, "blocked_address", problem)
        return _LookupResult(usable, loop.time() + self._options.ttl_seconds)

    def _usable(self, host: str, found: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses that may be dialled: all of a listed host, else the open ones."""
        ports = self._allowed.ports_of(host)
        if ports:
            self.granted.update((address, port) for address in found for port in ports)
            return tuple(found)
        return tuple(it for it in found if is_public(it) or self._allowed.has_address(it))

    async def _find_addresses(self, host: str, loop: asyncio.AbstractEventLoop) -> Sequence[str]:
        if is_address(host):
            return (host,)
        async with asyncio.timeout(self._options.timeout_seconds):
            found = await loop.run_in_executor(self._threads, self._lookup, host)
        self._is_alive = True
        return found

    async def _is_working(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return True if the name server has found any name."""
        if not self._is_alive:
            with contextlib.suppress(OSError):
                await self._find_addresses(self._options.control_name, loop)
        return self._is_alive


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0, flags=flags
    )
