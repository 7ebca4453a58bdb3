"""Charts: bars and lines inside their frame, axes that end at round numbers, edits word by word."""

import random

import pytest

from news_platform.server.charts import HEIGHT, WIDTH, bar_chart, line_chart
from news_platform.server.overview import word_changes


@pytest.mark.parametrize("count", [1, 3, 60, 200])
def test_every_bar_lies_in_the_frame_and_every_day_has_a_place(count: int) -> None:
    draw = random.Random(count)
    days = [f"2025-{1 + n // 28:02}-{1 + n % 28:02}" for n in range(count)]
    counts = {day: draw.choice((0, 1, 7, 12_345)) for day in days} | {days[-1]: 9}
    chart = bar_chart(counts)
    assert chart is not None
    shown = [bar for bar in chart.bars if bar.count]
    assert all(chart.left <= bar.x and bar.x + bar.width <= WIDTH for bar in chart.bars)
    assert all(0 <= bar.y < bar.y + bar.height <= HEIGHT for bar in shown)
    assert chart.bars[-1].label == days[-1] and len(chart.bars) <= 120
    assert len(chart.x_labels) <= 6 and chart.x_labels[0][1].startswith("2025-")


@pytest.mark.parametrize(
    ("most", "top"), [(1, "1"), (9, "10"), (203, "250"), (501, "1,000"), (12_345, "20,000")]
)
def test_an_axis_ends_at_a_round_number(most: int, top: str) -> None:
    chart = bar_chart({"2025-11-01": most})
    assert chart is not None and chart.y_labels[-1][1] == top


def test_lines_of_shares_have_an_axis_in_per_cent() -> None:
    chart = line_chart(["2025-11-01", "2025-11-02"], {"a": [0.0, 0.031], "b": [0.01, 0.0]})
    assert chart is not None and [label for _, label in chart.y_labels] == ["0 %", "2.5 %", "5 %"]
    assert [name for name, _ in chart.lines] == ["a", "b"]
    assert bar_chart({}) is None and line_chart([], {}) is None


def test_an_edit_is_shown_word_by_word() -> None:
    delta = "@@ -1 +1 @@\n-The bridge will open in May.\n+The bridge will not open in June."
    assert list(word_changes(delta)) == [
        ("same", "The bridge will "),
        ("added", "not "),
        ("same", "open in "),
        ("removed", "May."),
        ("added", "June."),
    ]
    long = "\n".join((f"-{'a ' * 5_000}", f"+{'b ' * 5_000}"))
    assert [kind for kind, _ in word_changes(long)] == ["removed", "added"]
