"""The limits hold, and nothing is kept for names nobody asks for."""

import asyncio

import pytest

from news_platform.web.rate_limits import ConcurrencyLimits


def test_no_more_than_the_limit_are_inside_and_idle_gates_are_dropped() -> None:
    async def go() -> tuple[int, int]:
        limits, inside, most = ConcurrencyLimits(3), 0, 0

        async def visit() -> None:
            nonlocal inside, most
            async with limits.enter("a"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(visit() for _ in range(20)))
        return most, len(limits)

    assert asyncio.run(go()) == (3, 0)


def test_a_visitor_who_is_cancelled_or_fails_gives_the_slot_back() -> None:
    async def go() -> int:
        limits = ConcurrencyLimits(1)
        holder = asyncio.create_task(_hold(limits))
        await asyncio.sleep(0)
        waiter = asyncio.create_task(_hold(limits))
        await asyncio.sleep(0)
        holder.cancel()
        waiter.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        with pytest.raises(ValueError, match="inside"):
            async with limits.enter("a"):
                raise ValueError("inside")
        async with asyncio.timeout(1), limits.enter("a"):
            return len(limits)

    assert asyncio.run(go()) == 1


async def _hold(limits: ConcurrencyLimits) -> None:
    async with limits.enter("a"):
        await asyncio.sleep(60)
