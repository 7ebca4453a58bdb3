"""Guarantees of local folders: atomic files, locks, removal of unfinished files."""

import errno
import os
import random
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.commit.markers import publish
from news_platform.storage.objects.error_mapping import mapped_error
from news_platform.storage.objects.interfaces import INCOMING
from news_platform.storage.objects.local import gc_incoming
from news_platform.storage.objects.store import NotFound, ObjectStore, open_store


def _start(program: str, root: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "news_platform_tests.storage.writers"]
    return subprocess.Popen(
        [*command, program, str(root), str(number)], stdout=subprocess.PIPE, text=True
    )


def _said(writers: list[subprocess.Popen[str]]) -> list[str]:
    said = [writer.communicate(timeout=60)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * len(writers)
    return said


def test_reading_from_a_root_that_does_not_exist_does_not_make_it(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "typo"))
    assert list(store.list()) == []
    with pytest.raises(NotFound):
        store.read("a")
    assert not (tmp_path / "typo").exists()


def test_a_file_url_and_a_path_are_the_same_store(tmp_path: Path) -> None:
    open_store(str(tmp_path / "a b")).put("x", b"1")
    by_url = open_store((tmp_path / "a b").as_uri())
    assert by_url.read("x") == b"1"
    assert by_url.local_folder == tmp_path / "a b"
    assert by_url.child("y").local_folder == tmp_path / "a b" / "y"
    assert by_url.uri("x") == str(tmp_path / "a b" / "x")
    assert by_url.polars_options() == {}


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="it is a file, not a folder; choose another root"):
        open_store(str(tmp_path / "file"))
    with pytest.raises(StorageError, match="is a file, not a folder; choose another root"):
        open_store(str(tmp_path / "file" / "root")).put("a", b"")


@pytest.mark.parametrize("url", ["ftp://host/x", "s3://", "http://host/x"])
def test_a_url_of_no_store_is_refused_with_what_is_expected(url: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a folder, s3://bucket"):
        open_store(url)


def test_a_file_stands_where_a_folder_is_needed(local_store: ObjectStore) -> None:
    local_store.put("a", b"")
    with pytest.raises(StorageError, match="a part of the path is a file"):
        local_store.put("a/b", b"")
    local_store.put("c/d", b"")
    with pytest.raises(StorageError, match="a folder exists at this path"):
        local_store.put("c", b"")
    # A failed write leaves nothing behind.
    assert local_store.local_folder is not None
    assert list((local_store.local_folder / INCOMING).iterdir()) == []


def test_pipes_and_broken_links_are_no_objects(local_store: ObjectStore) -> None:
    local_store.put("a", b"")
    assert local_store.local_folder is not None
    os.mkfifo(local_store.local_folder / "pipe")
    (local_store.local_folder / "broken").symlink_to("nowhere")
    assert [info.path for info in local_store.list()] == ["a"]
    for name in ("pipe", "broken"):
        assert local_store.find(name) is None
        with pytest.raises(NotFound):
            local_store.read(name)


def test_a_listing_stands_while_others_write_and_delete(local_store: ObjectStore) -> None:
    local_store.put("keep", b"")

    def churn(number: int) -> None:
        names = [f"passing/{number % 3}/{name}" for name in range(5)]
        for name in names:
            local_store.put(name, b"")
        local_store.delete(names)

    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(churn, number) for number in range(30)]
        while not all(churning.done() for churning in busy):
            assert "keep" in [info.path for info in local_store.list()]
            local_store.list_folders("passing")
    assert [churning.result() for churning in busy] == [None] * 30
    assert [info.path for info in local_store.list()] == ["keep"]


def test_a_new_file_has_the_rights_that_the_umask_leaves(local_store: ObjectStore) -> None:
    local_store.put("a", b"")
    assert local_store.local_folder is not None
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((local_store.local_folder / "a").stat().st_mode) == 0o666 & ~mask


def test_versions_written_in_the_same_instant_have_different_tags(local_store: ObjectStore) -> None:
    tags = [local_store.put("a", b"same size").etag for _ in range(100)]
    assert len(set(tags)) == 100


def test_leftovers_of_a_killed_writer_are_never_listed_and_are_swept(tmp_path: Path) -> None:
    root = tmp_path / "root"
    leftover = root / INCOMING / "killed.part"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    outer = open_store(str(tmp_path))
    assert list(outer.list()) == []
    assert outer.child("root").list_folders() == []
    store = open_store(str(root))
    store.put("a", b"")
    assert not leftover.exists()
    assert [info.path for info in outer.list()] == ["root/a"]


def test_a_sweep_spares_what_a_living_writer_holds(tmp_path: Path) -> None:
    class Body:
        """A body that runs gc while it is read."""

        def __init__(self) -> None:
            self.pieces = iter([b"one ", b"two"])

        def read(self, size: int = -1) -> bytes:
            assert gc_incoming(tmp_path / INCOMING) == 0
            return next(self.pieces, b"")

    store = open_store(str(tmp_path))
    store.put("a", Body())  # type: ignore[arg-type]  # the one method of a file that is used
    assert store.read("a") == b"one two"


def test_a_linked_folder_on_another_disk_takes_whole_files_too(local_store: ObjectStore) -> None:
    other = _other_disk(Path("/dev/shm"), local_store)
    assert local_store.local_folder is not None
    try:
        local_store.put("a", b"")
        (local_store.local_folder / "linked").symlink_to(other)
        local_store.put("linked/b", b"far")
        tag = local_store.compare_and_set("linked/c", b"1", etag=None)
        local_store.compare_and_set("linked/c", b"2", etag=tag)
        assert [info.path for info in local_store.list()] == ["a", "linked/b", "linked/c"]
        assert local_store.read("linked/c") == b"2"
    finally:
        shutil.rmtree(other)


def _other_disk(folder: Path, store: ObjectStore) -> Path:
    assert store.local_folder is not None
    if (
        not os.access(folder, os.W_OK)
        or folder.stat().st_dev == store.local_folder.parent.stat().st_dev
    ):
        pytest.skip("needs a second file system")
    other = folder / f"news-platform-{os.getpid()}"
    other.mkdir()
    return other


def test_processes_that_count_up_together_lose_no_step(tmp_path: Path) -> None:
    _said([_start("count_up", tmp_path, 50) for _ in range(3)])
    assert open_store(str(tmp_path)).read("sub/counter") == b"150"


def test_of_racing_processes_exactly_one_wins_each_claim(tmp_path: Path) -> None:
    said = _said([_start("claim", tmp_path, 100) for _ in range(3)])
    won = Counter(number for lines in said for number in lines.split())
    assert won == {str(number): 1 for number in range(100)}
    assert open_store(str(tmp_path)).list_folders() == ["won"]


def _kill(writer: subprocess.Popen[str], rng: random.Random) -> None:
    """Kill the writer a few milliseconds after some of its rounds."""
    assert writer.stdout is not None
    for _ in range(rng.randint(1, 6)):
        writer.stdout.readline()
    sleep(rng.random() * 0.02)
    writer.kill()
    writer.communicate()


def _check_killed_writer(root: Path, rng: random.Random) -> None:
    _kill(_start("rewrite_for_ever", root, 2_000_000), rng)
    body = open_store(str(root)).read("torn/file")
    assert len(body) == 2_000_000
    assert set(body) == {body[0]}


def _check_killed_publisher(root: Path, rng: random.Random) -> None:
    _kill(_start("publish_for_ever", root, 100_000), rng)
    store = open_store(str(root))
    letters = {path: set(store.read(path)) for path in (info.path for info in store.list("unit"))}
    if store.exists("marker"):
        number = store.read("marker")[0] - 65
        assert len(letters) == 3 + number % 3
        assert all(found == {65 + number} for found in letters.values())
    publish(store, {"unit/0": b"x"}, marker="marker", marker_body=b"", replaces=["unit"])
    assert [info.path for info in store.list()] == ["marker", "unit/0"]


KILLED = pytest.mark.parametrize("check", [_check_killed_writer, _check_killed_publisher])


@KILLED
def test_a_killed_writer_tears_no_file_and_leaves_no_false_marker(
    tmp_path: Path, check: Callable[[Path, random.Random], None]
) -> None:
    check(tmp_path, random.Random(1))


@pytest.mark.soak
@KILLED
def test_a_hundred_killed_writers_break_no_promise(
    tmp_path: Path, check: Callable[[Path, random.Random], None]
) -> None:
    for seed in range(100):
        check(tmp_path / str(seed), random.Random(seed))


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[list[str]]:
    """Return a command prefix that runs with a separate small file system at tmp_path/disk."""
    (tmp_path / "disk").mkdir()
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], check=False).returncode:
        pytest.skip("needs user namespaces to mount a file system")
    yield [unshare, "-rm", "sh", "-c"]


@pytest.mark.parametrize(
    ("mount", "message"),
    [
        ("size=256k", "StoreUnavailable: cannot write '{file}': the disk is full; free some space"),
        ("ro", "StorageError: cannot write '{file}': the file system is read-only; choose"),
    ],
    ids=["full disk", "read-only disk"],
)
def test_a_disk_that_takes_nothing_is_named_with_its_cure(
    tmp_path: Path, mounted: list[str], mount: str, message: str
) -> None:
    disk = tmp_path / "disk"
    script = (
        f'mount -t tmpfs -o {mount} none "{disk}" && '
        f'"{sys.executable}" -m news_platform_tests.storage.writers put_and_tell "{disk}" 1000000'
        f' && find "{disk}" -type f'
    )
    done = subprocess.run([*mounted, script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 1  # one line of error, and no file left over
    assert lines[0].startswith(message.format(file=disk / "a" / "file"))


def test_a_folder_without_write_permission_is_named_with_its_cure(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; the read-only disk covers it")
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="permission denied; make the folder writable"):
        open_store(str(tmp_path)).put("a", b"")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["Icon\r", "latin-\udce9", "a/\x01"])
def test_a_file_whose_name_cannot_be_a_path_is_skipped_and_counted(
    local_store: ObjectStore, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    paths = ["a/b", "a/c/d", "a.x", "z/ü"]
    for path in paths:
        local_store.put(path, b"1")
    before = list(local_store.list())
    assert local_store.local_folder is not None
    file = local_store.local_folder / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert list(local_store.list()) == before
    assert "skipped 1 files" in caplog.text
    assert local_store.list_folders() == ["a", "z"]
    assert [info.path for info in local_store.list("a")] == ["a/b", "a/c/d"]
    assert [info.path for info in local_store.list("a", name_prefix="c")] == ["a/c/d"]


def test_a_full_disk_names_the_folder_and_its_free_space() -> None:
    error = mapped_error(OSError(errno.ENOSPC, "full"), "write", "/proc/root/x.parquet")
    assert "the disk is full" in str(error)
    assert "(0 bytes free in '/proc')" in str(error)
