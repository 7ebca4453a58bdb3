"""Results written in groups: each is stored once, and an error reaches only its own group."""

import asyncio
import threading
import time
from collections.abc import Sequence
from itertools import chain

import pytest

from news_platform.domain_metadata.results import GroupedWriter
from news_platform.errors import StorageError


class Shelf:
    """The written results by group, and how many groups were written at the same time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.turns: list[list[int]] = []
        self.most = 0
        self._seconds = seconds
        self._open = 0
        self._lock = threading.Lock()

    def write(self, results: Sequence[int]) -> list[str]:
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
        time.sleep(self._seconds)
        with self._lock:
            self._open -= 1
            self.turns.append(list(results))
        return [""] * len(results)


async def store_all(count: int, shelf: Shelf, *, threads: int) -> None:
    writers = GroupedWriter(shelf.write, threads=threads)
    await asyncio.gather(*(writers.store(number) for number in range(count)))


def test_every_result_is_stored_once() -> None:
    shelf = Shelf()
    asyncio.run(store_all(1000, shelf, threads=4))
    assert sorted(chain.from_iterable(shelf.turns)) == list(range(1000))


def test_a_failure_reaches_whoever_waits_and_the_next_turn_goes_on() -> None:
    def write(results: Sequence[int]) -> list[str]:
        if 0 in results:
            raise StorageError("the disk is full")
        return ["too odd" if number == 17 else "" for number in results]

    async def go() -> list[BaseException | str]:
        writers = GroupedWriter(write, threads=1)
        stored = (writers.store(number) for number in range(20))
        return await asyncio.gather(*stored, return_exceptions=True)

    found = asyncio.run(go())
    assert [isinstance(one, StorageError) for one in found[:16]] == [True] * 16
    assert found[16:] == ["", "too odd", "", ""]


def test_a_result_is_stored_even_if_its_waiter_was_cancelled() -> None:
    shelf = Shelf(seconds=0.05)

    async def go() -> None:
        writers = GroupedWriter(shelf.write, threads=1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writers.store(1), timeout=0.03)
        await writers.store(2)

    asyncio.run(go())
    assert shelf.turns == [[1], [2]]
