"""The limits: limits hold, delays hold, and nothing is kept for names nobody asks for."""

import asyncio
from itertools import pairwise

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


def test_a_delay_spaces_the_starts_of_one_name_only() -> None:
    async def go() -> tuple[list[float], float]:
        limits, starts = ConcurrencyLimits(5), []
        clock = asyncio.get_running_loop().time
        limits.set_delay("a", 0.05)
        began = clock()

        async def visit() -> None:
            async with limits.enter("a"):
                starts.append(clock() - began)

        await asyncio.gather(*(visit() for _ in range(3)))
        free_from = clock()
        async with limits.enter("b"):
            return starts, clock() - free_from

    starts, other = asyncio.run(go())
    gaps = [after - before for before, after in pairwise([0.0, *sorted(starts)])]
    assert len(gaps) == 3 and min(gaps) > 0.045
    assert other < min(gaps)
