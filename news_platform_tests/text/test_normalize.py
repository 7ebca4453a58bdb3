"""When two texts count as the same."""

import hashlib

import pytest

from news_platform.text.normalize import normalize_text, text_hash

SAME = {
    "case": "THE Vote Passed.",
    "blanks": " the\tvote \n\n passed.\u00a0",
    "full width": "ｔｈｅ vote passed.",
    "wide blank": "the\u3000vote passed.",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME.keys())
def test_texts_that_differ_only_in_form_share_a_hash(text: str) -> None:
    assert normalize_text(text) == "the vote passed."
    assert text_hash(text) == hashlib.sha256(b"the vote passed.").hexdigest()


@pytest.mark.parametrize("text", ["the vote passed", "the vote, passed.", "thevote passed.", ""])
def test_texts_that_differ_in_words_or_punctuation_do_not(text: str) -> None:
    assert text_hash(text) != text_hash("the vote passed.")


def test_casefolding_reaches_beyond_lower_case() -> None:
    assert normalize_text("Straße ΣΊΣΥΦΟΣ ﬁn") == "strasse σίσυφοσ fin"


def test_a_broken_character_is_hashed_all_the_same() -> None:
    assert len(text_hash("half a pair \ud800")) == 64
