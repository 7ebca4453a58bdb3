"""What escaping leaves: deceiving characters, sizes, and links."""

import pytest

from news_platform.server.pages import bars, trend_line
from news_platform.server.sanitize import html_bytes, language_code, link, one_line, paragraphs
from news_platform_tests.server.hostile import HOSTILE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n b\tc", "a b c"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\u200b\ufeff\u2060", ""),
        ("\u0301\u0302", ""),
        ("नमस्ते दुनिया", "नमस्ते दुनिया"),
        ("\u200cمی\u200cخواهم", "\u200cمی\u200cخواهم"),
        ("x" * 301, "x" * 300 + " …"),
        (None, ""),
    ],
    ids=range(8),
)
def test_a_line_is_short_and_deceives_nobody(text: str | None, expected: str) -> None:
    assert one_line(text) == expected


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_paragraphs_never_exceed_their_size(text: str) -> None:
    found, is_whole = paragraphs(text, max_bytes=1000)
    assert sum(map(html_bytes, found)) <= 1000
    assert is_whole or sum(map(html_bytes, found)) > 900


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "JAVASCRIPT:1", "data:text/html,x", "//evil.example", "http:", ""),
        *("ftp://a.example", "https://[", "https://a.example/\u202e"),
        "https://a.example/" + "x" * 3000,
    ],
)
def test_only_web_addresses_are_links(url: str) -> None:
    assert link(url) is None


def test_a_web_address_is_a_link() -> None:
    assert link("https://a.example/ü?q=<b>") == "https://a.example/ü?q=<b>"


def test_a_language_is_a_code() -> None:
    assert language_code("en") == "en" and language_code("zh-Hant") == "zh-Hant"
    assert language_code("en\" onclick='x'") is None and language_code(None) is None


def test_bars_have_the_height_of_their_share() -> None:
    found = bars({"a": 100, "b": 50, "c": 1, "d": 0})
    assert [bar.height for bar in found] == [60, 30, 1, 0]
    assert [bar.y + bar.height for bar in found] == [60] * 4
    assert bars({}) == []


def test_a_line_goes_from_left_to_right() -> None:
    assert trend_line([0.0, 1.0]) == "0.0,19.0 80.0,1.0"
    assert trend_line([0.5]) == "0.0,10.0 80.0,10.0"
