"""Search finds a word whatever its case, accents and script."""

import random
import sys
import time
import unicodedata
from collections.abc import Sequence

import pytest

from news_platform.search.words import _best_start, _folded, analyzer, snippet, words

# Of ideographs and Hangul, which are alike, some.
LETTERS = [
    chr(number)
    for number in (*range(1, 0x3400), *range(0x3400, sys.maxunicode + 1, 61))
    if unicodedata.category(chr(number)) not in ("Cn", "Co", "Cs")
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Bridge is CLOSED", ["the", "bridge", "is", "closed"]),
        ("Café Zürich naïve Ångström", ["cafe", "zurich", "naive", "angstrom"]),
        ("ﬁrst ｆｕｌｌｗｉｄｔｈ", ["first", "fullwidth"]),
        ("Россия, йод и ёлка", ["россия", "йод", "и", "ёлка"]),
        ("经济增长", ["经", "济", "增", "长"]),
        ("don't U.S. 3,5", ["don", "t", "u", "s", "3", "5"]),
        (
            "\u0627\u0644\u0633\u064e\u0651\u0644\u0627\u0645",
            ["\u0627\u0644\u0633\u0644\u0627\u0645"],
        ),
        ("… — !", []),
        ("x" * 300 + " y", ["y"]),
    ],
)
def test_a_text_is_folded_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_one_text_in_two_unicode_forms_has_the_same_words() -> None:
    assert words("Cafe\u0301") == words("Caf\u00e9") == ["cafe"]
    assert words("\u0438\u0306\u043e\u0434") == words("йод") == ["йод"]


def _words_without_shortcuts(text: str) -> list[str]:
    found: list[str] = analyzer().analyze(_folded(text).lower())
    return found


def test_no_shortcut_changes_the_words_of_any_character() -> None:
    for start in range(0, len(LETTERS), 64):
        letters = LETTERS[start : start + 64]
        text = "\n".join(f"a{letter}b {letter} {letter}{letter}" for letter in letters)
        assert words(text) == _words_without_shortcuts(text), repr(letters)


TEXT = (
    "The council met on Monday. It talked for hours about the budget, as it does every year in the "
    "first week of the month. The old bridges over the harbour will close in May for repairs, said "
    "the mayor. Buses will run along the river. Nobody knows for how long the work will last, and "
    "the shops near the harbour fear for their trade during the whole of the summer season."
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "bridge",
            "The old [bridges] over the harbour will close in May for repairs, said the mayor. "
            "Buses will run along the river.",
        ),
        (
            "council",
            "The [council] met on Monday. It talked for hours about the budget, as it does",
        ),
        ("seasons", "summer [season]."),
    ],
)
def test_a_snippet_has_sentences_and_marks_every_form(query: str, expected: str) -> None:
    found = snippet(TEXT, [(query,)], language="en")
    assert expected in found.marked("[", "]") and len(found.text) <= 240
    # An ellipsis stands where a sentence is cut, and only there.
    for is_cut, at_end in ((found.text[0] == "…", False), (found.text[-1] == "…", True)):
        kept = found.text.strip("…")
        whole = TEXT.endswith(kept) if at_end else TEXT.startswith(kept)
        ends = kept[-1] in ".!?" if at_end else kept[0].isupper()
        assert is_cut is not (whole or ends)


def test_a_snippet_begins_at_the_first_part_with_the_most_different_words() -> None:
    chance = random.Random(4)
    for _ in range(300):
        starts = sorted(chance.sample(range(200), chance.randrange(1, 40)))
        places = [(start, start + 1, chance.choice("abcd")) for start in starts]

        def different(first: int, places: Sequence[tuple[int, int, str]] = places) -> int:
            return len({word for start, _, word in places if first <= start < first + 30})

        assert _best_start(places, 30) == max(starts, key=different)


@pytest.mark.parametrize("letters", ["abcdefgh", "äöüéабв漢字"], ids=["plain", "mixed"])
def test_the_snippets_of_one_page_of_hits_take_a_second_at_most(letters: str) -> None:
    chance = random.Random(5)
    text = " ".join(chance.choices(letters, k=24_000))
    phrases = [tuple(words(" ".join(letters)))]
    started = time.process_time()
    for _ in range(15):
        snippet(text, phrases)
    assert time.process_time() - started < 2
