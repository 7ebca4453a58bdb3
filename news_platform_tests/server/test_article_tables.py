"""Rows of an article by its key: any block of any file, as long as its table names it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from news_platform.corpus.pipeline import feed_dataset
from news_platform.server.versions import BLOCK_ROWS, ArticleRows, DataVersion
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.web.urls import url_hash
from news_platform_tests.corpus.articles import article, store_articles

DAY, NEXT = "2025-11-01", "2025-11-02"
COUNT = 2 * BLOCK_ROWS + 40


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """Return a root with a day of three blocks, and one article in both tables and days."""
    store = open_store(str(tmp_path / "root"))
    claim_root(store, sample=False)
    many = [article(_url(number), f"Text {number}.") for number in range(COUNT)]
    store_articles(store, DAY, many, tmp_path)
    store_articles(store, NEXT, [article(_url(7), "Crawled again.")], tmp_path)
    later = datetime(2025, 11, 2, 18, tzinfo=UTC)
    feed = article(_url(7), "From the feed.", source="feed", fetched_at=later)
    store_articles(store, NEXT, [feed], tmp_path, dataset=feed_dataset(store))
    return store


def _url(number: int) -> str:
    return f"https://site{number % 3}.example/{number}"


def _rows(store: ObjectStore) -> ArticleRows:
    return ArticleRows(store, DataVersion(store))


def _texts(rows: ArticleRows, number: int, day: str = "") -> list[str]:
    return [row["text"] for row in rows.find(url_hash(_url(number)), day=day)]


def test_every_row_of_every_block_is_found(store: ObjectStore) -> None:
    rows = _rows(store)
    for number in (*range(0, COUNT, 97), BLOCK_ROWS - 1, BLOCK_ROWS, COUNT - 1):
        assert _texts(rows, number, DAY) == [f"Text {number}."]
    assert _texts(rows, COUNT) == [] == _texts(rows, 8, NEXT) == _texts(rows, 8, "1999-01-01")


def test_all_captures_come_newest_first_and_the_feed_before_the_crawl(store: ObjectStore) -> None:
    rows = _rows(store)
    assert _texts(rows, 7) == ["From the feed.", "Crawled again.", "Text 7."]
    assert _texts(rows, 7, NEXT) == ["From the feed.", "Crawled again."]
    assert [row["day"] for row in rows.find(url_hash(_url(7)))] == [NEXT, NEXT, DAY]
