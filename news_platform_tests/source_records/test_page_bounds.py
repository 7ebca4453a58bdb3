"""Limits of page size, depth and events."""

import pytest

from news_platform.errors import InputError
from news_platform.source_records.html_events import parse_html


def texts(html: str | bytes) -> list[str]:
    return [event for event in parse_html(html) if isinstance(event, str)]


@pytest.mark.parametrize(
    ("html", "error"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<div>" * 20_000 + "deep" + "</div>" * 20_000, "deeper"),
        ("x" * 17_000_000, "bytes"),
        ("<i>" * 3_000 + "</b>" * 1_000, "deeper"),
        ("<i>x</i>" * 500_001, "tags and texts"),
        ("<" * 500_001, "tags and texts"),
    ],
    ids=["empty", "blank", "deep", "large", "unclosed", "elements", "texts"],
)
def test_a_page_beyond_all_bounds_is_refused(html: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        parse_html(html)


@pytest.mark.parametrize(
    "attributes",
    [f'data-x="{"a=1 " * 20_000}"', " ".join(f"a{number}=1" for number in range(10_000))],
    ids=["one long", "many"],
)
def test_attributes_are_no_harm(attributes: str) -> None:
    assert texts(f"<p {attributes}>text</p>") == ["text"]
