"""How many requests a host, and an address behind many hosts, may have from us at once."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Limit:
    slots: asyncio.Semaphore
    users: int = 0
    delay_seconds: float = 0.0
    next_at: float = 0.0  # on the event loop's clock
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def wait_turn(self) -> None:
        """Wait until the delay since the last real start is over."""
        clock = asyncio.get_running_loop().time
        async with self.turn:
            pause = self.next_at - clock()
            if pause > 0:
                await asyncio.sleep(pause)
            self.next_at = clock() + self.delay_seconds


class ConcurrencyLimits:
    """One gate a name, opened on first use and dropped when nobody stands at it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._gates: dict[str, _Limit] = {}

    def __len__(self) -> int:
        return len(self._gates)

    def set_delay(self, name: str, seconds: float) -> None:
        """Keep this many seconds between the starts of two requests to `name`."""
        gate = self.gate(name)
        gate.delay_seconds = seconds
        gate.next_at = asyncio.get_running_loop().time() + seconds

    def enter(self, name: str) -> "_HeldSlot":
        """Return a context that waits for a free slot and the name's delay, then holds the slot."""
        return _HeldSlot(self, name)

    def leave(self, name: str, gate: _Limit) -> None:
        """Forget a gate that nobody needs any more."""
        gate.users -= 1
        if not gate.users and not gate.delay_seconds:
            self._gates.pop(name, None)

    def gate(self, name: str) -> _Limit:
        """Return the gate of a name, opened on first use."""
        gate = self._gates.get(name)
        if gate is None:
            gate = self._gates[name] = _Limit(asyncio.Semaphore(self._limit))
        return gate


class _HeldSlot:
    """One request's way through a gate; a class because a generator costs three times as much."""

    __slots__ = ("_gate", "_gates", "_name")

    def __init__(self, gates: ConcurrencyLimits, name: str) -> None:
        self._gates = gates
        self._name = name
        self._gate = gates.gate(name)

    async def __aenter__(self) -> None:
        gate = self._gate
        gate.users += 1
        try:
            await gate.slots.acquire()
        except BaseException:
            self._gates.leave(self._name, gate)
            raise
        if gate.delay_seconds:
            await self._wait_turn()

    async def _wait_turn(self) -> None:
        try:
            await self._gate.wait_turn()
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._gate.slots.release()
        self._gates.leave(self._name, self._gate)
