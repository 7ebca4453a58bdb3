"""Pure: numbers in, the geometry of small SVG charts out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEIGHT = 60
_BAR_WIDTH = 12
_GAP = 3
_LINE_WIDTH, _LINE_HEIGHT = 80, 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart and what it stands for."""

    label: str
    count: int
    x: int
    y: int
    width: int
    height: int


def bars(counts: Mapping[str, int]) -> list[Bar]:
    """Return one bar per value, in the given order."""
    most = max(counts.values(), default=0)
    found = []
    for place, (label, count) in enumerate(counts.items()):
        # What is there is seen, however small.
        height = max(1 if count else 0, count * HEIGHT // most) if most else 0
        x = place * (_BAR_WIDTH + _GAP)
        found.append(Bar(label, count, x, HEIGHT - height, _BAR_WIDTH, height))
    return found


def line(shares: Sequence[float]) -> str:
    """Return the points of a line through shares from 0 to 1."""
    values = [*shares, *shares] if len(shares) == 1 else list(shares)
    step = _LINE_WIDTH / max(1, len(values) - 1)
    return " ".join(
        f"{place * step:.1f},{_LINE_HEIGHT - 1 - share * (_LINE_HEIGHT - 2):.1f}"
        for place, share in enumerate(values)
    )
