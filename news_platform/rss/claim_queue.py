"""Hand out claimed rows one by one to concurrent consumers, claiming the next batch when needed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

Row = TypeVar("Row")


class ClaimQueue(Generic[Row]):
    """Rows that are claimed in batches; `claim` returns the next batch, empty if nothing is due."""

    def __init__(self, claim: Callable[[], Awaitable[Iterable[Row]]]) -> None:
        self._claim = claim
        self._waiting: deque[Row] = deque()
        self._claiming = asyncio.Lock()
        self._empty_claims = 0

    async def next_row(self) -> Row | None:
        """Return the next row, or None if nothing is due."""
        # One claim at a time: the other consumers wait and take rows of the same batch. If it is
        # empty, that answers all who waited for it, and they do not ask the ledger again.
        empty_claims = self._empty_claims
        async with self._claiming:
            if not self._waiting and self._empty_claims == empty_claims:
                self._waiting.extend(await self._claim())
                self._empty_claims += not self._waiting
            return self._waiting.popleft() if self._waiting else None
