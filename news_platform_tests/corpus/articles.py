"""Rows of the corpus by hand, stored as days of both tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from news_platform.corpus.pipeline import crawl_dataset, feed_dataset
from news_platform.datasets.corpus import ALL_ARTICLES, CRAWL_SOURCE
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.text.normalize import count_words, text_hash
from news_platform.web.urls import registrable_domain, url_hash, url_host

FIRST = datetime(2025, 11, 1, 9, tzinfo=UTC)


def article(url: str, text: str, **given: object) -> Mapping[str, object]:
    """Return a row with the usual values; `given` are other columns."""
    return {
        "source": CRAWL_SOURCE,
        "url": url,
        "canonical_url": url,
        "url_hash": url_hash(url),
        "domain": registrable_domain(url_host(url)),
        "title": f"Title of {url}",
        "authors": ["Ada Hill"],
        "tags": [],
        "category_guess": "other",
        "language": "en",
        "text": text,
        "text_hash": text_hash(text),
        "word_count": count_words(text),
        "quality_flags": [],
        "fetched_at": FIRST,
        "extractor_version": "2",
    } | given


def store_articles(
    store: ObjectStore,
    day: str,
    rows: Sequence[Mapping[str, object]],
    scratch: Path,
    *,
    dataset: DeltaDataset | None = None,
) -> None:
    """Replace a day of crawl_articles, or of another table, with rows, and write its marker."""
    found = dataset or crawl_dataset(store)
    given = [dict(row) | {"day": day} for row in rows]
    frame = pl.DataFrame(given, schema=dict(ALL_ARTICLES.full_schema), infer_schema_length=None)
    found.replace(day, [frame.sort("domain", "canonical_url")], scratch=scratch)
    languages = dict(frame["language"].value_counts().iter_rows())
    report = {"pages": len(given), "articles": len(given), "dropped": {}, "languages": languages}
    write_marker(store, found.table.name, day, inputs=f"{len(given)}", report=report)


def small_corpus(store: ObjectStore, scratch: Path) -> None:
    """Store two days of the crawl and one of a feed: copies, locked and short articles."""
    story = " ".join(f"word{number}" for number in range(120))
    other = " ".join(f"other{number}" for number in range(90))
    store_articles(
        store,
        "2025-11-01",
        [
            article("https://a.example/1", story),
            article("https://b.example/copy", story, fetched_at=FIRST + timedelta(hours=1)),
            article("https://b.example/2", other, category_guess="sports"),
            article("https://c.example/locked", f"{other} locked", is_paywalled=True),
            article("https://c.example/short", "too short"),
        ],
        scratch,
    )
    store_articles(
        store,
        "2025-11-02",
        [
            article("https://d.example/1", f"{story} deutsch", language="de"),
            article(
                "https://a.example/1", f"{story} updated", fetched_at=FIRST + timedelta(days=1)
            ),
            article("https://e.example/odd", f"{other} odd", quality_flags=["no_title"]),
        ],
        scratch,
    )
    store_articles(
        store,
        "2025-11-02",
        [article("https://f.example/feed", f"{other} feed", source="feed")],
        scratch,
        dataset=feed_dataset(store),
    )
