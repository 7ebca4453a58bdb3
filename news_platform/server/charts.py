"""Pure: the geometry of charts over days, which templates draw as SVG with axes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

WIDTH, HEIGHT = 720, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 10, 26
_MOST_DAYS = 120
_MOST_LABELS = 6
_WIDEST_BAR = 48.0
# Steps of an axis that people read at a glance.
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar and the day that it stands for."""

    label: str
    count: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars or lines in a frame: labels of both axes, each at its place."""

    bars: tuple[Bar, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    x_labels: tuple[tuple[float, str], ...] = ()
    y_labels: tuple[tuple[float, str], ...] = ()
    most: float = 0.0

    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    floor: int = HEIGHT - _BOTTOM
    right: int = WIDTH - _RIGHT


def bar_chart(counts: Mapping[str, int]) -> Chart | None:
    """Return one bar per day, days without anything included; None without any day."""
    days = every_day(sorted(counts))
    if not days:
        return None
    top = _top(max(counts.values()))
    step = (WIDTH - _LEFT - _RIGHT) / len(days)
    bars = []
    for place, day in enumerate(days):
        count = counts.get(day, 0)
        # What is there is seen, however small.
        height = max(1.0 if count else 0.0, count / top * _inner_height())
        width = min(_WIDEST_BAR, max(1.0, step * 0.82))
        x = _LEFT + (place + 0.5) * step - width / 2
        bars.append(Bar(day, count, x, HEIGHT - _BOTTOM - height, width, height))
    labels = _y_labels(top, lambda value: f"{value:,.0f}" if value == int(value) else "")
    return Chart(tuple(bars), (), _x_labels(days), labels, max(counts.values()))


def line_chart(days: Sequence[str], series: Mapping[str, Sequence[float]]) -> Chart | None:
    """Return one line of shares per name over the same days; None without any day."""
    if not days or not series:
        return None
    most = max((value for values in series.values() for value in values), default=0.0)
    top = _top(most * 100) / 100
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(days) - 1)
    lines = []
    for name, values in series.items():
        held = list(values) * 2 if len(values) == 1 else values
        points = (
            f"{_LEFT + place * step:.1f},{HEIGHT - _BOTTOM - value / top * _inner_height():.1f}"
            for place, value in enumerate(held)
        )
        lines.append((name, " ".join(points)))
    labels = _y_labels(top, lambda value: f"{value * 100:.3g} %")
    return Chart((), tuple(lines), _x_labels(days, at_ends=True), labels, most)


def every_day(days: Sequence[str]) -> list[str]:
    """Return the days from the first to the last, the newest ones if they are too many."""
    if not days:
        return []
    last = date.fromisoformat(days[-1])
    count = min((last - date.fromisoformat(days[0])).days + 1, _MOST_DAYS)
    return [(last - timedelta(days=back)).isoformat() for back in reversed(range(count))]


def _inner_height() -> int:
    return HEIGHT - _TOP - _BOTTOM


def _top(most: float) -> float:
    """Return the end of an axis that holds a value, a round number."""
    size = 1.0
    while size * 10 < most:
        size *= 10
    while 0 < most < size:
        size /= 10
    return next((step * size for step in _STEPS if step * size >= most), 10 * size)


def _y_labels(top: float, shown: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    places = ((part, HEIGHT - _BOTTOM - part * _inner_height()) for part in (0, 0.5, 1))
    return tuple((y, shown(part * top)) for part, y in places)


def _x_labels(days: Sequence[str], *, at_ends: bool = False) -> tuple[tuple[float, str], ...]:
    """Return the places of some days; the year stands with the first and where it changes."""
    every = -(-len(days) // _MOST_LABELS)
    width = WIDTH - _LEFT - _RIGHT
    found, year = [], ""
    for place in range(0, len(days), every):
        part = place / max(1, len(days) - 1) if at_ends else (place + 0.5) / len(days)
        day = days[place]
        found.append((_LEFT + part * width, day if day[:4] != year else day[5:]))
        year = day[:4]
    return tuple(found)
