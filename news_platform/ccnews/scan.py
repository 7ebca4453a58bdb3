"""Read raw_news lazily: exactly the files that the markers name, opening no others.

scan_news("data", days=["2025-11-01"], langs=["en"], columns=["uri", "text"]).collect()
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial

import polars as pl

from news_platform.datasets.collected import Collected, collected_prefix, parse_collected
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER
from news_platform.storage.parquet import scan_table
from news_platform.storage.store import ObjectStore, StoreOptions, open_store

_MARKER_ROOT = "news/collected"
# Markers are small and many; waiting for one at a time would be most of a scan's start.
_CONCURRENT_READS = 16


def scan_news(
    root: str | ObjectStore,
    days: Iterable[str | date] | str | date | None = None,
    langs: Iterable[str] | str | None = None,
    hosts: Iterable[str] | str | None = None,
    columns: Sequence[str] | None = None,
    *,
    options: StoreOptions | None = None,
) -> pl.LazyFrame:
    """Return the pages of some days and languages as a LazyFrame; None means all.

    `hosts` are registrable domains in natural order (`bbc.co.uk`). Columns come in the order asked
    for, by default all fifteen; year, month and day are strings, as in the paths.
    """
    store = root if isinstance(root, ObjectStore) else _opened(root, options)
    wanted = None if langs is None else set(_several(langs))
    paths = [
        path
        for marker in read_markers(store, days=_days(days))
        for language, path in marker.news_paths().items()
        if wanted is None or language in wanted
    ]
    frame = scan_table(store, paths, RAW_NEWS)
    if hosts is not None:
        reversed_hosts = [".".join(reversed(host.lower().split("."))) for host in _several(hosts)]
        frame = frame.filter(pl.col("host").is_in(reversed_hosts))
    return frame.select(columns or RAW_NEWS_ORDER)


def read_markers(store: ObjectStore, *, days: Sequence[date] | None = None) -> list[Collected]:
    """Return the markers of these days, None for all, in order of day and WARC."""
    folders = [_MARKER_ROOT] if days is None else [collected_prefix(day) for day in days]
    paths = [info.path for folder in folders for info in store.list(folder)]
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        return list(threads.map(partial(_read_marker, store), paths))


def _read_marker(store: ObjectStore, path: str) -> Collected:
    return parse_collected(store.read(path), path=path)


def _opened(root: str, options: StoreOptions | None) -> ObjectStore:
    return open_store(root, options=options) if options else open_store(root)


def _several(names: Iterable[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _days(days: Iterable[str | date] | str | date | None) -> list[date] | None:
    if days is None:
        return None
    several = [days] if isinstance(days, str | date) else days
    return sorted({date.fromisoformat(day) if isinstance(day, str) else day for day in several})
