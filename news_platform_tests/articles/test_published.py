"""When an article was published: every source in its order, and no date where none is stated."""

from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.article_undated import UNDATED, iter_undated_pages
from news_platform.articles.extract import extract_article
from news_platform.articles.published import day_order, url_day
from news_platform_tests.rss.web import SENTENCES

PROSE = "".join(f"<p>{sentence} {sentence}</p>" for sentence in SENTENCES)
URL = "https://post.example/bridge"
META = '<meta property="article:published_time" content="2025-11-01T08:00:00+02:00">'
LD_OBJECT = '{"@type": "Article", "datePublished": "2025-10-31"}'
LD = f'<script type="application/ld+json">{LD_OBJECT}</script>'
TIME = '<time datetime="2025-11-03T08:00:00Z">today</time>'


def found(head: str = "", line: str = "", *, url: str = URL, lang: str = "de") -> tuple[str, str]:
    """Return the day and its source, for a page with `line` under its headline."""
    page = (
        f'<html lang="{lang}"><head>{head}</head><body><nav><a href="/">Home</a></nav>'
        f"<main><article><h1>The bridge is repaired</h1>{line}{PROSE}</article></main></body>"
    )
    article = extract_article(page, url)
    day = article.published_at.date().isoformat() if article.published_at else ""
    return day, article.published_at_source


@pytest.mark.parametrize(
    ("head", "line", "url", "expected"),
    [
        pytest.param(LD + META, TIME, URL, ("2025-10-31", "json-ld"), id="JSON-LD first"),
        pytest.param(META, TIME, URL, ("2025-11-01", "meta"), id="then meta"),
        pytest.param(
            "",
            f'{TIME}<i itemprop="x"></i><span itemprop="datePublished">2.11.2025</span>',
            URL,
            ("2025-11-02", "microdata"),
            id="then microdata",
        ),
        pytest.param("", TIME, URL + "/2025/11/04", ("2025-11-03", "time"), id="then a time"),
        pytest.param(
            META,
            "<p>5.3.2020</p>",
            URL,
            ("2020-03-05", "visible"),
            id="an earlier day is the first",
        ),
        pytest.param(
            "", "<p>5.11.2025</p>", URL + "/2025/11/04/x", ("2025-11-04", "url"), id="url"
        ),
        pytest.param(
            "", "<p>Mittwoch, 5. März 2025</p>", URL, ("2025-03-05", "visible"), id="line"
        ),
        pytest.param("", "", URL, ("", ""), id="nothing"),
        pytest.param(
            "",
            "<p>On 3 November 2025 it rained, and the bridge was closed again.</p>",
            URL,
            ("", ""),
            id="a sentence is no date line",
        ),
    ],
)
def test_the_first_stated_source_decides(
    head: str, line: str, url: str, expected: tuple[str, str]
) -> None:
    assert found(head, line, url=url) == expected


def test_the_date_at_the_head_of_the_page_is_todays_and_not_the_articles() -> None:
    page = (
        "<body><div>Monday, 3 November 2025</div><main><article><h1>The bridge is repaired</h1>"
        f"{PROSE}</article></main></body>"
    )
    assert extract_article(page, URL).published_at is None


def test_time_and_zone_are_known_or_not_and_the_change_is_kept_apart() -> None:
    changed = '<meta property="article:modified_time" content="2025-11-02T09:00:00Z">'
    article = extract_article(f"<html><head>{META}{changed}</head><body>{PROSE}</body></html>", URL)
    assert article.published_at == datetime(2025, 11, 1, 6, tzinfo=UTC)
    assert (article.published_at_has_time, article.published_at_has_zone) == (True, True)
    assert article.modified_at == datetime(2025, 11, 2, 9, tzinfo=UTC)
    day_only = extract_article(f"<html><head>{LD}</head><body>{PROSE}</body></html>", URL)
    assert (day_only.published_at_has_time, day_only.published_at_has_zone) == (False, False)
    only_changed = extract_article(f"<html><head>{changed}</head><body>{PROSE}</body></html>", URL)
    assert only_changed.published_at is None


@pytest.mark.parametrize(
    ("url", "day"),
    [
        ("https://a.example/2020/02/19/x", "2020-02-19"),
        ("https://a.example/news/20200219/x", "2020-02-19"),
        ("https://a.example/2020/02/31/x", None),
        ("http://[broken/2020/02/19", None),
    ],
)
def test_the_day_in_an_address(url: str, day: str | None) -> None:
    date = url_day(url)
    assert (date.at.date().isoformat() if date else None) == day


@pytest.mark.parametrize(
    ("language", "url", "order"),
    [
        ("en-US", "", "month first"),
        ("en_GB", "", "day first"),
        ("en", "", "unknown"),
        ("en", "https://a.example/en-gb/news/x", "day first"),
        ("en", "https://a.co.uk/x", "day first"),
        ("en", "http://[broken", "unknown"),
    ],
)
def test_the_order_of_day_and_month_comes_from_language_or_address(
    language: str, url: str, order: str
) -> None:
    assert day_order(language, url) == order


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.soak), 8])
def test_pages_without_a_date_get_none(bench_data: Path, step: int) -> None:
    pages = list(islice(iter_undated_pages(bench_data / "pages"), 0, None, step))
    dated = [key for key, url, html in pages if extract_article(html, url).published_at is not None]
    assert len(UNDATED) >= 150
    # Two percent of all; two of the known ones are in the sample.
    assert len(dated) <= (len(pages) * 2 // 100 if step == 1 else 2), dated
