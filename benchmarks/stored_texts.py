"""Store texts as articles of the crawl, for the benchmarks of what is built from them."""

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from news_platform.corpus.pipeline import crawl_dataset
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.urls import registrable_domain, url_hash, url_host


def store_texts(store: ObjectStore, day: str, texts: Mapping[str, str]) -> None:
    """Store texts by address as a day of crawl_articles."""
    moment = datetime.fromisoformat(f"{day}T09:00:00+00:00").astimezone(UTC)
    rows = [
        {
            "source": "crawl",
            "url": url,
            "canonical_url": url,
            "url_hash": url_hash(url),
            "text_hash": url_hash(text),
            "domain": registrable_domain(url_host(url)),
            "language": "en",
            "title": f"Title of {url}",
            "text": text,
            "word_count": text.count(" ") + 1,
            "quality_flags": [],
            "fetched_at": moment + timedelta(seconds=number),
            "day": day,
        }
        for number, (url, text) in enumerate(texts.items())
    ]
    frame = pl.DataFrame(rows, schema=dict(CRAWL_ARTICLES.full_schema), infer_schema_length=None)
    with tempfile.TemporaryDirectory() as scratch:
        ordered = frame.sort("domain", "canonical_url")
        crawl_dataset(store).replace(day, [ordered], scratch=Path(scratch))
    write_marker(store, CRAWL_ARTICLES.name, day, inputs=f"{len(rows)}", report={})
