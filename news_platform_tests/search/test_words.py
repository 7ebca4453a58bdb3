"""Search finds a word whatever its case, accents and script."""

import pytest

from news_platform.search.words import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Bridge is CLOSED", ["the", "bridge", "is", "closed"]),
        ("Café Zürich naïve Ångström", ["cafe", "zurich", "naive", "angstrom"]),
        ("Straße", ["strasse"]),
        ("ﬁrst ｆｕｌｌｗｉｄｔｈ", ["first", "fullwidth"]),
        ("Αθήνα", ["αθηνα"]),
        ("Россия, йод и ёлка", ["россия", "йод", "и", "ёлка"]),
        ("经济增长", ["经", "济", "增", "长"]),
        ("東京とパリ", ["東", "京", "と", "パ", "リ"]),
        ("don't U.S. 3,5", ["don", "t", "u", "s", "3", "5"]),
        (
            "\u0627\u0644\u0633\u064e\u0651\u0644\u0627\u0645",
            ["\u0627\u0644\u0633\u0644\u0627\u0645"],
        ),
        ("", []),
        ("… — !", []),
        ("x" * 300 + " y", ["y"]),
    ],
)
def test_a_text_is_folded_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_one_text_in_two_unicode_forms_has_the_same_words() -> None:
    assert words("Cafe\u0301") == words("Caf\u00e9") == ["cafe"]
    assert words("\u0438\u0306\u043e\u0434") == words("йод") == ["йод"]
