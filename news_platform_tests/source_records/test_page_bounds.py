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
        ("<i>" * 3_000 + "</b>" * 1_000_000, "deeper"),
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


def test_nul_bytes_and_lone_surrogates_do_not_end_a_page() -> None:
    assert texts("<p>one\0two\ud800three</p>") == ["one two?three"]


def test_bytes_in_utf_8_are_parsed_as_they_are() -> None:
    assert texts("<p>Café</p>".encode()) == ["Café"]
