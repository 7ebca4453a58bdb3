"""What escaping leaves: deceiving characters, sizes, and links."""

import pytest
from markupsafe import escape

from news_platform.server.sanitize import language_code, link, one_line, paragraphs
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


def test_paragraphs_never_exceed_their_size() -> None:
    for text in HOSTILE:
        found, is_whole = paragraphs(text, max_bytes=1000)
        assert sum(len(str(escape(one)).encode()) for one in found) <= 1000
        assert is_whole or sum(map(len, found)) >= 200


@pytest.mark.parametrize(
    "url",
    [
        "JAVASCRIPT:1",
        "data:text/html,x",
        "//evil.example",
        "https://[",
        "https://a.example/\u202e",
        "https://a.example/" + "x" * 3000,
    ],
)
def test_only_web_addresses_are_links(url: str) -> None:
    assert link(url) is None
    assert link("https://a.example/ü?q=<b>") == "https://a.example/ü?q=<b>"


def test_a_language_is_a_code() -> None:
    assert language_code("en") == "en" and language_code("zh-Hant") == "zh-Hant"
    assert language_code("en\" onclick='x'") is None and language_code(None) is None
