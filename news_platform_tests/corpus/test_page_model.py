"""Whether a page is an article: made-up pages, broken pages, and a sample of real ones."""

from collections.abc import Mapping
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.page_kinds import iter_article_pages, iter_other_pages, page_row
from news_platform.articles.extract import inspect_page
from news_platform.articles.page_model import WORD_PLACES, load_page_model, page_features
from news_platform.corpus.rows import NO_TEXT, NOT_AN_ARTICLE, CrawlPage
from news_platform.corpus.worker import classify_page
from news_platform.html.decode import html_text
from news_platform.sample.newsroom import publish
from news_platform.sample.outlets import OUTLETS, Outlet
from news_platform.sample.pages import missing_page
from news_platform.sample.sites import Site, build_sites
from news_platform_tests import articles as articles_tests
from news_platform_tests.corpus.pages import article_html, list_html


@cache
def sample_sites() -> Mapping[str, Site]:
    return build_sites(publish())


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


FRONTS = ("", "politics", "economy", "sports", "local")


@pytest.mark.parametrize("outlet", OUTLETS, ids=lambda outlet: outlet.key)
def test_front_and_error_pages_of_the_sample_are_not_articles(outlet: Outlet) -> None:
    pages = sample_sites()[outlet.host]
    asked = [(f"/{name}", pages[f"/{name}"].body) for name in FRONTS if f"/{name}" in pages]
    asked.append(("/1234.html", missing_page(outlet)))
    found = [
        classify_page(CrawlPage(outlet.origin + path, html_text(body, None), 200))
        for path, body in asked
    ]
    assert {page.reason for page in found} <= {NOT_AN_ARTICLE, NO_TEXT}


@pytest.mark.parametrize("address", ["/?p=123", "/2025/11/01/bridge", "/bridge.html"])
def test_the_path_alone_does_not_decide(address: str) -> None:
    assert is_article(article_html(1), f"https://courier.example{address}")
    assert not is_article(list_html(1), f"https://courier.example{address}")


ERRORS = (Path(articles_tests.__file__).parent / "soft_404.txt").read_text().splitlines()
# How sites set an error page: as a page, as an article, and above their latest articles.
ERROR_PAGES = {
    "page": "<main><h1>{title}</h1><p>{text}</p><p><a href='/'>The Courier</a></p></main>",
    "article": "<article class='post'><h1 class='entry-title'>{title}</h1><div class='entry'>"
    "<p>{text}</p><form><input type='search'></form></div></article>",
    "latest": "<main><h1>{title}</h1><p>{text}</p>"
    + "".join(
        f"<div><h3><a href='/2024/{at}'>Bridge {at} is repaired, says council</a></h3><p>The "
        f"council agreed on Tuesday to repair the old bridge after {at} years of debate.</p></div>"
        for at in range(2, 10)
    )
    + "</main>",
}


@pytest.mark.parametrize("kind", ERROR_PAGES)
def test_no_error_page_that_answers_200_is_an_article(kind: str) -> None:
    passed = []
    for line in ERRORS:
        language, title, text = line.split("|")
        html = (
            f"<html lang='{language}'><head><title>{title} - The Courier</title>"
            f"<meta property='og:type' content='article'></head><body><nav>"
            f"<a href='/'>The Courier</a> <a href='/news'>News</a></nav>"
            f"{ERROR_PAGES[kind].format(title=title, text=text)}</body></html>"
        )
        if classify_page(CrawlPage("https://courier.example/news/bridge-1", html, 200)).row:
            passed.append(line)
    assert passed == []


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
