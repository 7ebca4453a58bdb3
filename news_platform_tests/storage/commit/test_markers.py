"""The name of a marker contains the inputs that its partition was built from."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from news_platform.errors import StorageError
from news_platform.storage.commit.markers import (
    content_part,
    content_tag,
    delete_marker,
    etag_part,
    fingerprint,
    fingerprint_of,
    read_inputs,
    read_markers,
    read_report,
    stale_partitions,
    write_marker,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore, open_store
from news_platform_tests.storage.conftest import Remote

PARTITIONS = ["2025-11-01", "cc|news & media|2025-11-01", "0000-0015", "all", "ü/é@x~y", "50%"]


def _info(path: str, etag: str = "t", size: int = 1) -> ObjectInfo:
    return ObjectInfo(path, size, etag, datetime(2025, 11, 3, tzinfo=UTC))


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab"], ["a", "b"]), (["a"], ["a", "a"]), (["a\nb"], ["a", "b"])],
)
def test_different_parts_have_different_fingerprints(one: list[str], other: list[str]) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_a_fingerprint_of_objects_sees_name_tag_and_size_but_not_time() -> None:
    base = fingerprint_of([_info("a"), _info("b")])
    assert base == fingerprint_of([_info("b"), _info("a")]) and len(base) == 16
    for changed in (_info("c"), _info("b", etag="u"), _info("b", size=2)):
        assert base != fingerprint_of([_info("a"), changed])


def test_a_fingerprint_by_content_is_the_same_in_every_copy_of_a_root(tmp_path: Path) -> None:
    found = []
    for name, body in {"one": b"content", "copy": b"content", "other": b"changed"}.items():
        store = open_store(str(tmp_path / name))
        store.put("a/b.json", body)
        infos = list(store.list("a"))
        found.append((fingerprint_of(infos), fingerprint_of(infos, content_part(store))))
    (etags, content), (copied_etags, copied), (_etags, changed) = found
    assert etags != copied_etags
    assert content == copied != changed


def test_a_remote_object_is_not_read_for_its_fingerprint(remote: Remote) -> None:
    remote.store.put("a", b"1")
    info = remote.store.head("a")
    assert content_part(remote.store)(info) == etag_part(info)
    assert content_tag(remote.store, "a", info.etag) == info.etag


def test_a_file_deleted_since_its_listing_goes_by_its_etag(local_store: ObjectStore) -> None:
    local_store.put("a", b"1")
    info = local_store.head("a")
    local_store.delete(["a"])
    assert content_tag(local_store, "a", info.etag) == info.etag


def test_every_partition_key_comes_back_as_it_went(any_store: ObjectStore) -> None:
    for number, partition in enumerate(PARTITIONS):
        write_marker(any_store, "ds", partition, inputs=f"{number:016x}", report={"rows": number})
    markers = read_markers(any_store, "ds")
    assert read_inputs(any_store, "ds") == {
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


def test_a_foreign_file_and_a_broken_report_are_named(
    local_store: ObjectStore,
) -> None:
    local_store.put("markers/ds/notes.txt", b"")
    with pytest.raises(StorageError, match=r"not a marker: 'markers/ds/notes.txt': .*; remove it"):
        read_markers(local_store, "ds")
    local_store.put("markers/other/a@b.json", b"{")
    with pytest.raises(StorageError, match=r"markers/other/a@b.json"):
        read_report(local_store, read_markers(local_store, "other")["a"])


def test_a_partition_is_stale_where_its_inputs_differ_from_those_it_was_built_from() -> None:
    wanted = {"2025-11-01": "a", "2025-11-02": "b", "2025-11-03": "c"}
    built = {"2025-11-01": "a", "2025-11-02": "old", "2025-10-31": "gone"}
    stale = stale_partitions(wanted, built)
    assert list(stale.items()) == [("2025-11-03", "c"), ("2025-11-02", "b")]
