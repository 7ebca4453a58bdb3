"""When an article was published: every source in its order, and no date where none is stated."""

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

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
            "", "<p>5.11.2025</p>", URL + "/2025/11/04/x", ("2025-11-04", "url"), id="url"
        ),
        pytest.param(
            "", "<p>Mittwoch, 5. März 2025</p>", URL, ("2025-03-05", "visible"), id="line"
        ),
        pytest.param("", "<p>05/03/2025</p>", URL, ("2025-03-05", "visible"), id="by language"),
        pytest.param("", "", URL, ("", ""), id="nothing"),
        pytest.param("", "<p>© 2025 The Post, 1.1.2025</p>", URL, ("", ""), id="copyright"),
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
        ("https://a.example/x-2020-02-19.html", "2020-02-19"),
        ("https://a.example/news/20200219/x", "2020-02-19"),
        ("https://a.example/2020/02/31/x", None),
        ("https://a.example/12020021955/x", None),
        ("https://a.example/2020/02/x", None),
        ("http://[broken/2020/02/19", None),
    ],
)
def test_the_day_in_an_address(url: str, day: str | None) -> None:
    date = url_day(url)
    assert (date.at.date().isoformat() if date else None) == day


@pytest.mark.parametrize(
    ("language", "order"),
    [("en-US", "month first"), ("en_GB", "day first"), ("de", "day first"), ("en", "unknown")],
)
def test_the_order_of_day_and_month_comes_from_the_language(language: str, order: str) -> None:
    assert day_order(language) == order


# Documentation, service and listing pages that were looked at and state no day of publication; of
# some only a version, a course or the last change has a day.
UNDATED = re.findall(
    r"\S+",
    "0029 0053 0062 0066 0076 0077 0082 0084 0087 0088 0102 0112 0117 0132 "
    "0135 0148 0169 0193 0194 0216 0220 0225 0235 0239 0242 0247 0264 0274 "
    "0282 0288 0302 0311 0326 0337 0340 0349 0369 0374 0376 0377 0423 0424 "
    "0465 0470 0498 0499 0633 0638 0639 0641 0642 0644 0645 0647 0648 0649 "
    "0650 0651 0652 0653 0654 0661 0662 0663 0664 0665 0666 0667 0668 0669 "
    "0671 0672 0673 0674 0675 0677 0678 0679 0681 0682 0683 0684 0685 0687 "
    "0689 0690 0692 0694 0695 0696 0697 0699 0700 0701 0702 0703 0707 0708 "
    "0709 0710 0712 0715 0717 0719 0767 0847 1054 1056 1087 1371 1435 1442 "
    "1520 1647 1788 2393 2660 2831 2832 2835 2836 2837 2838 2839 2840 2841 "
    "2842 2844 2845 2847 2848 2849 2852 2853 2854 2855 2856 2857 2858 2859 "
    "2860 2861 2865 2866 2869 2870 2871 2872 2873 2874 2876 2879 2897 2909 "
    "2911 2913 2914 2917 2918 2920 2922 2925 ",
)


def test_pages_without_a_date_get_none(bench_data: Path) -> None:
    dated = []
    for key in UNDATED:
        html = gzip.decompress((bench_data / "pages" / "html" / f"{key}.html.gz").read_bytes())
        known = json.loads((bench_data / "pages" / "truth" / f"{key}.json").read_text())
        if extract_article(html, known.get("url") or "").published_at is not None:
            dated.append(key)
    assert len(UNDATED) >= 150
    assert len(dated) <= len(UNDATED) * 2 // 100, dated
