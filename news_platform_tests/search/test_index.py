"""An index finds exactly what a scan of all articles finds."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from news_platform.errors import InputError
from news_platform.search import index
from news_platform.search.engine import FACETS, SearchOptions, condition_of, cut_facet, search
from news_platform.search.index import Hit, IndexReader, build_index
from news_platform.search.query import AllOf, parse_query
from news_platform.search.words import words
from news_platform_tests.search.articles import DOMAINS, made_articles, made_query, scan

OPTIONS = SearchOptions(limit=5_000)


def check_against_scan(folder: Path, *, articles: int, queries: int, seed: int) -> None:
    made = made_articles(articles, seed=seed)
    assert build_index(folder, made) == articles
    reader, dice, found_any = IndexReader(folder), random.Random(seed), 0
    for _ in range(queries):
        query = made_query(made, dice)
        condition = parse_query(query)
        expected = scan(made, condition)
        answer = reader.search(condition, limit=articles, newest_first=False)
        assert {hit.url_hash for hit in answer.hits} == expected, query
        assert answer.count == len(expected)
        found_any += bool(expected) and len(expected) < articles
    assert found_any > queries / 3


def test_60_queries_over_400_articles_equal_a_scan(tmp_path: Path) -> None:
    check_against_scan(tmp_path, articles=400, queries=60, seed=1)


@pytest.mark.soak
def test_500_queries_over_10000_articles_equal_a_scan(tmp_path: Path) -> None:
    check_against_scan(tmp_path, articles=10_000, queries=500, seed=2)


@pytest.fixture
def readers(tmp_path: Path) -> list[IndexReader]:
    """Return one index per day of the same articles."""
    made = made_articles(300, seed=3)
    found = []
    for day in sorted({article.day for article in made}):
        folder = tmp_path / day
        folder.mkdir()
        build_index(folder, [article for article in made if article.day == day])
        found.append(IndexReader(folder))
    return found


def test_several_indexes_answer_as_one(readers: list[IndexReader], tmp_path: Path) -> None:
    made = made_articles(300, seed=3)
    (tmp_path / "all").mkdir()
    build_index(tmp_path / "all", made)
    condition = parse_query("bridge OR brucke OR 大桥")
    several = search(readers, condition, OPTIONS)
    one = search([IndexReader(tmp_path / "all")], condition, OPTIONS)
    assert {hit.url for hit in several.hits} == {hit.url for hit in one.hits}
    assert several.count == one.count == len(scan(made, condition)) > 20


def test_pages_of_an_answer_join_in_order_without_gaps_or_repetitions(
    readers: list[IndexReader],
) -> None:
    for newest_first in (False, True):
        whole = search(readers, AllOf(()), SearchOptions(limit=300, newest_first=newest_first))
        pages = [
            search(
                readers,
                AllOf(()),
                SearchOptions(limit=50, offset=offset, newest_first=newest_first),
            )
            for offset in range(0, 300, 50)
        ]
        joined = [hit.url for page in pages for hit in page.hits]
        assert len(set(joined)) == 300
        assert joined == [hit.url for hit in whole.hits]
    times = [hit.at for hit in whole.hits]
    assert times == sorted(times, reverse=True)


def test_facets_count_all_that_match(readers: list[IndexReader]) -> None:
    options = SearchOptions(limit=1, facets=("domain", "language", "day"))
    found = search(readers, AllOf(()), options)
    assert found.count == 300
    assert set(found.facets["domain"]) == set(DOMAINS)
    assert [sum(values.values()) for values in found.facets.values()] == [300, 300, 300]


def test_a_facet_that_is_cut_counts_the_others(
    readers: list[IndexReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_FACET_VALUES", 2)
    options = SearchOptions(limit=1, facets=("domain", "day"))
    found = search(readers, AllOf(()), options).facets
    assert [sum(values.values()) for values in found.values()] == [300, 300]
    assert list(found["domain"])[-1] == "other"
    assert cut_facet({"a": 1, "b": 5, "other": 2, "c": 3}, 2) == {"b": 5, "c": 3, "other": 3}


def test_filters_narrow_a_query(readers: list[IndexReader]) -> None:
    options = SearchOptions(
        first_day="2025-11-02", languages=("de", "EN"), domains=("A.example.",), limit=300
    )
    found = search(readers, condition_of("the OR die OR der", options), options).hits
    assert found
    assert all(hit.day >= "2025-11-02" and hit.domain == "a.example" for hit in found)
    assert {hit.language for hit in found} <= {"de", "en"}


def test_a_large_cluster_hides_no_other_article(readers: list[IndexReader]) -> None:
    """All but the last hits are of one cluster: more hits are looked at until there are enough."""
    ordered = search(readers, AllOf(()), SearchOptions(limit=300)).hits
    last = {hit.url_hash for hit in ordered[-2:]}

    def clusters(hits: Sequence[Hit]) -> list[str | None]:
        return [None if hit.url_hash in last else "one" for hit in hits]

    found = search(readers, AllOf(()), SearchOptions(limit=3), clusters_of=clusters)
    assert [hit.url_hash for hit in found.hits] == [
        hit.url_hash for hit in (ordered[0], *ordered[-2:])
    ]


BOMBS = {
    "10,000 words": " OR ".join(f"word{number}" for number in range(10_000)),
    "leading wildcard": "*" * 500 + "bridge",
    "deep brackets": "(" * 900 + "bridge" + ")" * 900,
    "a long phrase": '"' + "a " * 900 + '"',
    "a range of 9,999 years": "day:0001-01-01..9999-12-31",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_query_bomb_ends_at_once_with_the_place_of_its_mistake(name: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError, match=r"invalid query at character|characters: expected"):
        parse_query(BOMBS[name])
    assert time.process_time() - started < 0.5


def test_the_largest_queries_that_are_allowed_end_in_time(readers: list[IndexReader]) -> None:
    common = [word for word, _ in Counter(_all_words()).most_common(99)]
    largest = (
        " OR ".join(common),
        " ".join(f"-{word}" for word in common),
        "(" * 19 + " OR ".join(common) + ")" * 19,
        '"' + " ".join(["bridge"] * 99) + '"',
    )
    for query in largest:
        started = time.process_time()
        search(readers, parse_query(query), SearchOptions(limit=1_000, facets=FACETS))
        assert time.process_time() - started < 2


def _all_words() -> list[str]:
    return [word for one in made_articles(300, seed=3) for word in words(one.text)]
