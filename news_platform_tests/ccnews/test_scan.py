"""scan_news reads exactly the files that markers name, in the columns asked for."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from news_platform.ccnews.scan import read_markers, scan_news
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER, raw_news_path
from news_platform.errors import StorageError
from news_platform.storage.store import ObjectStore
from news_platform_tests.ccnews.crawl import (
    DAY,
    collect_here,
    mixed_pages,
    warc_path,
    write_crawl,
)

OTHER_DAY = date(2025, 11, 2)


@pytest.fixture
def root(local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    paths = [warc_path(DAY, 1), warc_path(DAY, 2), warc_path(OTHER_DAY, 1)]
    crawl = write_crawl(tmp_path / "crawl", dict.fromkeys(paths, mixed_pages(6)))
    for number, path in enumerate(paths):
        collect_here(path, source=crawl, root=local_store, scratch=tmp_path / f"s{number}")
    return local_store


def test_all_fifteen_columns_come_in_the_order_of_the_seed(root: ObjectStore) -> None:
    frame = scan_news(root)
    assert tuple(frame.collect_schema()) == RAW_NEWS_ORDER
    assert dict(frame.collect_schema()) == {
        name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER
    }
    assert frame.collect().height == 18


def test_days_languages_hosts_and_columns_narrow_it(root: ObjectStore) -> None:
    assert root.local_folder is not None
    url = str(root.local_folder)
    assert scan_news(url, days=["2025-11-01"]).collect().height == 12
    assert scan_news(url, days=OTHER_DAY, langs="nl").collect().height == 2
    assert scan_news(url, days="2025-11-03").collect().height == 0
    found = scan_news(url, hosts=["example.com"], columns=["uri", "day"]).collect()
    assert found.columns == ["uri", "day"]
    assert found.height == 18
    assert scan_news(url, hosts="levels.fyi").collect().height == 0
    assert set(scan_news(url, columns=["day"]).collect()["day"]) == {"01", "02"}


def test_files_that_no_marker_names_are_not_opened(root: ObjectStore) -> None:
    root.put(raw_news_path(DAY, "en", filename="torn.warc.gz"), b"half a file")
    assert scan_news(root).collect().height == 18


def test_a_root_without_news_gives_an_empty_frame(local_store: ObjectStore) -> None:
    frame = scan_news(local_store)
    assert frame.collect().height == 0
    assert tuple(frame.collect_schema()) == RAW_NEWS_ORDER


def test_a_filter_on_a_path_column_is_by_string(root: ObjectStore) -> None:
    assert scan_news(root).filter(pl.col("day") == "02").collect().height == 6


def test_a_broken_marker_is_named(root: ObjectStore) -> None:
    path = f"news/collected/2025/11/01/{warc_path(DAY, 1).rpartition('/')[2]}.json"
    root.put(path, b'{"day": "2025-11-01"}')
    with pytest.raises(StorageError, match="not a collected marker"):
        read_markers(root)
