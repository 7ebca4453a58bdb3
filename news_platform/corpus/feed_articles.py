"""Build a day of feed_articles: the articles of feeds with the columns of the corpus."""

import hashlib
import io
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import polars as pl

from news_platform.corpus.crawl_pages import TAKEN_DOWN, Covers
from news_platform.corpus.pipeline import CorpusDay, TableCounts, obeying_build, remove_day
from news_platform.corpus.rows import feed_frame
from news_platform.datasets.corpus import FEED_ARTICLES, STATISTICS_COLUMNS
from news_platform.datasets.feeds import ARTICLES, articles_path
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    content_part,
    fingerprint_of,
    write_marker,
)
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, read_table
from news_platform.storage.units import built_inputs

# Columns that contain the root's path, or that change whenever a feed is polled.
_PASSING = ("full_text_ref", "full_text_len", "last_seen_rss", "sources_list", "aliases")
NO_TEXT_OR_TWICE = "no_text_or_address_twice"


def feed_dataset(store: ObjectStore) -> DeltaDataset:
    """Return the Delta table of the feeds' articles."""
    return DeltaDataset(store, FEED_ARTICLES, STATISTICS_COLUMNS)


def wanted_feed_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that each day should be built from: that of its exported file.

    A built day whose file is gone maps to REMOVED.
    """
    # The folder also contains the full texts of articles.
    files = store.list("articles", name_prefix="date=")
    wanted = {path_values(info.path)["date"]: _inputs(store, info) for info in files}
    return wanted | {
        day: REMOVED for day in built_inputs(store, FEED_ARTICLES) if day not in wanted
    }


def build_feed_day(
    store: ObjectStore, day: str, *, covers: Covers | None = None, scratch: str | None = None
) -> CorpusDay | None:
    """Replace a day of feed_articles; return None if its articles are gone."""
    if covers is None:
        return obeying_build(
            feed_dataset(store),
            lambda found: build_feed_day(store, day, covers=found, scratch=scratch),
        )
    info = store.find(articles_path(day))
    if info is None:
        remove_day(feed_dataset(store), day, scratch=scratch)
        return None
    inputs = _inputs(store, info)
    articles = read_table(store, info.path, ARTICLES)
    rows = feed_frame(articles)
    kept = rows.filter(
        pl.Series([not covers(url) for url in rows["canonical_url"]], dtype=pl.Boolean)
    )
    counts = TableCounts()
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        done = feed_dataset(store).replace(day, counts.counted([kept]), scratch=Path(folder))
    dropped = {
        NO_TEXT_OR_TWICE: articles.height - rows.height,
        TAKEN_DOWN: rows.height - kept.height,
    }
    report = counts.report(
        day,
        done,
        pages=articles.height,
        dropped={name: count for name, count in dropped.items() if count},
        source_bytes=info.size_bytes,
    )
    write_marker(store, FEED_ARTICLES.name, day, inputs=inputs, report=asdict(report))
    return report


def _inputs(store: ObjectStore, info: ObjectInfo) -> str:
    return fingerprint_of([info], content_part(store, _row_digest))


def _row_digest(body: bytes) -> str:
    """Return the SHA-256 of the columns that the table depends on."""
    try:
        rows = pl.read_parquet(io.BytesIO(body))
        body = rows.drop(_PASSING, strict=False).write_ndjson().encode()
    except (pl.exceptions.PolarsError, OSError):
        pass  # The run that reads the damaged file reports it; a sensor only compares.
    return hashlib.sha256(body).hexdigest()
