"""Charsets and bounds of a page."""

import pytest

from news_platform.errors import InputError
from news_platform.source_records.dom import decode, parse_html

WORD = "Ingeniería für Ökonomie"


def texts(html: str | bytes) -> list[str]:
    return [event for event in parse_html(html) if isinstance(event, str)]


@pytest.mark.parametrize(
    ("body", "declared", "charset"),
    [
        (WORD.encode(), None, "utf-8"),
        (WORD.encode("latin-1"), "latin-1", "latin-1"),
        (WORD.encode(), "no-such-charset", "utf-8"),
        (WORD.encode(), "ascii", "utf-8"),
        (b"\xef\xbb\xbf" + WORD.encode(), "latin-1", "utf-8"),
        (b"\xff\xfe" + WORD.encode("utf-16-le"), None, "utf-16-le"),
        (b"<meta charset='windows-1252'>" + WORD.encode("cp1252"), None, "windows-1252"),
        (b"<meta charset=utf-8>" + WORD.encode("cp1252"), None, "cp1252"),
    ],
    ids=["utf-8", "declared", "unknown", "wrong", "bom", "utf-16", "meta", "wrong meta"],
)
def test_bytes_are_decoded_by_what_agrees_with_them(
    body: bytes, declared: str | None, charset: str
) -> None:
    text, used = decode(body, declared=declared)
    assert text.endswith(WORD)
    assert used == charset


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
