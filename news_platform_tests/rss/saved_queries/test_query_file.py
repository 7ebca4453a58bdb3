"""The TOML file of saved queries, what it refuses, and which texts its terms match."""

from typing import Any

import pytest

from news_platform.errors import ConfigError, InputError
from news_platform.rss.saved_queries.query_file import (
    SavedQuery,
    parse_queries,
    webhook_url,
    webhook_variables,
)
from news_platform.rss.text_query import TextQuery, parse_query

FILE = """
[[alerts]]
name = "floods"
words = ["flood*", "storm"]
phrases = ["state of emergency"]
none_of = ["drill"]
languages = ["en"]
webhook_variable = "ALERT_WEBHOOK_DESK"

[[alerts]]
name = "city-hall"
sources = ["post.example"]
topics = ["politics"]
webhook = "https://hooks.example/1"
"""


def test_a_file_has_queries_in_order() -> None:
    floods, city = parse_queries(FILE, thing="alerts.toml")
    assert floods.text_query.any_of == ("flood*", "storm", "state of emergency")
    assert (city.sources, city.topics) == (("post.example",), ("politics",))
    assert "hooks.example" not in repr(city)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[alerts]", "cannot parse 'x' as TOML"),
        ("alerts = 1", "expected tables"),
        ('[[alerts]]\nname = "A b"\nwords = ["x"]', "alert 1 in 'x': name: .*lower-case"),
        ('[[alerts]]\nname = "a"', "'a' in 'x': it matches every article"),
        ('[[alerts]]\nname = "a"\nwords = ["…"]', "alert 1 in 'x': words"),
        ('[[alerts]]\nname = "a"\nword = ["x"]', "alert 1 in 'x': word: Extra"),
        ('[[alerts]]\nname = "a"\nwords = ["x"]\nwebhook = "ftp://x"', r"webhook: .*http\(s\)"),
        ('[[alerts]]\nname = "a"\nwords = ["x"]\nwebhook_variable = "HOME"', "ALERT_WEBHOOK_"),
        ('[[alerts]]\nname = "a"\nwords = ["x"]\n' * 2, "two alerts have the name 'a'"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        parse_queries(text, thing="x")


def test_a_webhook_may_be_in_a_variable_and_only_in_one_of_that_name() -> None:
    variables = webhook_variables({"ALERT_WEBHOOK_A": "http://a.example", "PASSWORD": "x"})
    assert variables == {"ALERT_WEBHOOK_A": "http://a.example"}
    values: dict[str, Any] = {"name": "a", "words": ("x",), "webhook_variable": "ALERT_WEBHOOK_A"}
    assert webhook_url(SavedQuery(**values), variables) == "http://a.example"
    with pytest.raises(ConfigError, match="ALERT_WEBHOOK_A is not set"):
        webhook_url(SavedQuery(**values), {})


TEXT = "Straße und Klima: the U.N. said net\n zero by 2050. 北京大学宣布。 Выборы прошли."


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("klima", True),
        ("klim", False),
        ("klim*", True),
        ('"net zero"', True),
        ('"zero net"', False),
        ("klima -zero", False),
        ("klima -wetter", True),
        ("北京", True),
        ("выборы", True),
        ("выбор", False),
        ("U.N.", True),
        ("said missing", False),
    ],
)
def test_a_query_matches_whole_words_and_phrases(query: str, expected: bool) -> None:
    assert parse_query(query).matches([TEXT]) is expected


@pytest.mark.parametrize("query", ["", '""', "- *"])
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
