"""Pages whose article our own rules do not find are read by trafilatura."""

import json

import pytest

from news_platform.articles.extract import clean_text_of, extract_article

SENTENCES = [
    f"On day {day} the harbour council heard the fishermen, who said that the bridge was closed "
    f"for {day} hours while their boats lay waiting in the rain."
    for day in range(1, 7)
]
STORY = {"@type": "NewsArticle", "headline": "Bridge", "articleBody": " ".join(SENTENCES)}
HIDDEN = {
    "json-ld": f'<script type="application/ld+json">{json.dumps(STORY)}</script><div></div>',
    "noscript": f"<noscript>{''.join(f'<p>{one}</p>' for one in SENTENCES)}</noscript>",
    "headings": f"<div>{''.join(f'<h3>{one}</h3>' for one in SENTENCES)}</div>",
}


@pytest.mark.parametrize("way", HIDDEN)
def test_an_article_that_our_rules_miss_is_found(way: str) -> None:
    article = extract_article(f"<html><body>{HIDDEN[way]}</body></html>", "https://post.example/a")
    for sentence in SENTENCES:
        assert sentence in article.clean_text
        assert sentence in article.full_text
    assert article.language == "en"


def test_what_our_rules_found_stays_and_a_script_without_spaces_needs_less() -> None:
    found = "市议会决定修复旧桥，工程将于下月开始，预计持续两年。" * 5
    page = f"<html><body>{HIDDEN['noscript']}</body></html>"
    assert clean_text_of(page, found) == (found, "page")


def test_a_page_without_an_article_stays_empty() -> None:
    page = "<html><body><nav><a href='/a'>News</a></nav><p>Please log in.</p></body></html>"
    assert clean_text_of(page, "") == ("", "")
