"""Markers of collected WARCs: found by name, read in order, foreign files ignored."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from news_platform.datasets.collected import (
    collected_digest,
    collected_path,
    dump_collected,
)
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import (
    REMOVED,
    collected_names,
    collected_names_of_month,
    day_inputs,
    list_collected,
    list_collected_day,
    newest_collected_days,
    parse_listed,
    read_collected,
    wanted_days,
)
from news_platform.storage.commit.markers import fingerprint, fingerprint_of
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.collected import MARKER

DAY = date(2025, 11, 1)
LATER = date(2025, 11, 9)
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
    assert wanted_days(root, built={}).keys() == {"2025-11-01", "2025-11-09"}


def test_markers_come_in_the_order_of_days_and_names(root: ObjectStore) -> None:
    names = ["a b.warc.gz", "c.warc.gz", "d.warc.gz"]
    assert [marker.warc for marker in read_collected(root)] == names
    assert [marker.warc for marker in read_collected(root, [LATER, DAY])] == [names[2], *names[:2]]
    assert read_collected(root, []) == []
    assert parse_listed(root, list_collected_day(root, DAY)) == read_collected(root, [DAY])


def test_a_day_is_wanted_by_the_fingerprint_of_its_markers(root: ObjectStore) -> None:
    old = fingerprint_of(list_collected_day(root, DAY))
    wanted = wanted_days(root, built={"2025-11-01": old, "2024-02-29": "f" * 16})
    assert wanted == {
        "2025-11-01": old,
        "2025-11-09": day_inputs(root, list_collected_day(root, LATER), built=None),
        "2024-02-29": REMOVED,
    }


def test_a_day_is_wanted_the_same_in_every_folder(tmp_path: Path) -> None:
    roots = [open_store(str(tmp_path / name)) for name in ("one", "another-one")]
    for number, store in enumerate(roots):
        store.put(
            collected_path(DAY, "c.warc.gz"),
            dump_collected(
                replace(
                    MARKER,
                    warc="c.warc.gz",
                    source=f"{store.url}/crawl/c.warc.gz",
                    attempt=str(number),
                    collected_at=f"2025-11-0{number + 1}T20:00:00+00:00",
                )
            ),
        )
    one, another = (wanted_days(store, built={}) for store in roots)
    assert one == another
    # Version 0.1.0 made another fingerprint, which no copy of a root could keep.
    assert one["2025-11-01"] != fingerprint_of(list_collected_day(roots[0], DAY))


@pytest.mark.parametrize(
    "change", [{"rows": 1}, {"bytes": 1}, {"source_etag": "u"}, {"extractor_version": "2"}]
)
def test_a_day_changes_with_what_was_collected(
    any_store: ObjectStore, change: dict[str, int | str]
) -> None:
    path = collected_path(DAY, "c.warc.gz")
    any_store.put(path, dump_collected(MARKER))
    before = wanted_days(any_store, built={})
    any_store.put(path, dump_collected(replace(MARKER, **change)))  # type: ignore[arg-type]
    assert wanted_days(any_store, built={}) != before


def test_a_day_built_by_etags_changes_with_its_markers(local_store: ObjectStore) -> None:
    path = collected_path(DAY, "c.warc.gz")
    local_store.put(path, dump_collected(MARKER))
    built = {"2025-11-01": fingerprint_of(list_collected_day(local_store, DAY))}
    assert wanted_days(local_store, built=built) == built
    local_store.put(path, dump_collected(replace(MARKER, rows=1)))
    assert wanted_days(local_store, built=built) != built


def test_the_digest_of_a_broken_marker_is_that_of_its_bytes() -> None:
    assert collected_digest(b"{") != collected_digest(b"[]") != collected_digest(b"[1]")
    assert collected_digest(b'{"rows": 1}') == collected_digest(b'{"attempt": "a", "rows": 1}')


def test_a_reader_may_add_its_options_to_the_fingerprint(root: ObjectStore) -> None:
    plain = wanted_days(root, built={})
    wanted = wanted_days(root, built={}, inputs=lambda inputs: fingerprint([inputs, "o"]))
    assert wanted == {day: fingerprint([inputs, "o"]) for day, inputs in plain.items()}


def test_a_broken_marker_is_named(local_store: ObjectStore) -> None:
    local_store.put(collected_path(DAY, "c.warc.gz"), b'{"day": "2025-11-01"}')
    with pytest.raises(StorageError, match=r"2025/11/01/c\.warc\.gz\.json"):
        read_collected(local_store)
