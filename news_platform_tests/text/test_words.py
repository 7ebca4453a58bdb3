"""Word runs and their likeness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news_platform.text.normalize import jaccard, shingles, words

WORDS = {
    "punctuation and case": (
        "“The vote”, he said: PASSED!",
        ["the", "vote", "he", "said", "passed"],
    ),
    "digits": ("In 2024, 3 left.", ["in", "2024", "3", "left"]),
    "characters where no blanks are": ("选举 2024年", ["选", "举", "2024", "年"]),
    "kana": ("カタ かな", ["カ", "タ", "か", "な"]),
    "cyrillic": ("Выборы прошли", ["выборы", "прошли"]),
    "nothing": (" … ", []),
}


@pytest.mark.parametrize(("text", "expected"), WORDS.values(), ids=WORDS.keys())
def test_the_words_are(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_shingles_are_the_overlapping_runs_each_once() -> None:
    assert shingles("a b c a b c", 3) == {"a b c", "b c a", "c a b"}


@pytest.mark.parametrize("text", ["one", "one two", "one two three"])
def test_a_text_no_longer_than_a_run_is_one_run(text: str) -> None:
    assert shingles(text, 3) == {text}


def test_an_empty_text_has_no_shingles() -> None:
    assert shingles(" !", 3) == frozenset()


def test_likeness_is_the_share_of_common_shingles() -> None:
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard({"a"}, {"a"}) == 1.0
    assert jaccard({"a"}, {"b"}) == 0.0


def test_two_empty_texts_are_not_alike() -> None:
    assert jaccard(frozenset(), frozenset()) == 0.0


@given(st.frozensets(st.text(max_size=2)), st.frozensets(st.text(max_size=2)))
def test_likeness_is_symmetric_and_bounded(left: frozenset[str], right: frozenset[str]) -> None:
    assert jaccard(left, right) == jaccard(right, left)
    assert 0.0 <= jaccard(left, right) <= 1.0
