"""Listings are downloaded once per change, and foreign lines are counted."""

import gzip
from datetime import date
from pathlib import Path

import pytest

from news_platform.ccnews.listing import (
    fetch_listing,
    first_answering,
    listed_warcs,
    parse_listing,
    read_copy,
)
from news_platform.datasets.raw_news import (
    listing_path,
    next_month,
    parse_warc_path,
    previous_month,
    warc_day,
)
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.crawl import DAY, warc_name, warc_path, write_listings
from news_platform_tests.emulators.fault_proxy import FaultProxy

MONTH = date(2025, 11, 1)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    write_listings(tmp_path / "crawl", [warc_path(DAY, 1), warc_path(DAY, 2)])
    return open_store(str(tmp_path / "crawl"))


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("CC-NEWS-20251101004549-04954.warc.gz", date(2025, 11, 1)),
        ("other-crawl-20160826120000-00001.warc", date(2016, 8, 26)),
        ("CC-NEWS-20251301004549-04954.warc.gz", None),
        ("CC-NEWS-20251101004549-04954.wat.gz", None),
    ],
)
def test_the_day_is_in_the_name(name: str, day: date | None) -> None:
    assert warc_day(name) == day


@pytest.mark.parametrize(
    "line",
    [
        "crawl-data/CC-NEWS/2025/11/warc.paths.gz",
        "crawl-data/CC-MAIN-2025-43/segments/1/warc/CC-MAIN-20251101004549-20251101004549-0.warc.gz",
        "../../etc/CC-NEWS-20251101004549-04954.warc.gz",
    ],
)
def test_lines_that_name_no_news_warc_are_foreign(line: str) -> None:
    assert parse_warc_path(line) is None


def test_a_listing_counts_foreign_lines_and_doubles_once() -> None:
    lines = [warc_path(DAY, 2), "", warc_path(DAY, 1), warc_path(DAY, 2), "nonsense"]
    listing = parse_listing(lines, month=MONTH, etag="e")
    assert [warc.path for warc in listing.warcs] == [warc_path(DAY, 1), warc_path(DAY, 2)]
    assert listing.foreign == 1
    assert [warc.name for warc in listing.days()[DAY]] == [warc_name(DAY, 1), warc_name(DAY, 2)]


def test_a_listing_is_fetched_again_only_when_it_has_changed(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    first = fetch_listing(crawl, local_store, month=MONTH)
    copy = next(info for info in local_store.list("news/warc_paths"))
    assert fetch_listing(crawl, local_store, month=MONTH) == first
    assert next(info for info in local_store.list("news/warc_paths")) == copy
    write_listings(tmp_path / "crawl", [warc_path(DAY, number) for number in (1, 2, 3)])
    second = fetch_listing(crawl, local_store, month=MONTH)
    assert first is not None and second is not None
    assert len(second.warcs) == len(first.warcs) + 1
    assert read_copy(local_store, month=MONTH) == second


def test_a_month_that_is_not_listed_is_none(crawl: ObjectStore, local_store: ObjectStore) -> None:
    assert fetch_listing(crawl, local_store, month=date(2025, 12, 1)) is None
    assert listed_warcs(crawl, local_store, day=date(2025, 12, 1)) == ()
    assert read_copy(local_store, month=date(2025, 12, 1)) is None


def test_the_first_source_that_answers_is_taken(
    crawl: ObjectStore, s3_store: ObjectStore, s3_faults: tuple[FaultProxy, str]
) -> None:
    assert first_answering((crawl,), month=MONTH) is crawl
    assert first_answering((s3_store, crawl), month=MONTH) is s3_store
    s3_faults[0].inject("slow_down", "HEAD", times=99)
    assert first_answering((s3_store, crawl), month=MONTH) is crawl


@pytest.mark.parametrize(
    "body", [b"<html>no</html>", gzip.compress(b"x" * 99)[:-9]], ids=["a page", "cut off"]
)
def test_a_listing_that_is_no_gzip_file_is_an_input_error(
    body: bytes, crawl: ObjectStore, local_store: ObjectStore
) -> None:
    crawl.put(listing_path(MONTH), body)
    with pytest.raises(InputError, match="not a gzip file"):
        fetch_listing(crawl, local_store, month=MONTH)


def test_a_broken_copy_is_named(crawl: ObjectStore, local_store: ObjectStore) -> None:
    fetch_listing(crawl, local_store, month=MONTH)
    local_store.put("news/warc_paths/2025-11.json", b"[]")
    with pytest.raises(StorageError, match="as a copy of a listing"):
        fetch_listing(crawl, local_store, month=MONTH)


def test_months_follow_each_other() -> None:
    assert next_month(date(2024, 12, 31)) == date(2025, 1, 1)
    assert next_month(date(2025, 1, 31)) == date(2025, 2, 1)
    assert previous_month(date(2025, 3, 31)) == date(2025, 2, 1)
    assert previous_month(date(2025, 1, 1)) == date(2024, 12, 1)
