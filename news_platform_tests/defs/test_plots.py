"""Pictures of asset pages: real PNGs, small enough for an event, or a text if there is no data."""

import base64
import re
from datetime import date

import dagster as dg
import polars as pl
import pytest

from news_platform.defs import metadata as plots

DAY = date(2025, 11, 1)
BOTS = pl.DataFrame(
    {
        "bot": ["GPTBot", "CCBot"],
        "disallow_all": [3, 1],
        "partial": [0, 1],
        "allow": [1, 0],
        "unspecified": [0, 2],
    }
)
CHANGES = pl.DataFrame(
    {"bot": ["GPTBot", "GPTBot", "CCBot"], "change": ["blocked", "opened", "changed"]}
)
PICTURES = {
    "hours": plots.hours_plot({"2025-11-03 10:00": 3, "2025-11-03 11:00": 0}),
    "many languages": plots.languages_plot({DAY: {f"l{n}": n for n in range(20)}}),
    "no languages": plots.languages_plot({}),
    "growth": plots.growth_plot([DAY, DAY, date(2025, 11, 2)], {"2025-11-01": 10}),
    "no growth": plots.growth_plot([], {}),
    "policies": plots.policy_plot(BOTS),
    "no policies": plots.policy_plot(BOTS.clear()),
    "changes": plots.changes_plot(CHANGES),
    "trend": plots.trend_plot(
        [f"2025-11-{day:02}" for day in range(1, 31)],
        {"ai_train": [day / 60 for day in range(30)], "search": [0.1] * 30},
        "domains that refuse",
    ),
    "no trend": plots.trend_plot([], {}, "domains that refuse"),
    "no changes": plots.changes_plot(CHANGES.clear()),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_a_small_png_inside_markdown(name: str) -> None:
    if name.startswith("no "):
        assert _text(PICTURES[name]).endswith(": nothing to show yet")
        return
    found = re.fullmatch(r"!\[[\w ]+\]\(data:image/png;base64,(\S+)\)", _text(PICTURES[name]))
    assert found
    body = base64.b64decode(found[1])
    assert body.startswith(b"\x89PNG")
    assert 500 < len(body) < 60_000


def _text(picture: dg.MarkdownMetadataValue) -> str:
    return picture.md_str or ""
