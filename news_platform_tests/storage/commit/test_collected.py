"""Markers of collected WARCs: found by name, read in order, foreign files ignored."""

import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from news_platform.datasets.collected import (
    Collected,
    collected_path,
    collected_prefix,
    dump_collected,
)
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import (
    amend_collected,
    collected_days,
    collected_names,
    collected_names_of_month,
    combine_month,
    day_fingerprint,
    expire_collected,
    followed_days,
    list_collected,
    list_collected_day,
    list_collected_month,
    mark_wanted,
    newest_collected_days,
    parse_listed,
    read_collected,
    retract_collected,
    unmark_wanted,
    write_collected,
)
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.collected import MARKER

DAY = date(2025, 11, 1)
LATER = date(2025, 11, 9)
STRAYS = (".DS_Store", "2025/11/01/.DS_Store", "2025/11/notes/read.me", "2025/13/01/x.json")


@pytest.fixture
def root(any_store: ObjectStore) -> ObjectStore:
    for day, warc in ((DAY, "c.warc.gz"), (LATER, "d.warc.gz"), (DAY, "a b.warc.gz")):
        marker = replace(MARKER, day=day, warc=warc)
        write_collected(any_store, marker)
    for stray in STRAYS:
        any_store.put(f"news/collected/{stray}", b"x")
    return any_store


def test_the_names_are_known_without_reading_a_marker(local_store: ObjectStore) -> None:
    for day, name in ((DAY, "a b.warc.gz"), (DAY, "c.warc.gz"), (LATER, "d.warc.gz")):
        local_store.put(collected_path(day, name, "f"), b"not read")
    assert collected_names(local_store, day=DAY) == {"a b.warc.gz", "c.warc.gz"}
    assert len(collected_names_of_month(local_store, month=DAY)) == 3
    assert newest_collected_days(local_store, count=5) == [LATER, DAY]
    assert newest_collected_days(local_store, count=1) == [LATER]


def test_markers_come_in_order_and_foreign_files_are_ignored_everywhere(root: ObjectStore) -> None:
    assert collected_names(root, day=DAY) == {"a b.warc.gz", "c.warc.gz"}
    assert collected_names_of_month(root, month=DAY) == {"a b.warc.gz", "c.warc.gz", "d.warc.gz"}
    assert newest_collected_days(root, count=9) == [LATER, DAY]
    names = ["a b.warc.gz", "c.warc.gz", "d.warc.gz"]
    assert [marker.warc for marker in read_collected(root)] == names
    assert [marker.warc for marker in read_collected(root, [LATER, DAY])] == [names[2], *names[:2]]
    assert parse_listed(root, list_collected_day(root, DAY)) == read_collected(root, [DAY])
    assert collected_days(root) == {
        str(day): day_fingerprint(list_collected_day(root, day)) for day in (DAY, LATER)
    }


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
    copied = collected_days(local_store.child("copy"))
    assert collected_days(any_store) == copied


@pytest.mark.parametrize(
    "changed",
    [
        replace(MARKER, source_digest="u"),
        replace(MARKER, extractor_version="2"),
        replace(MARKER, options={"languages": ["de"]}),
    ],
    ids=["source", "extractor", "options"],
)
def test_a_day_changes_with_what_it_was_collected_from(
    local_store: ObjectStore, changed: Collected
) -> None:
    write_collected(local_store, MARKER)
    before = collected_days(local_store)
    write_collected(local_store, changed)
    assert collected_days(local_store) != before
    assert len(list(local_store.list())) == 1


def test_a_rewrite_that_removes_rows_leaves_followers_current(local_store: ObjectStore) -> None:
    write_collected(local_store, MARKER)
    before = collected_days(local_store)
    fewer = replace(MARKER, rows=1, bytes=1, languages={"en": 1})
    write_collected(local_store, fewer)
    assert collected_days(local_store) == before
    assert read_collected(local_store) == [fewer]


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


def test_unknown_fields_of_a_marker_are_ignored_and_missing_ones_have_defaults(
    local_store: ObjectStore,
) -> None:
    document = json.loads(dump_collected(MARKER)) | {"colour": "red"}
    for name in ("truncated_at", "dropped_responses", "expired_at"):
        del document[name]
    path = collected_path(MARKER.day, MARKER.warc, MARKER.fingerprint)
    local_store.put(path, json.dumps(document).encode())
    assert read_collected(local_store) == [MARKER]


def test_combining_again_adds_what_came_later(any_store: ObjectStore) -> None:
    write_collected(any_store, MARKER)
    before = collected_days(any_store)
    assert combine_month(any_store, MARKER.day) == 1
    assert combine_month(any_store, MARKER.day) == 0
    assert collected_days(any_store) == before
    later = replace(MARKER, warc="later.warc.gz")
    write_collected(any_store, later)
    assert combine_month(any_store, MARKER.day) == 1
    assert read_collected(any_store) == read_collected(any_store, [DAY]) == [MARKER, later]
    assert len(list(any_store.list())) == 1


def test_a_combined_marker_is_amended_replaced_and_retracted(any_store: ObjectStore) -> None:
    write_collected(any_store, MARKER)
    combine_month(any_store, DAY)
    before = collected_days(any_store)
    amended = replace(MARKER, rows=7)
    amend_collected(any_store, amended)
    assert read_collected(any_store) == [amended]
    assert collected_days(any_store) == before
    again = replace(MARKER, source_digest="again")
    write_collected(any_store, again)
    assert read_collected(any_store) == [again]
    retract_collected(any_store, day=DAY, warc=MARKER.warc)
    assert list_collected(any_store) == list_collected_day(any_store, DAY) == []


def test_a_broken_marker_is_not_combined(local_store: ObjectStore) -> None:
    write_collected(local_store, MARKER)
    path = collected_path(DAY, "broken.warc.gz", "f")
    local_store.put(path, b"{")
    assert combine_month(local_store, DAY) == 1
    with pytest.raises(StorageError, match=r"broken\.warc\.gz@f\.json"):
        read_collected(local_store)
    local_store.delete([path])
    assert read_collected(local_store) == [MARKER]


def test_a_broken_table_is_named_with_the_cure(local_store: ObjectStore) -> None:
    local_store.put("news/collected/2025/11/month.jsonl.gz", b"{")
    with pytest.raises(StorageError, match=r"month\.jsonl\.gz.*restore it from a backup"):
        list_collected(local_store)


@pytest.mark.parametrize("is_combined", [False, True], ids=["loose", "combined"])
def test_an_expired_warc_stays_collected_and_changes_nothing_that_follows(
    any_store: ObjectStore, is_combined: bool
) -> None:
    markers = [replace(MARKER, languages={"en": 1}), replace(MARKER, warc="z.warc.gz")]
    for marker in markers:
        write_collected(any_store, marker)
    if is_combined:
        combine_month(any_store, DAY)
    before = collected_days(any_store)
    expire_collected(any_store, markers[:1], expired_at="2026-01-01T00:00:00+00:00")
    assert [unit.is_expired for unit in list_collected(any_store)] == [True, False]
    expired, other = read_collected(any_store)
    assert expired == replace(markers[0], expired_at="2026-01-01T00:00:00+00:00")
    assert (expired.news_paths(), other) == ({}, markers[1])
    assert collected_days(any_store) == before
    write_collected(any_store, markers[0])  # collected again
    assert read_collected(any_store) == markers
    combine_month(any_store, DAY)
    assert [unit.is_expired for unit in list_collected(any_store)] == [False, False]


def test_a_warc_collected_again_meanwhile_is_not_expired(any_store: ObjectStore) -> None:
    write_collected(any_store, replace(MARKER, attempt="new"))
    expire_collected(any_store, [MARKER], expired_at="2026-01-01T00:00:00+00:00")
    assert read_collected(any_store) == [replace(MARKER, attempt="new")]


def test_processes_that_combine_expire_and_collect_at_once_lose_nothing(
    local_store: ObjectStore,
) -> None:
    markers = [replace(MARKER, warc=f"{number:02}.warc.gz") for number in range(24)]
    old, new = markers[:12], markers[12:]
    for marker in old:
        write_collected(local_store, marker)

    def work(number: int) -> None:
        write_collected(local_store, new[number])
        combine_month(local_store, DAY)
        expire_collected(local_store, [old[number]], expired_at="2026")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(12)))
    assert [unit.warc for unit in list_collected(local_store)] == [one.warc for one in markers]
    assert [one.is_expired for one in read_collected(local_store)] == [True] * 12 + [False] * 12


COMBINE = """
import sys
from datetime import date
from news_platform.storage.commit.collected import combine_month
from news_platform.storage.objects.store import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
for month in range(1, 5):
    combine_month(store, date(2025, month, 1))
"""


def test_a_process_killed_while_it_combines_loses_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = date(2025, 1, 1)
    markers = [
        replace(MARKER, day=first + timedelta(days=day), warc=f"{number}.warc.gz")
        for day in range(110)
        for number in range(3)
    ]
    for marker in markers:
        write_collected(store, marker)
    wanted, draw = collected_days(store), random.Random(7)
    for _ in range(3):
        command = [sys.executable, "-c", COMBINE, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(draw.uniform(0.0, 0.15))
            process.kill()
        assert collected_days(store) == wanted
    for month in range(1, 5):
        combine_month(store, date(2025, month, 1))
    assert read_collected(store) == markers
    assert len(list(store.list("news/collected"))) == 4


def test_a_combined_year_is_one_object_per_month_that_is_read_once(tmp_path: Path) -> None:
    store, year = open_store(str(tmp_path)), 2020
    for day in (date(year, 1, 1) + timedelta(days=count) for count in range(366)):
        (tmp_path / collected_prefix(day)).mkdir(parents=True)
        for number in range(3):
            marker = replace(MARKER, day=day, warc=f"CC-NEWS-{number:02}.warc.gz")
            path = collected_path(day, marker.warc, marker.fingerprint)
            (tmp_path / path).write_bytes(dump_collected(marker))
    wanted = collected_days(store)
    for month in range(1, 13):
        combine_month(store, date(year, month, 1))
    # Ten years of this need few pages of a listing.
    assert len(list(store.list("news/collected"))) == 12
    assert len(list_collected_month(store, date(year, 2, 1))) == 29 * 3
    assert collected_days(store) == wanted
