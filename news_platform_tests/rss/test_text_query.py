"""Words, phrases, prefixes and exclusions in texts of any script."""

import pytest

from news_platform.errors import InputError
from news_platform.rss.text_query import TextQuery, parse_query

TEXT = "Straße und Klima: the U.N. said net\n zero by 2050. 北京大学宣布。 Выборы прошли."


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("klima", True),
        ("KLIMA said", True),
        ("klim", False),
        ("klim*", True),
        ('"net zero"', True),
        ('"zero net"', False),
        ("klima -zero", False),
        ("klima -wetter", True),
        ("北京", True),
        ("大学", True),
        ("выборы", True),
        ("выбор", False),
        ("U.N.", True),
        ("2050", True),
        ("205", False),
        ("said missing", False),
    ],
)
def test_a_query_matches_whole_words_and_phrases(query: str, expected: bool) -> None:
    assert parse_query(query).matches([TEXT]) is expected


@pytest.mark.parametrize("query", ["", "  ", '""', "- *", "…"])
def test_a_query_without_a_word_is_refused(query: str) -> None:
    with pytest.raises(InputError, match="expected words or a phrase"):
        parse_query(query)


def test_words_may_come_from_different_texts_but_a_phrase_may_not() -> None:
    assert TextQuery(all_of=("net", "zero")).matches(["net", "", "zero"])
    assert not TextQuery(all_of=("net zero",)).matches(["net", "zero"])


def test_one_of_several_terms_is_enough() -> None:
    query = TextQuery(any_of=("flood", "storm"), none_of=("drill",))
    assert query.matches(["A storm is near"])
    assert not query.matches(["A storm drill"])
    assert not query.matches(["Sun"])


def test_an_empty_query_matches_everything() -> None:
    assert TextQuery().matches([""])
