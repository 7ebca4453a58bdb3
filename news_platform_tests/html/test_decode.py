"""Bytes of every charset become the text they meant."""

import pytest

from news_platform.html.decode import decoded

RUSSIAN = "<html><body>Новости города: мост открыт, движение восстановлено.</body></html>"


@pytest.mark.parametrize(
    ("body", "declared"),
    [
        (RUSSIAN.encode(), "utf-8"),
        (RUSSIAN.encode(), None),
        (b"\xef\xbb\xbf" + RUSSIAN.encode(), "utf-8"),
        (RUSSIAN.encode("cp1251"), "windows-1251"),
        (RUSSIAN.encode("koi8-r"), "KOI8-R"),
        (RUSSIAN.encode(), "no-such-charset"),
        (RUSSIAN.encode("cp1251"), "utf-8"),
    ],
    ids=["utf-8", "undeclared", "BOM", "cp1251", "koi8-r", "unknown label", "falsely utf-8"],
)
def test_a_page_is_decoded_to_the_same_text(body: bytes, declared: str | None) -> None:
    text, utf8 = decoded(body, declared)
    assert text == RUSSIAN
    assert utf8 == RUSSIAN.encode()


def test_the_pages_own_meta_element_decides_when_the_header_is_silent() -> None:
    page = f'<meta charset="windows-1251">{RUSSIAN}'
    assert decoded(page.encode("cp1251"), None)[0] == page


def test_latin_1_means_what_browsers_mean_by_it() -> None:
    assert decoded("“quoted” – €".encode("cp1252"), "iso-8859-1")[0] == "“quoted” – €"


def test_utf_8_cut_within_a_character_loses_that_character_alone() -> None:
    body = (RUSSIAN * 20).encode()[:-9]
    text, utf8 = decoded(body[:-30] + "я".encode()[:1], "utf-8")
    assert text.endswith("\ufffd")
    assert text.startswith(RUSSIAN)
    assert utf8.decode() == text


def test_any_bytes_give_text_that_can_be_stored() -> None:
    for body in (b"", b"\xff\xfe\x00\xd8", bytes(range(256)) * 3, b"\xed\xa0\x80" * 50):
        for declared in (None, "utf-8", "utf-16", "shift_jis", "gb2312"):
            text, utf8 = decoded(body, declared)
            assert utf8.decode() is not None
            assert isinstance(text, str)
