"""Where new feeds come from: the root's OPML file and the links that the crawl has seen."""

from collections.abc import Iterator

import polars as pl

from news_platform.rss.discovery.opml import opml_feeds
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values

OPML_FILE = "feeds.opml"
CRAWL_FOLDER = "news/feed_candidates"
# The crawl links tens of thousands of feeds; those that most pages of a host name come first.
_MAX_FROM_CRAWL = 2_000


def candidate_feeds(store: ObjectStore, *, days: int = 7) -> tuple[str, ...]:
    """Return the feeds of `feeds.opml`, then those of the newest crawled days, each once."""
    return tuple(dict.fromkeys((*_opml(store), *_crawled(store, days=days))))


def _opml(store: ObjectStore) -> tuple[str, ...]:
    return opml_feeds(store.read(OPML_FILE)) if store.exists(OPML_FILE) else ()


def _crawled(store: ObjectStore, *, days: int) -> list[str]:
    frames = [_read(store, path) for path in _newest_files(store, days=days)]
    if not frames:
        return []
    counted = (
        pl.concat(frames)
        .group_by("feed_url")
        .agg(pl.col("pages").sum())
        .sort(["pages", "feed_url"], descending=[True, False])
    )
    return counted["feed_url"].head(_MAX_FROM_CRAWL).to_list()


def _newest_files(store: ObjectStore, *, days: int) -> Iterator[str]:
    by_day: dict[tuple[str, ...], list[str]] = {}
    for info in store.list(CRAWL_FOLDER):
        if info.path.endswith(".parquet"):
            values = path_values(info.path)
            day = tuple(values.get(part, "") for part in ("year", "month", "day"))
            by_day.setdefault(day, []).append(info.path)
    for day in sorted(by_day, reverse=True)[:days]:
        yield from by_day[day]


def _read(store: ObjectStore, path: str) -> pl.DataFrame:
    return pl.read_parquet(store.read(path), columns=["feed_url", "pages"])
