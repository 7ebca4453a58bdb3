"""Finished results in, stored results out: on a few threads, several results at each turn.

Handing a result to a thread costs more CPU than making it, and threads that hand the interpreter to
each other cost it again. So results that finish within a blink share a turn.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")

_GATHER_SECONDS = 0.02
# A turn is to stay far shorter than a lease, also where every write waits for the disk.
_MOST_AT_ONCE = 16


class Writers(Generic[T]):
    """At most `threads` turns at once, each on a thread of the running loop's own pool."""

    def __init__(self, write: Callable[[Sequence[T]], None], *, threads: int) -> None:
        self._write = write
        self._idle = threads
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._gathering = False

    async def store(self, result: T) -> None:
        """Return once the result is stored; raise what kept its turn from that."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        self._waiting.append((result, stored))
        if not self._gathering:
            self._gathering = True
            loop.call_later(_GATHER_SECONDS, self._start)
        await stored

    def _start(self) -> None:
        self._gathering = False
        loop = asyncio.get_running_loop()
        while self._idle and self._waiting:
            share = min(-(-len(self._waiting) // self._idle), _MOST_AT_ONCE)
            taken, self._waiting = self._waiting[:share], self._waiting[share:]
            self._idle -= 1
            turn = loop.run_in_executor(None, self._write, [result for result, _ in taken])
            turn.add_done_callback(partial(self._finish, [stored for _, stored in taken]))

    def _finish(self, waiters: Sequence[asyncio.Future[None]], turn: asyncio.Future[None]) -> None:
        error = turn.exception()
        for stored in waiters:
            if stored.done():
                continue  # nobody waits for it any more
            if error is not None:
                stored.set_exception(error)
            else:
                stored.set_result(None)
        self._idle += 1
        self._start()
