"""A unit of files becomes visible as a whole, by its marker, on every backend."""

from pathlib import Path

import pytest

from news_platform.errors import StorageError
from news_platform.storage.commit.markers import publish
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform_tests.storage.conftest import Remote

MARKER = "collected/w1.json"


def _publish(store: ObjectStore, files: dict[str, bytes | Path], body: bytes = b"{}") -> None:
    publish(store, files, marker=MARKER, marker_body=body, replaces=["unit"])


def _stored(store: ObjectStore) -> dict[str, bytes]:
    return {info.path: store.read(info.path) for info in store.list()}


def _facts(store: ObjectStore) -> list[ObjectInfo]:
    return list(store.list())


def test_a_second_publish_replaces_the_first_and_removes_its_strays(any_store: ObjectStore) -> None:
    any_store.put("unit2/other", b"not ours")
    _publish(any_store, {"unit/a": b"1", "unit/b": b"2"})
    _publish(any_store, {"unit/a": b"one", "unit/c": b"3"}, b'{"rows": 2}')
    assert _stored(any_store) == {
        MARKER: b'{"rows": 2}',
        "unit/a": b"one",
        "unit/c": b"3",
        "unit2/other": b"not ours",
    }


def test_publishing_the_same_again_changes_nothing_at_all(
    any_store: ObjectStore, tmp_path: Path
) -> None:
    built = tmp_path / "built"
    built.write_bytes(b"x" * 5_000_000)
    files: dict[str, bytes | Path] = {"unit/a": b"1", "unit/big": built}
    _publish(any_store, files)
    before = _facts(any_store)
    _publish(any_store, files)
    assert _facts(any_store) == before


def test_a_changed_file_of_the_same_size_is_noticed(any_store: ObjectStore, tmp_path: Path) -> None:
    built = tmp_path / "built"
    for body in (b"first", b"other"):
        built.write_bytes(body)
        _publish(any_store, {"unit/a": built, "unit/b": body})
        assert any_store.read("unit/a") == body
        assert any_store.read("unit/b") == body


def test_a_marker_inside_the_unit_is_no_stray(any_store: ObjectStore) -> None:
    for _ in range(2):
        publish(
            any_store, {"u/a": b"1"}, marker="u/_SUCCESS", marker_body=b"", replaces=["u", "u/x"]
        )
        assert sorted(_stored(any_store)) == ["u/_SUCCESS", "u/a"]


def test_a_publish_that_fails_half_way_leaves_no_marker(remote: Remote) -> None:
    _publish(remote.store, {"unit/a": b"1", "unit/b": b"2"})
    remote.proxy.inject("slow_down", "PUT", match="b", times=1000)
    with pytest.raises(StorageError):
        _publish(remote.store, {"unit/a": b"one", "unit/b": b"two"})
    remote.proxy.faults.clear()
    assert not remote.store.exists(MARKER)
    _publish(remote.store, {"unit/a": b"one", "unit/b": b"two"})
    assert _stored(remote.store) == {MARKER: b"{}", "unit/a": b"one", "unit/b": b"two"}


def test_a_crash_before_the_marker_is_mended_by_the_next_run(any_store: ObjectStore) -> None:
    any_store.put("unit/a", b"1")
    any_store.put("unit/half", b"left by a killed run")
    _publish(any_store, {"unit/a": b"1", "unit/b": b"2"})
    assert sorted(_stored(any_store)) == [MARKER, "unit/a", "unit/b"]


def test_the_marker_goes_first_and_comes_last(remote: Remote) -> None:
    _publish(remote.store, {"unit/a": b"1"})
    remote.proxy.seen.clear()
    _publish(remote.store, {"unit/a": b"2", "unit/b": b"3"})
    writes = [r for r in remote.proxy.seen if r.method in ("PUT", "POST", "DELETE")]
    assert writes[0].method in ("POST", "DELETE")  # the old marker
    assert "w1" in writes[-1].target
    assert writes[-1].method == "PUT"
