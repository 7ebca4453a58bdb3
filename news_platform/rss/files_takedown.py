"""Remove taken-down articles and feeds from the daily files of feeds, polls and found articles.

Feeds of the matches of saved queries are deleted: the next run writes them from the ledger.
"""

from collections.abc import Mapping
from functools import partial

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.feeds import FEED_POLLS, FEEDS, PENDING_ARTICLES, day_path
from news_platform.rss.saved_queries.delivery import FOLDER as MATCHES
from news_platform.rss.saved_queries.delivery import MATCH_FEEDS
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values, read_table, write_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import is_covered

# The columns that name a page or a feed; a row goes if one of them is covered.
_URL_COLUMNS = {
    FEEDS.name: ("feed_url", "feed_url_canon"),
    FEED_POLLS.name: ("feed_url",),
    PENDING_ARTICLES.name: ("article_url_canon", "feed_url"),
}
_WHOLE = "all"


def takedown_parts(store: ObjectStore) -> list[TakedownPart]:
    """Return the parts of the daily files, by day, and of the feeds of matches."""
    return [
        *(
            SimplePart(table.name, partial(find_days, store, table), partial(clean, store, table))
            for table in (FEEDS, FEED_POLLS, PENDING_ARTICLES)
        ),
        SimplePart(
            MATCH_FEEDS,
            lambda it: dict.fromkeys([_WHOLE] if _has_files(store, MATCHES) and it else [], 1),
            lambda _, it: delete_match_feeds(store),
        ),
    ]


def find_days(store: ObjectStore, table: Dataset, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered rows of a table by day."""
    found = {}
    for info in store.list(table.name, name_prefix="date="):
        rows = read_table(store, info.path, table)
        if count := int(_is_gone(rows, table, takedowns).sum()):
            found[path_values(info.path)["date"]] = count
    return found


def clean(store: ObjectStore, table: Dataset, day: str, takedowns: Takedowns) -> RemovedData:
    """Write the file of a day again without covered rows."""
    path = day_path(table, day)
    before = store.find(path)
    if before is None:
        return RemovedData()
    rows = read_table(store, path, table)
    gone = _is_gone(rows, table, takedowns)
    if not gone.any():
        return RemovedData()
    write_table(store, path, rows.filter(~gone), table)
    after = store.head(path).size_bytes
    return RemovedData(int(gone.sum()), max(0, before.size_bytes - after), after)


def delete_match_feeds(store: ObjectStore) -> RemovedData:
    """Delete the feeds of the matches of saved queries."""
    infos = list(store.list(MATCHES))
    store.delete([info.path for info in infos])
    return RemovedData(len(infos), sum(info.size_bytes for info in infos))


def _is_gone(rows: pl.DataFrame, table: Dataset, takedowns: Takedowns) -> pl.Series:
    gone = pl.Series([False]).new_from_index(0, rows.height)
    for name in _URL_COLUMNS[table.name]:
        gone |= is_covered(rows[name], takedowns)
    return gone


def _has_files(store: ObjectStore, folder: str) -> bool:
    return next(iter(store.list(folder)), None) is not None
