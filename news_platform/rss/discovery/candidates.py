"""Collect candidate feeds from OPML files and from the pages of the crawl."""

import logging
from collections.abc import Iterator

import polars as pl

from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values
from news_platform.web.opml import OpmlFeed, opml_entries, xml_damage

OPML_FILE = "feeds.opml"
CRAWL_FOLDER = "news/feed_candidates"
# Crawled pages link to tens of thousands of feeds; those on the most pages come first.
_MAX_FROM_CRAWL = 2_000
_log = logging.getLogger(__name__)


def candidate_feeds(store: ObjectStore, *, days: int = 7) -> tuple[str, ...]:
    """Return the feeds of the root's `feeds.opml`, then those of the newest crawled days."""
    return tuple(
        dict.fromkeys((*(feed.url for feed in listed_feeds(store)), *_crawled(store, days=days)))
    )


def listed_feeds(store: ObjectStore) -> tuple[OpmlFeed, ...]:
    """Return the feeds of the root's `feeds.opml`; none if there is no such file."""
    if not store.exists(OPML_FILE):
        return ()
    body = store.read(OPML_FILE)
    try:
        found = opml_entries(body)
    except InputError as error:
        raise InputError(
            f"cannot read the root's {OPML_FILE!r}: {error}", thing=OPML_FILE
        ) from error
    if damage := xml_damage(body):
        _log.warning("the root's %r has %s; %s feeds are read", OPML_FILE, damage, len(found))
    elif not found:
        _log.warning("the root's %r lists no feeds: expected <outline xmlUrl=…>", OPML_FILE)
    return found


def _crawled(store: ObjectStore, *, days: int) -> list[str]:
    frames = [_read(store, path) for path in _newest_files(store, days=days)]
    if not frames:
        return []
    counted = (
        pl.concat(frames)
        .group_by("feed_url")
        .agg(pl.col("pages").sum())
        # The URL breaks ties, so that the same files give the same candidates.
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
