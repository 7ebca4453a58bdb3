"""Write results in groups on a few threads, so that handing them over costs little CPU."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")

# Results that finish within this time are written by one thread.
_GATHER_SECONDS = 0.02
# One group must take far less time than a lease, even if every write waits for the disk.
_MAX_GROUP = 16


class GroupedWriter(Generic[T]):
    """Write results in groups, on at most `threads` threads of the running loop's executor.

    Handing one result to a thread costs more CPU than producing it, and switching between threads
    costs more again, so results that finish within 20 ms are written together. `write` returns for
    each result why it could not be written, or ''.
    """

    def __init__(self, write: Callable[[Sequence[T]], Sequence[str]], *, threads: int) -> None:
        self._write = write
        self._idle = threads
        self._waiting: list[tuple[T, asyncio.Future[str]]] = []
        self._gathering = False

    async def store(self, result: T) -> str:
        """Return '' once the result is stored, else why it is not; raise an error of its group."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[str] = loop.create_future()
        self._waiting.append((result, stored))
        if not self._gathering:
            self._gathering = True
            loop.call_later(_GATHER_SECONDS, self._start)
        return await stored

    def _start(self) -> None:
        self._gathering = False
        loop = asyncio.get_running_loop()
        while self._idle and self._waiting:
            # An equal share for every idle thread, rounded up.
            share = min(-(-len(self._waiting) // self._idle), _MAX_GROUP)
            taken, self._waiting = self._waiting[:share], self._waiting[share:]
            self._idle -= 1
            group = loop.run_in_executor(None, self._write, [result for result, _ in taken])
            group.add_done_callback(partial(self._finish, [stored for _, stored in taken]))

    def _finish(
        self, waiters: Sequence[asyncio.Future[str]], group: asyncio.Future[Sequence[str]]
    ) -> None:
        error = group.exception()
        causes = group.result() if error is None else [""] * len(waiters)
        for stored, cause in zip(waiters, causes, strict=True):
            if stored.done():
                continue  # its waiter was cancelled
            if error is not None:
                stored.set_exception(error)
            else:
                stored.set_result(cause)
        self._idle += 1
        self._start()
