"""The index of a day follows both article tables, and a search reads the days it is asked for."""

from functools import partial
from pathlib import Path

import pytest

from news_platform.datasets.corpus import CRAWL_ARTICLES, FEED_ARTICLES
from news_platform.errors import InputError
from news_platform.search.engine import SearchOptions
from news_platform.search.index_engine import IndexEngine
from news_platform.search.pipeline import (
    build_day,
    index_problems,
    read_rows,
    search_days,
    with_snippets,
)
from news_platform.search.publish import index_folder
from news_platform.search.reading import IndexCache
from news_platform.storage.commit.markers import delete_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.search.articles import made_articles
from news_platform_tests.search.indexes import DAY, NOW, build_stale, found, write_day


def test_an_index_holds_both_tables_and_each_address_once(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    articles = made_articles(60, seed=5, days=1)
    write_day(local_store, CRAWL_ARTICLES, articles[:40], tmp_path / "scratch")
    write_day(local_store, FEED_ARTICLES, articles[30:], tmp_path / "scratch")
    assert build_stale(local_store) == [DAY]
    assert build_stale(local_store) == []
    everything = found(local_store, tmp_path, "domain:a.example OR NOT domain:a.example")
    assert sorted(everything) == sorted(article.url_hash for article in articles)
    assert list(index_problems(local_store, DAY)) == []


def test_a_changed_day_is_built_again_and_a_removed_one_goes(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    articles = made_articles(20, seed=6, days=1)
    write_day(local_store, CRAWL_ARTICLES, articles, tmp_path / "scratch")
    build_stale(local_store)
    write_day(local_store, CRAWL_ARTICLES, articles[:5], tmp_path / "scratch")
    assert build_stale(local_store) == [DAY]
    assert len(found(local_store, tmp_path, "day:2025-11-01")) == 5
    delete_marker(local_store, CRAWL_ARTICLES.name, DAY)
    assert build_day(local_store, DAY, now=NOW) is None
    IndexEngine(local_store, NOW).delete([DAY])
    assert list(local_store.list(index_folder(DAY))) == []
    with pytest.raises(InputError, match="there is no search index"):
        found(local_store, tmp_path, "bridge")


def test_only_the_newest_days_are_searched_unless_days_are_given(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    articles = made_articles(10, seed=8, days=1)
    for day in ("2025-09-01", "2025-11-01"):
        write_day(local_store, CRAWL_ARTICLES, articles, tmp_path / "scratch", day=day)
    build_stale(local_store)
    every = "domain:a.example OR NOT domain:a.example"
    assert len(found(local_store, tmp_path, every)) == 10
    options = SearchOptions(first_day="2025-08-01", limit=100)
    assert len(found(local_store, tmp_path, every, options)) == 20
    wrong = SearchOptions(first_day="2025-11-02", last_day="2025-11-01")
    with pytest.raises(InputError, match="the first is after the last"):
        found(local_store, tmp_path, every, wrong)


def test_a_snippet_shows_the_words_of_the_query(local_store: ObjectStore, tmp_path: Path) -> None:
    articles = made_articles(30, seed=9, days=1)
    write_day(local_store, CRAWL_ARTICLES, articles, tmp_path / "scratch")
    build_stale(local_store)
    cache = IndexCache(local_store, tmp_path / "cache", max_bytes=1 << 30)
    query = "text:brucke"
    answer = search_days(cache, query, SearchOptions(limit=5), default_days=30)
    shown = list(with_snippets(query, answer.hits, partial(read_rows, local_store)))
    assert shown
    for one in shown:
        assert "[Brücke]" in one.snippet.marked("[", "]")
        assert len(one.snippet.text) <= 240


def test_a_file_that_is_missing_from_an_index_is_a_problem(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    write_day(local_store, CRAWL_ARTICLES, made_articles(5, seed=1, days=1), tmp_path / "scratch")
    build_stale(local_store)
    local_store.delete([next(iter(local_store.list(index_folder(DAY)))).path])
    (problem,) = index_problems(local_store, DAY)
    assert "expected" in problem
