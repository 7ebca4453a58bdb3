"""Limits on concurrent requests per host and per address, and delays between them."""

import asyncio
from dataclasses import dataclass, field

# A survey of a million hosts must not remember them all.
_KEPT_AT_LEAST = 4096


@dataclass(slots=True)
class _Limit:
    slots: asyncio.Semaphore
    users: int = 0
    delay_seconds: float = 0.0
    next_at: float = 0.0  # on the event loop's clock
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def wait_turn(self) -> None:
        """Wait until the delay since the previous request is over."""
        clock = asyncio.get_running_loop().time
        async with self.turn:
            pause = self.next_at - clock()
            if pause > 0:
                await asyncio.sleep(pause)
            self.next_at = clock() + self.delay_seconds


class ConcurrencyLimits:
    """One limit per name, created on first use and dropped when no request uses it."""

    def __init__(self, limit: int, *, delay_seconds: float = 0.0) -> None:
        self._slots_per_name = limit
        self._delay_seconds = delay_seconds
        self._limits: dict[str, _Limit] = {}
        self._forget_at = _KEPT_AT_LEAST

    def __len__(self) -> int:
        return len(self._limits)

    def set_delay(self, name: str, seconds: float) -> None:
        """Wait this many seconds between two requests to `name`, or longer by default."""
        limit = self.limit(name)
        limit.delay_seconds = max(seconds, self._delay_seconds)
        limit.next_at = asyncio.get_running_loop().time() + limit.delay_seconds

    def enter(self, name: str) -> "_HeldSlot":
        """Return a context manager that waits for a slot and the delay, then holds the slot."""
        return _HeldSlot(self, name)

    def leave(self, name: str, limit: _Limit) -> None:
        """Count a request as finished and drop a limit that is not used any more."""
        limit.users -= 1
        if limit.delay_seconds:
            # The pause begins when the response has ended.
            limit.next_at = asyncio.get_running_loop().time() + limit.delay_seconds
        elif not limit.users:
            self._limits.pop(name, None)

    def limit(self, name: str) -> _Limit:
        """Return the limit of a name, created on first use."""
        limit = self._limits.get(name)
        if limit is None:
            if len(self._limits) >= self._forget_at:
                self._forget_idle()
            slots = asyncio.Semaphore(self._slots_per_name)
            limit = self._limits[name] = _Limit(slots, delay_seconds=self._delay_seconds)
        return limit

    def _forget_idle(self) -> None:
        """Drop the limits whose default delay is over; a delay of its own is kept."""
        now = asyncio.get_running_loop().time()
        self._limits = {
            name: one
            for name, one in self._limits.items()
            if one.users or one.next_at > now or one.delay_seconds > self._delay_seconds
        }
        self._forget_at = max(_KEPT_AT_LEAST, 2 * len(self._limits))


class _HeldSlot:
    """The slot of one request; a class, because a generator would cost three times as much."""

    __slots__ = ("_held", "_limits", "_name")

    def __init__(self, limits: ConcurrencyLimits, name: str) -> None:
        self._limits = limits
        self._name = name
        self._held = limits.limit(name)

    async def __aenter__(self) -> None:
        limit = self._held
        limit.users += 1
        try:
            await limit.slots.acquire()
        except BaseException:
            self._limits.leave(self._name, limit)
            raise
        if limit.delay_seconds:
            await self._wait_turn()

    async def _wait_turn(self) -> None:
        try:
            await self._held.wait_turn()
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._held.slots.release()
        self._limits.leave(self._name, self._held)
