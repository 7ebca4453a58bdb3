"""Markers of collected WARCs: found by name, read in order, foreign files ignored."""

from dataclasses import replace
from datetime import date

import pytest

from news_platform.datasets.collected import Collected, collected_path, dump_collected
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import (
    REMOVED,
    collected_names,
    collected_names_of_month,
    list_collected,
    list_collected_day,
    newest_collected_days,
    parse_listed,
    read_collected,
    wanted_days,
)
from news_platform.storage.commit.markers import fingerprint, fingerprint_of
from news_platform.storage.objects.store import ObjectStore

DAY = date(2025, 11, 1)
LATER = date(2025, 11, 9)
MARKER = Collected(
    warc="a b.warc.gz",
    day=DAY,
    source="file:///crawl/a b.warc.gz",
    source_etag="t",
    source_bytes=1,
    rows=0,
    duplicates=0,
    bytes=0,
    languages={},
    dropped={},
    captures=None,
    feed_candidates=None,
    extractor_version="1",
    attempt="a",
    collected_at="2025-11-03T20:00:00+00:00",
)
STRAYS = (".DS_Store", "2025/11/01/.DS_Store", "2025/11/notes/read.me", "2025/13/01/x.json")


@pytest.fixture
def root(any_store: ObjectStore) -> ObjectStore:
    for day, warc in ((DAY, "c.warc.gz"), (LATER, "d.warc.gz"), (DAY, "a b.warc.gz")):
        marker = replace(MARKER, day=day, warc=warc)
        any_store.put(collected_path(day, warc), dump_collected(marker))
    for stray in (
        ".DS_Store",
        "2025/11/01/.DS_Store",
        "2025/11/notes/read.me",
        "2025/13/01/x.json",
    ):
        any_store.put(f"news/collected/{stray}", b"x")
    return any_store


def test_the_names_are_known_without_reading_a_marker(local_store: ObjectStore) -> None:
    for day, name in ((DAY, "a b.warc.gz"), (DAY, "c.warc.gz"), (LATER, "d.warc.gz")):
        local_store.put(collected_path(day, name), b"not read")
    assert collected_names(local_store, day=DAY) == {"a b.warc.gz", "c.warc.gz"}
    assert len(collected_names_of_month(local_store, month=DAY)) == 3
    assert newest_collected_days(local_store, count=5) == [LATER, DAY]
    assert newest_collected_days(local_store, count=1) == [LATER]


def test_foreign_files_are_ignored_everywhere(root: ObjectStore) -> None:
    assert collected_names(root, day=DAY) == {"a b.warc.gz", "c.warc.gz"}
    assert collected_names_of_month(root, month=DAY) == {"a b.warc.gz", "c.warc.gz", "d.warc.gz"}
    assert newest_collected_days(root, count=9) == [LATER, DAY]
    assert len(list_collected(root)) == 3
    assert wanted_days(root, built=()).keys() == {"2025-11-01", "2025-11-09"}


def test_markers_come_in_the_order_of_days_and_names(root: ObjectStore) -> None:
    names = ["a b.warc.gz", "c.warc.gz", "d.warc.gz"]
    assert [marker.warc for marker in read_collected(root)] == names
    assert [marker.warc for marker in read_collected(root, [LATER, DAY])] == [names[2], *names[:2]]
    assert read_collected(root, []) == []
    assert parse_listed(root, list_collected_day(root, DAY)) == read_collected(root, [DAY])


def test_a_day_is_wanted_by_the_fingerprint_of_its_markers(root: ObjectStore) -> None:
    wanted = wanted_days(root, built=["2025-11-01", "2024-02-29"])
    assert wanted == {
        "2025-11-01": fingerprint_of(list_collected_day(root, DAY)),
        "2025-11-09": fingerprint_of(list_collected_day(root, LATER)),
        "2024-02-29": REMOVED,
    }


def test_a_reader_may_add_its_options_to_the_fingerprint(root: ObjectStore) -> None:
    wanted = wanted_days(root, built=(), inputs=lambda infos: fingerprint([str(len(infos)), "o"]))
    assert wanted["2025-11-01"] == fingerprint(["2", "o"])
    assert wanted["2025-11-09"] == fingerprint(["1", "o"])


def test_a_broken_marker_is_named(local_store: ObjectStore) -> None:
    local_store.put(collected_path(DAY, "c.warc.gz"), b'{"day": "2025-11-01"}')
    with pytest.raises(StorageError, match=r"2025/11/01/c\.warc\.gz\.json"):
        read_collected(local_store)
