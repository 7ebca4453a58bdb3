"""The guarantees of ObjectStore on every backend."""

from io import BytesIO
from pathlib import Path

import pytest

from news_platform.errors import Conflict, InputError, StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore, open_store

ODD_NAMES = [
    "ü/ж/日本.json",
    "100%/a%20b%7C.txt",
    "a#b?c*d[1]{2}.txt",
    "quote'\"<>|^`.txt",
    ".hidden/..x/trail.",
]


def test_what_is_put_is_read_back_with_its_size_and_tag(any_store: ObjectStore) -> None:
    info = any_store.put("a/b.txt", b"hello")
    assert any_store.read("a/b.txt") == b"hello"
    assert (info.path, info.size_bytes) == ("a/b.txt", 5)
    assert any_store.head("a/b.txt") == info
    assert list(any_store.list()) == [info]
    assert info.etag and info.modified_at.tzinfo is not None
    assert any_store.put("a/b.txt", b"other").etag != info.etag
    assert any_store.read("a/b.txt") == b"other"


def test_a_put_takes_bytes_a_path_or_an_open_file(any_store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"from a path")
    any_store.put("path", source)
    any_store.put("file", BytesIO(b"from a file"))
    any_store.put("empty", b"")
    assert any_store.read("path") == b"from a path"
    assert any_store.read("file") == b"from a file"
    assert any_store.read("empty") == b""
    assert source.exists()


def test_a_large_body_goes_up_in_parts_and_comes_back_whole(any_store: ObjectStore) -> None:
    body = bytes(range(256)) * 50_000  # 12.8 MB: three parts of a multipart upload
    assert any_store.put("big", body).size_bytes == len(body)
    assert any_store.read("big") == body
    assert any_store.put("big", BytesIO(body[:-1])).size_bytes == len(body) - 1


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_survives_every_way_round(any_store: ObjectStore, name: str) -> None:
    any_store.put(name, b"odd")
    assert any_store.read(name) == b"odd"
    assert [info.path for info in any_store.list()] == [name]
    assert any_store.list_folders() == ([name.split("/")[0]] if "/" in name else [])
    assert not any_store.put_if_absent(name, b"other")
    any_store.delete([name])
    assert any_store.find(name) is None


@pytest.mark.parametrize("name", ["", "/a", "../a", "tab\t", "x#12", ".incoming/x"])
def test_a_name_that_some_backend_cannot_hold_is_refused_by_all(
    any_store: ObjectStore, name: str
) -> None:
    with pytest.raises(InputError):
        any_store.put(name, b"")


def test_what_is_missing_is_said_so(any_store: ObjectStore) -> None:
    any_store.put("there", b"")
    for ask in (any_store.read, any_store.head, any_store.stream):
        with pytest.raises(NotFound, match=r"root/missing': it does not exist"):
            ask("missing")
    assert any_store.find("missing") is None
    assert not any_store.exists("missing")
    assert any_store.find("there/below") is None


def test_a_listing_is_sorted_and_goes_by_whole_folders(any_store: ObjectStore) -> None:
    assert list(any_store.list("a")) == [] and any_store.list_folders("a") == []
    names = ["b/1", "a/2", "a/10", "a-b/3", "a/é", "a/z/4", "ab/5"]
    for name in names:
        any_store.put(name, b"")
    assert [info.path for info in any_store.list()] == sorted(names)
    assert [info.path for info in any_store.list("a")] == ["a/10", "a/2", "a/z/4", "a/é"]
    assert [info.path for info in any_store.list("a/")] == ["a/10", "a/2", "a/z/4", "a/é"]
    assert any_store.list_folders() == ["a", "a-b", "ab", "b"]
    assert any_store.list_folders("a") == ["a/z"]


def test_a_listing_can_be_narrowed_to_the_start_of_a_name(any_store: ObjectStore) -> None:
    for name in ("m/2025-11-01@a", "m/2025-11-01@b", "m/2025-11-02@c", "m/2025-11-0"):
        any_store.put(name, b"")
    found = [info.path for info in any_store.list("m", name_prefix="2025-11-01@")]
    assert found == ["m/2025-11-01@a", "m/2025-11-01@b"]
    assert list(any_store.list("m", name_prefix="x")) == []


def test_ranges_are_exact(any_store: ObjectStore) -> None:
    any_store.put("digits", b"0123456789")
    assert any_store.read_range("digits", 2, 3) == b"234"
    assert any_store.read_range("digits", 9, 1) == b"9"
    assert any_store.read_range("digits", 4, 0) == b""
    assert any_store.read_ranges("digits", [7, 0, 5], [2, 1, 0]) == [b"78", b"0", b""]
    assert any_store.read_ranges("digits", [], []) == []
    for start, length in ((8, 5), (50, 1)):
        with pytest.raises(StorageError, match="digits"):
            any_store.read_range("digits", start, length)


def test_a_child_sees_only_its_own_folder(any_store: ObjectStore) -> None:
    child = any_store.child("a/b")
    child.put("c/d", b"1")
    any_store.put("other", b"2")
    assert any_store.read("a/b/c/d") == b"1"
    assert [info.path for info in child.list()] == ["c/d"]
    assert child.list_folders() == ["c"]
    assert child.child("c/").read("d") == b"1"
    assert child.child("").read("c/d") == b"1"
    assert child.uri("c/d") == any_store.uri("a/b/c/d")
    assert child.url == f"{any_store.url}/a/b"


def test_deleting_is_idempotent_and_leaves_no_empty_folder(any_store: ObjectStore) -> None:
    for name in ("a/b/1", "a/b/2", "a/3"):
        any_store.put(name, b"")
    any_store.delete(["a/b/1", "a/b/2", "missing", "a/3/below"])
    any_store.delete(["a/b/1"])
    assert [info.path for info in any_store.list()] == ["a/3"]
    assert any_store.list_folders("a") == []


def test_only_the_first_put_if_absent_writes(any_store: ObjectStore) -> None:
    assert any_store.put_if_absent("a/claim", b"first")
    assert not any_store.put_if_absent("a/claim", b"second")
    assert not any_store.put_if_absent("a/claim", b"first")
    assert any_store.read("a/claim") == b"first"


def test_compare_and_set_writes_only_over_the_version_it_knows(any_store: ObjectStore) -> None:
    first = any_store.compare_and_set("CURRENT", b"1", etag=None)
    body, info = any_store.read_with_info("CURRENT")
    assert (body, info.etag) == (b"1", first)
    second = any_store.compare_and_set("CURRENT", b"2", etag=first)
    for stale in (None, first):
        with pytest.raises(Conflict, match="CURRENT"):
            any_store.compare_and_set("CURRENT", b"3", etag=stale)
    assert any_store.head("CURRENT").etag == second
    assert any_store.read("CURRENT") == b"2"


def test_compare_and_set_of_a_deleted_object_is_a_conflict(any_store: ObjectStore) -> None:
    tag = any_store.compare_and_set("CURRENT", b"1", etag=None)
    any_store.delete(["CURRENT"])
    with pytest.raises(Conflict):
        any_store.compare_and_set("CURRENT", b"2", etag=tag)
    assert not any_store.exists("CURRENT")


def test_a_web_address_is_read_only(tmp_path: Path) -> None:
    store = open_store("https://archive.example/crawl")
    for write in (
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("a", b""),
        lambda: store.compare_and_set("a", b"", etag="x"),
        lambda: store.delete(["a"]),
    ):
        with pytest.raises(StorageError, match="read-only"):
            write()
