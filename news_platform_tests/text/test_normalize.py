"""When two texts count as the same, and how alike others are."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news_platform.text.normalize import jaccard, normalize_text, shingles, text_hash, words

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


WORDS = {
    "punctuation and case": (
        "“The vote”, he said: PASSED!",
        ["the", "vote", "he", "said", "passed"],
    ),
    "characters where no blanks are": ("选举 2024年", ["选", "举", "2024", "年"]),
    "cyrillic": ("Выборы прошли", ["выборы", "прошли"]),
}


@pytest.mark.parametrize(("text", "expected"), WORDS.values(), ids=WORDS.keys())
def test_the_words_are(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_shingles_are_the_overlapping_runs_each_once() -> None:
    assert shingles("a b c a b c", 3) == {"a b c", "b c a", "c a b"}
    assert shingles("one two", 3) == {"one two"}
    assert shingles(" !", 3) == frozenset()


def test_likeness_is_the_share_of_common_shingles() -> None:
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard({"a"}, {"a"}) == 1.0
    assert jaccard({"a"}, {"b"}) == jaccard(frozenset(), frozenset()) == 0.0


@given(st.frozensets(st.text(max_size=2)), st.frozensets(st.text(max_size=2)))
def test_likeness_is_symmetric_and_bounded(left: frozenset[str], right: frozenset[str]) -> None:
    assert jaccard(left, right) == jaccard(right, left)
    assert 0.0 <= jaccard(left, right) <= 1.0
