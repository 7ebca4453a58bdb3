"""Targets of the isolation bench that are light to import, so that start-up is the pool's own."""

import os
from collections.abc import Callable

from news_platform.isolation.worker import report


def double(number: int) -> int:
    """Do next to nothing."""
    return 2 * number


def large(size_bytes: int) -> bytes:
    """Return many bytes."""
    return bytes(size_bytes)


def tell(count: int) -> None:
    """Report as fast as possible."""
    for number in range(count):
        report(number)


def act(order: tuple[str, int]) -> object:
    """Do what the order says; `exit` ends the process."""
    return _ACTIONS[order[0]](order[1])


_ACTIONS: dict[str, Callable[[int], object]] = {
    "double": double,
    "large": large,
    "tell": tell,
    "exit": os._exit,
}
