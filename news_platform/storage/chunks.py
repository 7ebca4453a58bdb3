"""Split values into lists of limited size: rows of a statement, keys of a request."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

# SQLite accepts 32,766 parameters per statement, versions before 3.32 only 999.
VALUES_PER_STATEMENT = 500

_Value = TypeVar("_Value")


def chunked(values: Iterable[_Value], size: int = VALUES_PER_STATEMENT) -> Iterator[list[_Value]]:
    """Yield the values in lists of this size; the last may be shorter.

    This is `itertools.batched`, which Python 3.11 does not have.
    """
    remaining = iter(values)
    while part := list(islice(remaining, size)):
        yield part
