"""One answer about a URL, a domain or a feed across all features, over a finished demo."""

import json
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import polars as pl
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from news_platform.api import NewsData
from news_platform.cli.main import main
from news_platform.datasets import versions
from news_platform.datasets.evidence import Evidence, Explanation
from news_platform.datasets.registry import DATASETS
from news_platform.errors import InputError
from news_platform.settings import load_settings
from news_platform_tests.servers.demo import Demo
from news_platform_tests.takedowns.asked import ask

ORDER = [*(name for name in DATASETS if name != "takedowns"), "takedowns"]


def news_of(root: Path) -> NewsData:
    cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(root.parent / "search-cache")}
    return NewsData(load_settings({"NEWS_PLATFORM_ROOT": str(root), **cache}))


@pytest.fixture(scope="module")
def news(finished_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> NewsData:
    copy = finished_demo.copy(tmp_path_factory.mktemp("explain") / "demo")
    return news_of(copy.root)


def one_url(news: NewsData, query: str) -> str:
    with news.ledger.connect() as connection:
        return str(connection.execute(sa.text(f"{query} order by row_id")).scalars().first())


def states(found: Explanation, dataset: str) -> list[str]:
    return [one.state for one in found.evidence if one.dataset == dataset]


def of_state(found: Explanation, dataset: str, state: str) -> list[Evidence]:
    return [one for one in found.evidence if (one.dataset, one.state) == (dataset, state)]


def assert_in_order(names: Sequence[str]) -> None:
    places = [ORDER.index(name) for name in names]
    assert places == sorted(places)


@pytest.fixture(scope="module")
def crawled(news: NewsData) -> str:
    """Return an article that the crawl captured and the corpus has."""
    rows = news["crawl_articles"].select("url", "day", "domain").sort("url", "day").collect()
    return str(rows.filter(pl.col("domain") == "calderpost.example")["url"][0])


def test_a_crawled_article_is_followed_from_its_warc_to_the_export(
    news: NewsData, crawled: str
) -> None:
    found = news.explain(crawled)
    assert found.known and found.kind == "url" and found.advice == ()
    assert_in_order([one.dataset for one in found.evidence])
    listed = of_state(found, "captures", "listed")[0]
    capture = news["captures"].filter(pl.col("url") == crawled).sort("day").collect().to_dicts()[-1]
    place = f"@{capture['warc_record_offset']}+{capture['warc_record_length']}"
    assert listed.source == capture["warc_filename"] + place
    assert listed.at is not None
    assert "HTTP status 200, text/html" in listed.text
    stored = of_state(found, "domain_store", "stored")[0].source
    assert stored.startswith("domain_store/data/")
    assert (
        f"extractor {versions.ARTICLE_EXTRACTOR}"
        in of_state(found, "crawl_articles", "stored")[0].text
    )
    assert states(found, "near_duplicates")[0] in ("single", "clustered")
    assert set(states(found, "search_index")) == {"indexed"}
    assert states(found, "training_export") in (["exported"], ["dropped"])


@pytest.mark.parametrize(
    "spelling",
    ["http://{bare}", "https://www.{bare}", "  {bare}  ", "https://{bare}?utm_source=x#top"],
)
def test_all_spellings_of_an_address_are_the_same_page(
    news: NewsData, crawled: str, spelling: str
) -> None:
    bare = crawled.removeprefix("https://").removeprefix("www.")
    assert news.explain(spelling.format(bare=bare)).evidence[0].source == (
        news.explain(crawled).evidence[0].source
    )


def test_a_refused_article_names_the_file_and_the_line_of_the_rule(news: NewsData) -> None:
    url = one_url(news, "select article_url_canon from raw where robots_rule like 'Disallow%'")
    found = news.explain(url)
    for name in ("domain_metadata", "articles"):
        (rule,) = [one for one in of_state(found, name, "refused") if "line" in one.details]
        path, _, line = rule.source.rpartition(":")
        text = (Path(news._settings.root) / path).read_text().splitlines()[int(line) - 1]
        assert text == rule.details["rule"] == "Disallow: /premium/"
    assert states(found, "articles")[-1] == "skipped"


def test_an_article_of_a_feed_has_all_its_states_and_is_in_the_workbook(
    news: NewsData,
) -> None:
    url = one_url(news, "select article_url_canon from raw where status = 'stored'")
    found = news.explain(url)
    assert {"listed", "allowed", "claimed", "fetched", "stored", "extracted"} <= {
        *states(found, "articles")
    }
    (sheet,) = of_state(found, "article_sheets", "shown")
    book = openpyxl.load_workbook(Path(news._settings.root) / sheet.source, read_only=True)
    assert any(url in row for row in book["Raw"].iter_rows(values_only=True))


def test_a_dropped_response_says_why(news: NewsData) -> None:
    rows = news["dropped_responses"].filter(pl.col("reason") == "not_html").sort("uri").collect()
    uri, offset = next(
        (uri, offset)
        for uri, offset in rows.select("uri", "offset").iter_rows()
        if uri.endswith(".png")
    )
    found = news.explain(uri)
    dropped = of_state(found, "dropped_responses", "dropped")
    assert any(one.source.endswith(f"@{offset}") for one in dropped)
    assert {one.details["reason"] for one in dropped} == {"not_html"}


def test_a_domain_shows_its_records_rules_feeds_and_articles(news: NewsData) -> None:
    found = news.explain("Calderpost.example")
    assert (found.kind, found.subject, found.known) == ("domain", "calderpost.example", True)
    assert_in_order([one.dataset for one in found.evidence])
    assert {"domain_store", "domain_metadata", "feeds", "crawl_articles"} <= {
        one.dataset for one in found.evidence if one.is_known
    }


def test_what_is_unknown_says_what_would_have_to_happen(news: NewsData) -> None:
    page = news.explain("https://nowhere.example/nothing")
    assert not page.known and any("feeds add" in one for one in page.advice)
    domain = news.explain("nowhere.example")
    assert not domain.known and any("domains import" in one for one in domain.advice)
    for wrong in ("", "not a url", "mailto:ada@example.org", "http://"):
        with pytest.raises(InputError, match="neither a URL nor a domain"):
            news.explain(wrong)


def test_a_takedown_is_the_last_word(finished_demo: Demo, crawled: str, tmp_path: Path) -> None:
    news = news_of(finished_demo.copy(tmp_path / "demo").root)
    ask(news._store, "url", crawled)
    found = news.explain(crawled)
    assert found.evidence[-1].state == "taken_down"
    assert "taken down" in found.advice[0]


def run(root: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["explain", *words, "--root", root])


def test_the_command_prints_the_same_as_text_and_as_json(news: NewsData, crawled: str) -> None:
    root = news._settings.root
    text, document = run(root, crawled), json.loads(run(root, crawled, "--json").stdout)
    assert text.exit_code == 0
    assert all(one["text"] in text.stdout for one in document["evidence"])
    assert [one["dataset"] for one in document["evidence"]] == [
        one.dataset for one in news.explain(crawled).evidence
    ]
    unknown = run(root, "https://nowhere.example/nothing")
    assert unknown.exit_code == 1 and "what to do" in unknown.stdout
