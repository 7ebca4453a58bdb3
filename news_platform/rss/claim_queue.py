"""Work on claimed rows concurrently, claiming the next batch when the last one is handed out."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from news_platform.isolation.boundary import run_concurrently

Row = TypeVar("Row")


async def consume_claims(
    claim: Callable[[], Awaitable[Iterable[Row]]],
    work_on: Callable[[Row], Awaitable[None]],
    *,
    concurrency: int,
) -> None:
    """Work on rows until `claim` returns an empty batch, which means that nothing is due."""
    waiting: deque[Row] = deque()
    claiming = asyncio.Lock()
    empty_claims = 0

    async def next_row() -> Row | None:
        nonlocal empty_claims
        # One claim at a time: the other consumers wait and take rows of the same batch. If it is
        # empty, that answers all who waited for it, and they do not ask the ledger again.
        before = empty_claims
        async with claiming:
            if not waiting and empty_claims == before:
                waiting.extend(await claim())
                empty_claims += not waiting
            return waiting.popleft() if waiting else None

    async def consume() -> None:
        while (row := await next_row()) is not None:
            await work_on(row)

    await run_concurrently(consume() for _ in range(concurrency))
