"""A query is parsed into conditions, or refused with the place of its mistake."""

import pytest

from news_platform.errors import InputError
from news_platform.search.query import (
    AllOf,
    AnyOf,
    Condition,
    DayRange,
    Exact,
    NotOf,
    Phrase,
    parse_query,
    query_words,
)


def _word(text: str) -> Phrase:
    return Phrase((text,), with_forms=True)


A, B, C = map(_word, "abc")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a b", AllOf((A, B))),
        ("a OR b", AnyOf((A, B))),
        ("a b OR c", AnyOf((AllOf((A, B)), C))),
        ("a (b OR c)", AllOf((A, AnyOf((B, C))))),
        ("a NOT b", AllOf((A, NotOf(B)))),
        ('"Ada Writer"', Phrase(("ada", "writer"))),
        ("and or", AllOf((_word("and"), _word("or")))),
        ('"a"', Phrase(("a",))),
        ("title:a", Phrase(("a",), ("title",))),
        ('TEXT:"a b"', Phrase(("a", "b"), ("text",))),
        ("domain:BBC.co.uk", Exact("domain", "bbc.co.uk")),
        ("domain:Bücher.de.", Exact("domain", "xn--bcher-kva.de")),
        ("day:2025-11-01..2025-11-07", DayRange("2025-11-01", "2025-11-07")),
        ("经济", Phrase(("经", "济"))),
    ],
)
def test_a_query_becomes_conditions(query: str, expected: Condition) -> None:
    assert parse_query(query) == expected


@pytest.mark.parametrize(
    ("query", "where", "cause"),
    [
        ("", "empty", "expected words"),
        ("*cole", "character 1, '*cole'", "'*' is not supported"),
        ("title:brid?e", "character 7", "'?' is not supported"),
        ("+a", "character 1", "'+' is not supported"),
        ('say "a b', "character 5", 'closing "'),
        ("(a", "character 1", "not closed"),
        ("a AND", "at its end", "expected a word"),
        ("author:x", "character 1", "unknown field"),
        ("domain:", "character 1", "after the field"),
        ("day:yesterday", "character 5", "YYYY-MM-DD"),
        ("day:2025-11-02..2025-11-01", "character 5", "range of 1 to"),
        ("— …", "character 1", "letters or digits"),
        ("(" * 30 + "a" + ")" * 30, "character 21", "nested brackets"),
        (" ".join("w" for _ in range(200)), "character 201", "more than 100 words"),
        ("x" * 3_000, "3000 characters", "at most 2000"),
    ],
)
def test_a_wrong_query_says_where_and_why(query: str, where: str, cause: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_query(query)
    assert where in str(caught.value)
    assert cause in str(caught.value)


def test_only_words_that_may_occur_are_highlighted() -> None:
    found = parse_query('bridge OR ("old mill" NOT flood) domain:a.example')
    assert list(query_words(found)) == [("bridge",), ("old", "mill")]
