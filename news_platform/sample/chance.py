"""Named random streams that give the same values on every machine and Python version."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Draw from a stream that depends only on its names.

    `random` promises stable results for `random()` only; hashing a counter promises all of them,
    and a stream per thing keeps one article from changing when another is added.
    """

    def __init__(self, *names: object) -> None:
        self._key = blake2b("\0".join(map(str, names)).encode()).digest()
        self._drawn = 0

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return low + self._word() % (high - low + 1)

    def happens(self, percent: int) -> bool:
        """Return True in `percent` of a hundred draws."""
        return self._word() % 100 < percent

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of the items."""
        return items[self._word() % len(items)]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Draw `count` different items (all if there are fewer), in the order drawn."""
        left = list(items)
        return [left.pop(self._word() % len(left)) for _ in range(min(count, len(left)))]

    def in_order(self, items: Sequence[T], count: int) -> list[T]:
        """Draw `count` different items and keep their original order."""
        chosen = sorted(self.sample(range(len(items)), count))
        return [items[index] for index in chosen]

    def octets(self, count: int) -> bytes:
        """Draw up to 64 bytes."""
        return self._block()[:count]

    def _word(self) -> int:
        return int.from_bytes(self._block()[:8], "big")

    def _block(self) -> bytes:
        self._drawn += 1
        return blake2b(self._drawn.to_bytes(8, "big"), key=self._key).digest()
