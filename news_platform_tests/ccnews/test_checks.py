"""A marker or a file that was altered, lost or added is seen."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from news_platform.ccnews.checks import (
    read_footers,
    row_problems,
    schema_problems,
    uncollected,
)
from news_platform.ccnews.listing import listed_warcs
from news_platform.datasets.raw_news import raw_news_path
from news_platform.storage.commit.collected import (
    read_collected,
    retract_collected,
    write_collected,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.ccnews.crawl import (
    DAY,
    collect_here,
    mixed_pages,
    warc_name,
    warc_path,
    write_crawl,
)

NAME = warc_name(DAY)
ENGLISH = raw_news_path(DAY, "en", filename=NAME)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    pages = mixed_pages(6)
    return write_crawl(tmp_path / "crawl", {warc_path(DAY): [*pages, pages[0]]})


@pytest.fixture
def root(crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    collect_here(warc_path(DAY), source=crawl, root=local_store, scratch=tmp_path / "s")
    return local_store


def _row_problems(root: ObjectStore) -> list[str]:
    return row_problems(root, read_footers(root, day=DAY), day=DAY)


def _rewrite(root: ObjectStore, frame: pl.DataFrame) -> None:
    assert root.local_folder is not None
    frame.write_parquet(root.local_folder / ENGLISH)


def _english(root: ObjectStore) -> pl.DataFrame:
    assert root.local_folder is not None
    return pl.read_parquet(root.local_folder / ENGLISH, hive_partitioning=False)


def test_what_was_just_written_has_no_problem(root: ObjectStore, crawl: ObjectStore) -> None:
    assert _row_problems(root) == []
    assert schema_problems(read_footers(root, day=DAY)) == []
    listed = {DAY: listed_warcs(crawl, root, day=DAY)}
    assert uncollected(root, listed, today=DAY + timedelta(days=9)) == []


def test_an_altered_marker_is_seen(root: ObjectStore) -> None:
    (marker,) = read_collected(root, [DAY])
    altered = replace(marker, languages={**marker.languages, "en": 99})
    write_collected(root, altered)
    assert _row_problems(root) == [f"{ENGLISH}: 3 rows, expected 99 by its marker"]


def test_a_torn_file_is_seen(root: ObjectStore) -> None:
    root.put(ENGLISH, root.read(ENGLISH)[:-20])
    (problem,) = _row_problems(root)
    assert problem.startswith(f"{ENGLISH}: unreadable")
    assert len(schema_problems(read_footers(root, day=DAY))) == 1


def test_a_lost_and_an_added_file_are_seen(root: ObjectStore) -> None:
    root.put(raw_news_path(DAY, "xx", filename=NAME), root.read(ENGLISH))
    root.put(f"news/raw/year=2025/month=11/day=01/{NAME}", b"")
    root.delete([ENGLISH])
    problems = _row_problems(root)
    assert f"{ENGLISH}: missing" in problems
    assert sum("not named by any marker" in problem for problem in problems) == 2


def test_another_schema_is_seen(root: ObjectStore) -> None:
    _rewrite(root, _english(root).with_columns(pl.lit(1).alias("extra")))
    assert len(schema_problems(read_footers(root, day=DAY))) == 1
    _rewrite(
        root, _english(root).drop("extra").with_columns(pl.col("confs").cast(pl.List(pl.Int32)))
    )
    assert len(schema_problems(read_footers(root, day=DAY))) == 1


def test_a_listed_warc_may_be_late_for_two_days(root: ObjectStore, crawl: ObjectStore) -> None:
    retract_collected(root, day=DAY, warc=NAME)
    listed = {DAY: listed_warcs(crawl, root, day=DAY), date(2025, 11, 2): ()}
    assert uncollected(root, listed, today=DAY + timedelta(days=1)) == []
    assert uncollected(root, listed, today=DAY + timedelta(days=2)) == [NAME]
