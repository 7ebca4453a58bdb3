"""Small days of raw_news and of articles, as their features store them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl

from news_platform.datasets.articles import ARTICLES, articles_path
from news_platform.datasets.raw_news import RAW_NEWS, raw_news_path
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform_tests.collected import MARKER


def collect_warc(
    store: ObjectStore,
    day: str,
    texts: Mapping[str, str | None],
    *,
    warc: str,
    language: str = "en",
) -> None:
    """Store pages of one language as one collected WARC, with its marker last."""
    when = date.fromisoformat(day)
    frame = _filled({"uri": list(texts), "text": list(texts.values())}, RAW_NEWS.schema)
    write_table(store, raw_news_path(when, language, filename=warc), frame, RAW_NEWS)
    marker = replace(
        MARKER,
        warc=warc,
        day=when,
        rows=len(texts),
        languages={language: len(texts)},
        source_digest=fingerprint(f"{uri} {text}" for uri, text in texts.items()),
    )
    write_collected(store, marker)


def export_articles(store: ObjectStore, day: str, texts: Mapping[str, str]) -> None:
    """Store the articles of a day, by url_hash."""
    columns = {"url_hash": list(texts), "clean_text": list(texts.values())}
    write_table(store, articles_path(day), _filled(columns, ARTICLES.schema), ARTICLES)


def _filled(columns: Mapping[str, list[Any]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    count = len(next(iter(columns.values())))
    return pl.DataFrame(
        [
            pl.Series(name, columns.get(name, [None] * count), dtype)
            for name, dtype in schema.items()
        ]
    )
