"""Rows of the corpus: their values, their flags, and the words of any language."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from news_platform.articles.article import Article
from news_platform.corpus.rows import QUALITY_FLAGS, article_row, dated_row
from news_platform.text.normalize import count_words

GOOD = Article(
    clean_text="\n".join(f"A sentence of eight words, number {at} here." for at in range(20)),
    title="A title",
    published_at=datetime(2025, 11, 1, tzinfo=UTC),
    language="en",
    language_probability=0.99,
    text_source="page",
    confidence=0.97,
)
URL = "https://www.bbc.co.uk/news/1?utm_source=x"


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"title": ""}, "no_title"),
        ({"published_at": None}, "no_date"),
        ({"clean_text": "too short"}, "few_words"),
        ({"confidence": 0.5}, "unsure_text"),
        ({"language_probability": 0.5}, "unsure_language"),
        ({"text_source": "trafilatura"}, "fallback_text"),
        (
            {"clean_text": "\n".join(["the same line of a menu that repeats itself"] * 20)},
            "repeated_lines",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_may_be_wrong_is_flagged(change: dict[str, object], flag: str) -> None:
    assert article_row(GOOD, URL).quality_flags == ()
    changed = replace(GOOD, **change)  # type: ignore[arg-type]  # fields by name
    assert article_row(changed, URL).quality_flags == (flag,)
    assert flag in QUALITY_FLAGS


def test_a_date_more_than_a_day_after_the_fetch_is_only_stated() -> None:
    fetched_at = datetime(2025, 11, 1, 10, tzinfo=UTC)
    tomorrow, later = fetched_at + timedelta(days=1), datetime(2099, 1, 1, tzinfo=UTC)
    kept = dated_row(article_row(replace(GOOD, published_at=tomorrow), URL), fetched_at)
    assert (kept.published_at, kept.stated_published_at) == (tomorrow, None)
    assert kept.quality_flags == ()
    moved = dated_row(article_row(replace(GOOD, published_at=later, title=""), URL), fetched_at)
    assert (moved.published_at, moved.stated_published_at) == (None, later)
    assert moved.quality_flags == ("no_date", "no_title")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's well-known: 3.5 percent", 7),
        ("新华社北京电", 3),
        ("東京 Tokyo 2025", 3),
    ],
)
def test_words_are_counted_in_any_script(text: str, words: int) -> None:
    assert count_words(text) == words
