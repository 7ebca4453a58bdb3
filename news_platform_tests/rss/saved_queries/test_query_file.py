"""The TOML file of saved queries: what it may say, and what is refused by name."""

from typing import Any

import pytest

from news_platform.errors import ConfigError
from news_platform.rss.saved_queries.query_file import (
    SavedQuery,
    parse_queries,
    webhook_url,
    webhook_variables,
)

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
feed = false
webhook = "https://hooks.example/1"
"""


def test_a_file_has_queries_in_order() -> None:
    floods, city = parse_queries(FILE, thing="alerts.toml")
    assert floods.text_query.any_of == ("flood*", "storm", "state of emergency")
    assert (city.sources, city.topics, city.feed) == (("post.example",), ("politics",), False)
    assert "hooks.example" not in repr(city)


def test_an_empty_file_has_no_query() -> None:
    assert parse_queries("", thing="x") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[alerts]", "cannot parse 'x' as TOML"),
        ("alerts = 1", "expected tables"),
        ('[[alert]]\nname = "a"', "expected tables"),
        ('[[alerts]]\nname = "A b"\nwords = ["x"]', "alert 1 in 'x': name: .*lower-case"),
        ('[[alerts]]\nname = "a"', "'a' in 'x': it matches every article"),
        ('[[alerts]]\nname = "a"\nnone_of = ["x"]', "it matches every article"),
        ('[[alerts]]\nname = "a"\nwords = ["…"]', "alert 1 in 'x': words"),
        ('[[alerts]]\nname = "a"\nwords = "x"', "alert 1 in 'x': words"),
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
