"""Host names to addresses: asked once, remembered, failures too, never a private address."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from news_platform.errors import FetchError
from news_platform.web.guard import is_address, is_public

Lookup = Callable[[str], Sequence[str]]
"""Give the addresses of a host, or raise socket.gaierror; may block."""

# The name surely has no address; every other failure is the resolver's own trouble.
_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_MAX_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class ResolverOptions:
    """How long answers are remembered and lookups may take."""

    ttl_seconds: float = 300.0
    # Shorter than any retry's pause, so that a retry asks anew.
    negative_ttl_seconds: float = 30.0
    timeout_seconds: float = 10.0
    threads: int = 32
    # A name that always exists. Before anything else was found, "no such name" is only believed
    # when this one is found: a machine without network or name server says it of every name.
    control_name: str = "a.root-servers.net"


@dataclass(frozen=True, slots=True)
class _LookupResult:
    addresses: tuple[str, ...]
    expires_at: float
    reason: str = ""
    problem: str = ""


class CachingResolver(AbstractResolver):
    """The resolver of one fetcher; mapped hosts lead where the map says."""

    def __init__(
        self, lookup: Lookup, *, host_map: Mapping[str, tuple[str, int]], options: ResolverOptions
    ) -> None:
        self._lookup = lookup
        self._host_map = host_map
        self._options = options
        self._answers: dict[str, _LookupResult] = {}
        self._pending: dict[str, asyncio.Task[_LookupResult]] = {}
        self._is_alive = not options.control_name
        # Not the loop's own pool: its few threads would all wait for dead name servers.
        self._threads = ThreadPoolExecutor(options.threads, thread_name_prefix="names")

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Return the public addresses of a host.

        Raise FetchError with reason nxdomain, dns or blocked_address.
        """
        if host in self._host_map:
            return (self._host_map[host][0],)
        answer = self._answers.get(host)
        if answer is None or answer.expires_at <= asyncio.get_running_loop().time():
            answer = await self._ask_once(host)
        if answer.reason:
            message = f"cannot find {host!r}: {answer.problem}"
            raise FetchError(message, thing=host, reason=answer.reason)
        return answer.addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Answer aiohttp; a mapped host changes its port as well."""
        port = self._host_map[host][1] if host in self._host_map else port
        return [_result(host, address, port) for address in await self.addresses(host)]

    async def close(self) -> None:
        """Stop asking; threads that still wait for a name server end on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask_once(self, host: str) -> _LookupResult:
        task = self._pending.get(host)
        if task is None:
            task = self._pending[host] = asyncio.create_task(self._ask(host))
            task.add_done_callback(lambda _: self._pending.pop(host, None))
        return await asyncio.shield(task)

    async def _ask(self, host: str) -> _LookupResult:
        loop = asyncio.get_running_loop()
        answer = await self._judged(host, loop)
        if len(self._answers) >= _MAX_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        self._answers[host] = answer
        return answer

    async def _judged(self, host: str, loop: asyncio.AbstractEventLoop) -> _LookupResult:
        forget_at = loop.time() + self._options.negative_ttl_seconds
        try:
            found = await self._found(host, loop)
        except socket.gaierror as error:
            missing = error.errno in _NO_SUCH_NAME and await self._knows_names(loop)
            reason = "nxdomain" if missing else "dns"
            return _LookupResult((), forget_at, reason, error.strerror or str(error))
        except (TimeoutError, UnicodeError) as error:
            return _LookupResult(
                (), forget_at, "dns", str(error) or "the name server does not answer"
            )
        public = tuple(address for address in found if is_public(address))
        if not public:
            return _LookupResult(
                (), forget_at, "blocked_address", f"no public address in {list(found)}"
            )
        return _LookupResult(public, loop.time() + self._options.ttl_seconds)

    async def _found(self, host: str, loop: asyncio.AbstractEventLoop) -> Sequence[str]:
        if is_address(host):
            return (host,)
        async with asyncio.timeout(self._options.timeout_seconds):
            found = await loop.run_in_executor(self._threads, self._lookup, host)
        self._is_alive = True
        return found

    async def _knows_names(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Say whether the name server has been seen to find anything."""
        if not self._is_alive:
            with contextlib.suppress(OSError):
                await self._found(self._options.control_name, loop)
        return self._is_alive


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0, flags=flags
    )
