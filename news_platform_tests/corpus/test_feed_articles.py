"""Articles of feeds in the columns of the corpus, and both tables as one relation."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import news_platform
from news_platform.corpus.pipeline import build_feed_day, feed_dataset, wanted_feed_days
from news_platform.datasets.corpus import CRAWL_ARTICLES, FEED_ARTICLES
from news_platform.datasets.feeds import ARTICLES, articles_path
from news_platform.errors import InputError
from news_platform.storage.commit.root import RootAccess, claim_root
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform.storage.units import built_inputs
from news_platform_tests.corpus.articles import article, store_articles

DAY = "2025-11-01"
MOMENT = datetime(2025, 11, 1, 9, tzinfo=UTC)


def export_day(store: ObjectStore, **changes: object) -> None:
    """Store two articles of a day as the feeds' export does."""
    first = {
        "row_id": 1,
        "source": "b.example",
        "article_url": "https://b.example/1?utm_source=feed",
        "article_url_canon": "https://b.example/1",
        "url_hash": "b1",
        "text_hash": "t1",
        "fetched_at": MOMENT,
        "published_at": MOMENT,
        "language": "en",
        "title": "A title",
        "subtitle": "",
        "authors": ["Ada Hill"],
        "clean_text": "A text of some words.",
        "clean_text_len": 21,
        "word_count": 60,
        "category_guess": "sports",
        "confidence": 0.95,
        "full_text_ref": "/somewhere/b1.txt.gz",
    }
    second = {
        **first,
        "row_id": 2,
        "source": "a.example",
        "article_url_canon": "https://a.example/2",
        "url_hash": "a2",
        "title": "",
        "published_at": None,
        "clean_text_len": 9000,
        "confidence": 0.4,
    }
    rows = [first | changes, second, {**second, "url_hash": "none", "clean_text": ""}]
    frame = pl.DataFrame(rows, schema=dict(ARTICLES.schema), infer_schema_length=None)
    write_table(store, articles_path(DAY), frame, ARTICLES)


def test_a_day_has_the_columns_of_the_crawl(local_store: ObjectStore) -> None:
    export_day(local_store)
    report = build_feed_day(local_store, DAY)
    assert report is not None
    assert (report.pages, report.articles) == (3, 2)
    assert report.dropped == {"no_text_or_address_twice": 1}
    found = feed_dataset(local_store).scan().collect()
    assert found.schema == pl.Schema(CRAWL_ARTICLES.full_schema)
    first, second = found.to_dicts()
    assert (first["domain"], second["domain"]) == ("a.example", "b.example")
    assert first["quality_flags"] == ["cut_text", "no_date", "no_title", "unsure_text"]
    assert second["quality_flags"] == []
    assert (second["source"], second["category_guess"], second["warc"]) == ("feed", "sports", None)
    assert second["canonical_url"] == "https://b.example/1"
    assert (second["title"], second["subtitle"], first["title"]) == ("A title", None, None)


def test_a_day_is_built_again_only_when_its_articles_change(local_store: ObjectStore) -> None:
    export_day(local_store)
    assert wanted_feed_days(local_store).keys() == {DAY}
    build_feed_day(local_store, DAY)
    assert wanted_feed_days(local_store) == built_inputs(local_store, FEED_ARTICLES)
    # A copied root has other paths, and a poll other times; neither changes a row.
    export_day(local_store, full_text_ref="/elsewhere/b1.txt.gz", last_seen_rss=MOMENT)
    assert wanted_feed_days(local_store) == built_inputs(local_store, FEED_ARTICLES)
    export_day(local_store, title="Another title")
    assert wanted_feed_days(local_store) != built_inputs(local_store, FEED_ARTICLES)
    local_store.delete([articles_path(DAY)])
    assert wanted_feed_days(local_store) == {DAY: "removed"}
    assert build_feed_day(local_store, DAY) is None
    DeltaEngine(local_store, FEED_ARTICLES).delete([DAY])
    assert feed_dataset(local_store).scan().collect().is_empty()


def test_what_was_taken_down_is_not_stored(local_store: ObjectStore) -> None:
    export_day(local_store)
    report = build_feed_day(local_store, DAY, covers=lambda url: "b.example" in url)
    assert report is not None
    assert report.dropped["taken_down"] == 1
    assert feed_dataset(local_store).scan().collect()["domain"].to_list() == ["a.example"]


def test_both_sources_are_one_relation(local_store: ObjectStore, tmp_path: Path) -> None:
    claim_root(local_store, sample=None, access=RootAccess.CREATE)
    news = news_platform.open(local_store.url)
    assert news["all_articles"].collect().is_empty()
    export_day(local_store)
    build_feed_day(local_store, DAY)
    store_articles(local_store, DAY, [article("https://c.example/3", "three words here")], tmp_path)
    query = "select source, count(*) as articles from all_articles group by source order by source"
    assert news.sql(query).rows() == [("crawl", 1), ("feed", 2)]
    one_day = news.sql(f"select domain from all_articles where day = '{DAY}' order by domain")
    assert one_day["domain"].to_list() == ["a.example", "b.example", "c.example"]
    assert news[FEED_ARTICLES.name].collect().height == 2
    with pytest.raises(InputError, match="unknown dataset"):
        news["training_export"]
