"""Both readers of JSON-LD find the same article; neither breaks on what pages contain."""

import json

import pytest

from news_platform.html.decode import parse_document
from news_platform.html.jsonld import (
    all_objects,
    first_article_object,
    fullest_article,
    iter_objects,
)

ARTICLE = {"@type": "NewsArticle", "headline": "Bridge opens", "datePublished": "2025-11-01"}


def script(text: str) -> str:
    return f'<html><script type="application/ld+json">{text}</script></html>'


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ARTICLE),
        f"\n {json.dumps(ARTICLE)} ;\n",
        json.dumps({"@graph": [{"@type": "WebPage", "author": "x"}, ARTICLE]}),
        json.dumps(ARTICLE, indent=1).replace("Bridge opens", "Bridge opens\n"),
    ],
    ids=["alone", "semicolon", "graph", "line break in a string"],
)
def test_both_readers_find_the_article(text: str) -> None:
    root = parse_document(script(text))
    assert root is not None
    for found in (fullest_article(all_objects(root)), first_article_object(script(text).encode())):
        assert found["headline"].strip() == "Bridge opens"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '"headline"',
        "[" * 20_000 + '"headline"',
    ],
)
def test_broken_and_deep_scripts_state_nothing(text: str) -> None:
    root = parse_document(script(text))
    assert root is not None
    assert fullest_article(all_objects(root)) == {}
    assert first_article_object(script(text).encode()) == {}


def test_the_crawl_does_not_take_a_listed_article_for_the_page() -> None:
    listed = {"@type": "ItemList", "itemListElement": [ARTICLE]}
    assert first_article_object(script(json.dumps(listed)).encode()) == {}


def test_a_page_with_a_date_is_the_second_choice() -> None:
    page = {"@type": "WebPage", "datePublished": "2025-11-02"}
    assert first_article_object(script(json.dumps(page)).encode()) == page
    both = script(json.dumps([page, ARTICLE])).encode()
    assert first_article_object(both) == ARTICLE


def test_objects_are_yielded_outer_before_inner() -> None:
    value = {"n": 1, "x": [{"n": 2, "y": {"n": 3}}], "@graph": {"n": 4}}
    assert [found["n"] for found in iter_objects(value)] == [1, 2, 3, 4]
    assert [found["n"] for found in iter_objects(value, fields=("@graph",))] == [1, 4]
