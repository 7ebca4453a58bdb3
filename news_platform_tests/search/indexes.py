"""Roots with articles and search indexes of days and months, and what a search finds in them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from news_platform.datasets.corpus import CRAWL_ARTICLES, SEARCH_INDEX, STATISTICS_COLUMNS
from news_platform.datasets.dataset import Dataset
from news_platform.search.engine import SearchOptions
from news_platform.search.index import SearchableArticle
from news_platform.search.pipeline import (
    MONTHS_DATASET,
    build_day,
    build_month,
    search_days,
    wanted_months,
)
from news_platform.search.reading import IndexCache, read_current
from news_platform.storage.commit.markers import read_inputs, stale_partitions, write_marker
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import stale_units
from news_platform_tests.search.articles import made_articles

DAY = "2025-11-01"
NOW = datetime.now(UTC)
MONTH = "2025-10"
DAYS = ("2025-10-01", "2025-10-02", "2025-10-20", "2025-11-30")
EVERY = SearchOptions(first_day="2025-01-01", limit=1_000, facets=("day",))


def write_day(
    store: ObjectStore,
    table: Dataset,
    articles: Iterable[SearchableArticle],
    scratch: Path,
    *,
    day: str = DAY,
) -> None:
    """Replace a day of a table and its marker, as the corpus does."""
    rows = [
        {
            "source": article.source,
            "url": article.url,
            "canonical_url": article.canonical_url,
            "url_hash": article.url_hash,
            "domain": article.domain,
            "language": article.language,
            "published_at": article.at,
            "fetched_at": article.at,
            "title": article.title,
            "text": article.text,
            "authors": list(article.authors),
            "section": article.section or None,
        }
        for article in articles
    ]
    schema = {name: dtype for name, dtype in table.full_schema.items() if name != "day"}
    frame = pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
    scratch.mkdir(exist_ok=True)
    DeltaDataset(store, table, STATISTICS_COLUMNS).replace(day, [frame], scratch=scratch)
    inputs = f"{hash(tuple(row['url_hash'] for row in rows)) & (2**64 - 1):016x}"
    write_marker(store, table.name, day, inputs=inputs, report={"articles": len(rows)})


def build_stale(store: ObjectStore) -> list[str]:
    stale = sorted(stale_units(store, SEARCH_INDEX))
    for day in stale:
        build_day(store, day, now=NOW)
    return stale


def found(
    store: ObjectStore, folder: Path, query: str, options: SearchOptions | None = None
) -> Sequence[str]:
    cache = IndexCache(store, folder / "cache", max_bytes=1 << 30)
    given = options or SearchOptions(limit=1_000)
    return [hit.url_hash for hit in search_days(cache, query, given, default_days=30).hits]


def articles_of(day: str, *, count: int = 6, seed: int = 0) -> list[SearchableArticle]:
    return made_articles(count, seed=seed + int(day[-2:]), days=1)


def fill(store: ObjectStore, folder: Path) -> None:
    for day in DAYS:
        write_day(store, CRAWL_ARTICLES, articles_of(day), folder / "scratch", day=day)
    build_stale(store)


def cache(store: ObjectStore, folder: Path) -> IndexCache:
    return IndexCache(store, folder / "cache", max_bytes=1 << 30)


def counts(store: ObjectStore, folder: Path) -> dict[str, int]:
    """Return how many articles of each day a search over all of them finds."""
    query = "domain:a.example OR NOT domain:a.example"
    answer = search_days(cache(store, folder), query, EVERY, default_days=30)
    by_hits = Counter(hit.day for hit in answer.hits)
    assert by_hits == answer.facets["day"]
    return dict(by_hits)


def open_indexes(store: ObjectStore, folder: Path) -> int:
    opened = cache(store, folder)
    return len(list(read_current(opened, opened.days())))


def join(store: ObjectStore) -> list[str]:
    """Build the months that are out of date."""
    stale = stale_partitions(wanted_months(store, after_days=7), read_inputs(store, MONTHS_DATASET))
    for month in sorted(stale):
        build_month(store, month, now=NOW)
    return sorted(stale)
