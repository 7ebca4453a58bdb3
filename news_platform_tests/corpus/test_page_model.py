"""Whether a page is an article: made-up pages, broken pages, and a sample of real ones."""

from itertools import islice
from pathlib import Path

import pytest

from benchmarks.page_kinds import iter_article_pages, iter_other_pages, page_row
from news_platform.articles.extract import inspect_page
from news_platform.articles.page_model import WORD_PLACES, load_page_model, page_features
from news_platform_tests.corpus.pages import article_html, list_html


def is_article(html: str, url: str) -> bool:
    page = inspect_page(html, url)
    assert page is not None
    return load_page_model().is_article(page_features(page, html, url))


@pytest.mark.parametrize("number", range(2))
def test_an_article_is_told_from_a_front_page(number: int) -> None:
    url = f"https://courier.example/news/2025/11/01/bridge-{number}"
    assert is_article(article_html(number), url)
    assert not is_article(list_html(number), "https://courier.example/")


@pytest.mark.parametrize(
    "html",
    ["<p>", "text without markup", "<html><body></body></html>", "<br>" * 50, "<div>" * 300],
    ids=["tag", "text", "empty", "breaks", "deep"],
)
def test_features_of_odd_pages_are_numbers_of_the_same_names(html: str) -> None:
    model = load_page_model()
    page = inspect_page(html, "https://a.example/")
    assert page is not None
    for url in ("", "not a url", "https://[bad/x"):
        found = page_features(page, html, url)
        assert found.numbers.keys() == set(model.numbers)
        assert all(isinstance(value, int) for value in found.numbers.values())
        assert tuple(found.words) == WORD_PLACES
        assert isinstance(model.score(found), int)


def test_real_pages_are_told_apart(bench_data: Path) -> None:
    # These were learned from: `benchmarks.corpus decision` measures pages that were not.
    articles = islice(iter_article_pages(bench_data), 10)
    others = islice(iter_other_pages(bench_data), 10)
    model = load_page_model()
    kept = {
        is_positive: [
            model.is_article(row.features) for page in sample if (row := page_row(page)) is not None
        ]
        for is_positive, sample in ((True, articles), (False, others))
    }
    assert sum(kept[True]) / len(kept[True]) >= 0.95
    assert sum(kept[False]) / len(kept[False]) <= 0.05
