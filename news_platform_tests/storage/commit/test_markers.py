"""Markers say what each partition was built from, by their names alone."""

from datetime import UTC, datetime

import pytest

from news_platform.errors import StorageError
from news_platform.storage.commit.markers import (
    delete_marker,
    fingerprint,
    fingerprint_of,
    read_markers,
    read_report,
    write_marker,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform_tests.storage.conftest import Remote

PARTITIONS = ["2025-11-01", "cc|news & media|2025-11-01", "0000-0015", "all", "ü/é@x~y", "50%"]


def _info(path: str, etag: str = "t", size: int = 1) -> ObjectInfo:
    return ObjectInfo(path, size, etag, datetime(2025, 11, 3, tzinfo=UTC))


def test_a_fingerprint_is_sixteen_hex_digits_whatever_the_order() -> None:
    assert fingerprint(["b", "a"]) == fingerprint(["a", "b"])
    assert len(fingerprint([])) == 16
    assert int(fingerprint(["a"]), 16) >= 0


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab"], ["a", "b"]), (["a"], ["a", "a"]), ([], [""]), (["a\nb"], ["a", "b"])],
)
def test_different_parts_have_different_fingerprints(one: list[str], other: list[str]) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_a_fingerprint_of_objects_sees_name_tag_and_size_but_not_time() -> None:
    base = fingerprint_of([_info("a"), _info("b")])
    assert base == fingerprint_of([_info("b"), _info("a")])
    for changed in (_info("c"), _info("b", etag="u"), _info("b", size=2)):
        assert base != fingerprint_of([_info("a"), changed])


def test_every_partition_key_comes_back_as_it_went(any_store: ObjectStore) -> None:
    for number, partition in enumerate(PARTITIONS):
        write_marker(any_store, "ds", partition, inputs=f"{number:016x}", report={"rows": number})
    markers = read_markers(any_store, "ds")
    assert {key: marker.inputs for key, marker in markers.items()} == {
        partition: f"{number:016x}" for number, partition in enumerate(PARTITIONS)
    }
    assert read_report(any_store, markers["50%"]) == {"rows": 5}
    assert read_markers(any_store, "d") == {}


def test_a_new_marker_replaces_the_old_one_of_its_partition_only(any_store: ObjectStore) -> None:
    write_marker(any_store, "ds", "2025-11-0", inputs="a", report={})
    write_marker(any_store, "ds", "2025-11-01", inputs="b", report={})
    write_marker(any_store, "ds", "2025-11-01", inputs="c", report={})
    paths = [info.path for info in any_store.list("markers")]
    assert paths == ["markers/ds/2025-11-01@c.json", "markers/ds/2025-11-0@a.json"]


def test_after_a_crash_between_new_and_old_the_younger_counts(local_store: ObjectStore) -> None:
    local_store.put("markers/ds/day@ffff.json", b"{}")
    local_store.put("markers/ds/day@0000.json", b"{}")
    assert read_markers(local_store, "ds")["day"].inputs == "0000"
    write_marker(local_store, "ds", "day", inputs="1111", report={})
    assert [info.path for info in local_store.list()] == ["markers/ds/day@1111.json"]


def test_the_same_marker_again_is_still_one(any_store: ObjectStore) -> None:
    for rows in (1, 2):
        write_marker(any_store, "ds", "all", inputs="a", report={"rows": rows, "näme": "ж"})
    marker = read_markers(any_store, "ds")["all"]
    assert read_report(any_store, marker) == {"rows": 2, "näme": "ж"}
    assert marker.etag == any_store.head(marker.path).etag


def test_a_deleted_marker_is_forgotten(any_store: ObjectStore) -> None:
    write_marker(any_store, "ds", "a", inputs="1", report={})
    delete_marker(any_store, "ds", "a")
    delete_marker(any_store, "ds", "never there")
    assert read_markers(any_store, "ds") == {}


def test_reading_markers_takes_no_request_per_partition(remote: Remote) -> None:
    for day in range(10):
        write_marker(remote.store, "ds", f"day-{day}", inputs="a", report={})
    remote.proxy.seen.clear()
    assert len(read_markers(remote.store, "ds")) == 10
    assert len(remote.proxy.seen) == 1


def test_a_foreign_file_among_the_markers_is_named(local_store: ObjectStore) -> None:
    local_store.put("markers/ds/notes.txt", b"")
    with pytest.raises(StorageError, match=r"not a marker: 'markers/ds/notes.txt'; remove it"):
        read_markers(local_store, "ds")


def test_a_broken_report_is_named(local_store: ObjectStore) -> None:
    local_store.put("markers/ds/a@b.json", b"{")
    marker = read_markers(local_store, "ds")["a"]
    with pytest.raises(StorageError, match=r"markers/ds/a@b.json"):
        read_report(local_store, marker)
