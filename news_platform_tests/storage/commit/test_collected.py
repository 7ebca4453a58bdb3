"""Markers of collected WARCs: found by name, read in order, foreign files ignored."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from news_platform.datasets.collected import collected_path, dump_collected
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import (
    REMOVED,
    collected_names,
    collected_names_of_month,
    followed_days,
    list_collected,
    list_collected_day,
    mark_wanted,
    newest_collected_days,
    parse_listed,
    read_collected,
    unmark_wanted,
    wanted_days,
    write_collected,
)
from news_platform.storage.commit.collected_months import combine_month, day_fingerprint
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.collected import MARKER

DAY = date(2025, 11, 1)
LATER = date(2025, 11, 9)
STRAYS = (".DS_Store", "2025/11/01/.DS_Store", "2025/11/notes/read.me", "2025/13/01/x.json")


@pytest.fixture
def root(any_store: ObjectStore) -> ObjectStore:
    for day, warc in ((DAY, "c.warc.gz"), (LATER, "d.warc.gz"), (DAY, "a b.warc.gz")):
        marker = replace(MARKER, day=day, warc=warc)
        write_collected(any_store, marker)
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
        local_store.put(collected_path(day, name, "f"), b"not read")
    assert collected_names(local_store, day=DAY) == {"a b.warc.gz", "c.warc.gz"}
    assert len(collected_names_of_month(local_store, month=DAY)) == 3
    assert newest_collected_days(local_store, count=5) == [LATER, DAY]
    assert newest_collected_days(local_store, count=1) == [LATER]


def test_foreign_files_are_ignored_everywhere(root: ObjectStore) -> None:
    assert collected_names(root, day=DAY) == {"a b.warc.gz", "c.warc.gz"}
    assert collected_names_of_month(root, month=DAY) == {"a b.warc.gz", "c.warc.gz", "d.warc.gz"}
    assert newest_collected_days(root, count=9) == [LATER, DAY]
    assert len(list_collected(root)) == 3
    assert wanted_days(root, built={}).keys() == {"2025-11-01", "2025-11-09"}


def test_markers_come_in_the_order_of_days_and_names(root: ObjectStore) -> None:
    names = ["a b.warc.gz", "c.warc.gz", "d.warc.gz"]
    assert [marker.warc for marker in read_collected(root)] == names
    assert [marker.warc for marker in read_collected(root, [LATER, DAY])] == [names[2], *names[:2]]
    assert read_collected(root, []) == []
    assert parse_listed(root, list_collected_day(root, DAY)) == read_collected(root, [DAY])


def test_a_day_is_wanted_by_the_fingerprint_of_its_markers(root: ObjectStore) -> None:
    wanted = wanted_days(root, built={"2024-02-29": "f" * 16})
    assert wanted == {
        "2025-11-01": day_fingerprint(list_collected_day(root, DAY)),
        "2025-11-09": day_fingerprint(list_collected_day(root, LATER)),
        "2024-02-29": REMOVED,
    }


def test_the_fingerprint_stands_in_the_name_of_the_marker(any_store: ObjectStore) -> None:
    write_collected(any_store, MARKER)
    (unit,) = list_collected(any_store)
    assert unit.fingerprint == MARKER.fingerprint
    assert unit.path == f"news/collected/2025/11/01/a%20b.warc.gz@{MARKER.fingerprint}.json"


def test_a_day_is_wanted_the_same_in_every_copy(
    any_store: ObjectStore, local_store: ObjectStore
) -> None:
    for number, store in enumerate((any_store, local_store.child("copy"))):
        marker = replace(
            MARKER,
            source=f"{store.url}/crawl/c.warc.gz",
            attempt=str(number),
            collected_at=f"2025-11-0{number + 1}T20:00:00+00:00",
        )
        write_collected(store, marker)
    copied = wanted_days(local_store.child("copy"), built={})
    assert wanted_days(any_store, built={}) == copied


@pytest.mark.parametrize(
    "change",
    [
        {"source_digest": "u"},
        {"source_bytes": 2},
        {"extractor_version": "2"},
        {"options": {"languages": ["de"]}},
    ],
)
def test_a_day_changes_with_what_it_was_collected_from(
    any_store: ObjectStore, change: dict[str, int | str]
) -> None:
    write_collected(any_store, MARKER)
    before = wanted_days(any_store, built={})
    write_collected(any_store, replace(MARKER, **change))  # type: ignore[arg-type]
    assert wanted_days(any_store, built={}) != before
    assert len(list(any_store.list())) == 1


@pytest.mark.parametrize("change", [{"rows": 1}, {"bytes": 1}, {"languages": {"en": 1}}])
def test_a_rewrite_that_removes_rows_leaves_followers_current(
    any_store: ObjectStore, change: dict[str, int]
) -> None:
    write_collected(any_store, MARKER)
    before = wanted_days(any_store, built={})
    write_collected(any_store, replace(MARKER, **change))  # type: ignore[arg-type]
    assert wanted_days(any_store, built={}) == before
    assert read_collected(any_store) == [replace(MARKER, **change)]  # type: ignore[arg-type]


def test_of_two_markers_that_a_crash_left_the_younger_counts(local_store: ObjectStore) -> None:
    for digest in ("one", "two", "three", "four"):
        marker = replace(MARKER, source_digest=digest)
        path = collected_path(DAY, marker.warc, marker.fingerprint)
        local_store.put(path, dump_collected(marker))
    assert [unit.fingerprint for unit in list_collected(local_store)] == [marker.fingerprint]
    combine_month(local_store, DAY)
    assert read_collected(local_store) == [marker]


def test_a_wanted_day_is_followed_before_its_first_warc(any_store: ObjectStore) -> None:
    now = datetime(2025, 11, 3, 8, tzinfo=UTC)
    mark_wanted(any_store, LATER, now=now)
    before = any_store.head("news/wanted/2025-11-09.json")
    mark_wanted(any_store, LATER, now=now + timedelta(days=1))
    assert any_store.head("news/wanted/2025-11-09.json") == before
    write_collected(any_store, MARKER)
    any_store.put("news/wanted/.DS_Store", b"")
    assert followed_days(any_store) == {"2025-11-01", "2025-11-09"}
    unmark_wanted(any_store, LATER)
    assert followed_days(any_store) == {"2025-11-01"}


def test_a_reader_may_add_its_options_to_the_fingerprint(root: ObjectStore) -> None:
    plain = wanted_days(root, built={})
    wanted = wanted_days(root, built={}, inputs=lambda inputs: fingerprint([inputs, "o"]))
    assert wanted == {day: fingerprint([inputs, "o"]) for day, inputs in plain.items()}


def test_a_broken_marker_is_named(local_store: ObjectStore) -> None:
    local_store.put(collected_path(DAY, "c.warc.gz", "f"), b'{"day": "2025-11-01"}')
    with pytest.raises(StorageError, match=r"2025/11/01/c\.warc\.gz@f\.json"):
        read_collected(local_store)
