"""Let the markers of a collected day count the rows that are left after some were removed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import polars as pl

from news_platform.datasets.collected import Collected
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.raw_news import CAPTURES, DROPPED_RESPONSES, FEED_CANDIDATES, RAW_NEWS
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.storage.commit.collected import amend_collected, read_collected
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, scan_table

_TABLES = (RAW_NEWS, CAPTURES, FEED_CANDIDATES, DROPPED_RESPONSES)


def recount_day(store: ObjectStore, day: str) -> None:
    """Correct the markers of a day; their names stay, so nothing that follows becomes stale."""
    files = {table: ParquetEngine(store, table).files([day]).get(day, []) for table in _TABLES}
    for marker in read_collected(store, [date.fromisoformat(day)]):
        own = {
            table: [info for info in infos if path_values(info.path)["filename"] == marker.warc]
            for table, infos in files.items()
        }
        if not marker.is_expired:
            _recount(store, marker, own)


def _recount(
    store: ObjectStore, marker: Collected, files: Mapping[Dataset, list[ObjectInfo]]
) -> None:
    def rows(table: Dataset) -> pl.LazyFrame:
        return scan_table(store, [info.path for info in files[table]], table)

    def height(table: Dataset, before: int | None) -> int | None:
        is_kept = before is not None and files[table]
        return int(rows(table).select(pl.len()).collect().item()) if is_kept else before

    pages = rows(RAW_NEWS).select("main_lang", "uri", "http_date").collect()
    languages = dict(sorted(pages["main_lang"].value_counts().iter_rows()))
    # A language without pages has no file.
    empty = [one for one in files[RAW_NEWS] if path_values(one.path)["main_lang"] not in languages]
    store.delete([info.path for info in empty])
    kept = [info for info in files[RAW_NEWS] if info not in empty]
    dropped = dict(marker.dropped)
    if marker.dropped_responses is not None and files[DROPPED_RESPONSES]:
        counted = rows(DROPPED_RESPONSES).group_by("reason").len().collect()
        refused = {key: count for key, count in dropped.items() if key == TAKEN_DOWN}
        dropped = dict(counted.iter_rows()) | refused
    lost = marker.rows - pages.height + sum(marker.dropped.values()) - sum(dropped.values())
    if lost:
        dropped[TAKEN_DOWN] = dropped.get(TAKEN_DOWN, 0) + lost
    amended = replace(
        marker,
        rows=pages.height,
        duplicates=pages.height - pages.select("uri", "http_date").n_unique(),
        bytes=sum(one.size_bytes for one in (*kept, *files[CAPTURES], *files[FEED_CANDIDATES])),
        languages=languages,
        dropped=dict(sorted(dropped.items())),
        captures=height(CAPTURES, marker.captures),
        feed_candidates=height(FEED_CANDIDATES, marker.feed_candidates),
        dropped_responses=height(DROPPED_RESPONSES, marker.dropped_responses),
    )
    if amended != marker:
        amend_collected(store, amended)
