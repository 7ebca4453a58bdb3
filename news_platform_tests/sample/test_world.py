"""The world has the same bytes everywhere; an incomplete folder is completed."""

import gzip
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from news_platform.errors import InputError
from news_platform.sample.world import (
    MANIFEST,
    add_late_warc,
    read_manifest,
    write_world,
)

World = Mapping[str, bytes]

# The world's content, gzip members inflated (compressed bytes are zlib's business). Whoever
# changes the world on purpose writes the new digest here, and nobody changes it by accident.
PINNED_DIGEST = "b19a7318cc92f6f87e72e03fafe4c091381ad0380bfb6341a65026bf3f0fc209"


def content_digest(files: Mapping[str, bytes]) -> str:
    digest = sha256()
    for path, body in sorted(files.items()):
        content = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@pytest.fixture
def folder(sample_world: Path, tmp_path: Path) -> Path:
    """Return a copy of the sample world that a test may change."""
    return Path(shutil.copytree(sample_world, tmp_path / "copy"))


WRITE = """
import pathlib, sys
from news_platform.sample.world import write_world
write_world(pathlib.Path(sys.argv[1]))
"""


def files_under(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".part")
    }


def stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_content_of_the_world_is_pinned(world: World) -> None:
    assert content_digest(world) == PINNED_DIGEST


def start_writer(folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start a process that writes the world."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, str(folder)],
        env={"PYTHONPATH": ":".join(sys.path), **environment},
    )


def test_a_half_written_folder_is_mended_and_only_where_needed(world: World, folder: Path) -> None:
    before = stamps(folder)
    warc = next(path for path in world if path.endswith(".warc.gz"))
    (folder / warc).write_bytes(world[warc][:-1])
    (folder / "feeds.opml").write_bytes(b"<opml")
    (folder / "sites/calderpost.example/robots.txt").unlink(missing_ok=True)
    (folder / "sites/fenwickledger.example/robots.txt").unlink()
    (folder / MANIFEST).unlink()
    write_world(folder)
    after = stamps(folder)
    changed = {path for path in after if after[path] != before.get(path)}
    assert {Path(path).name for path in changed} == {
        *("feeds.opml", "robots.txt", MANIFEST),
        Path(warc).name,
    }
    assert {k: v for k, v in files_under(folder).items() if k != MANIFEST} == world


@pytest.mark.parametrize("damage", [b"{", b'{"recipe": 1}'])
def test_an_unreadable_manifest_counts_as_none(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(damage)
    assert read_manifest(tmp_path) is None


def test_the_world_of_an_older_package_is_written_again_and_other_files_stay(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "feeds.opml").write_bytes(b"<opml")
    (folder / MANIFEST).write_text('{"recipe": "an older recipe", "late": []}')
    write_world(folder)
    written = files_under(folder)
    assert written.pop("notes.txt") == b"mine"
    assert content_digest({k: v for k, v in written.items() if k != MANIFEST}) == PINNED_DIGEST


def test_two_writers_at_once_complete_what_a_killed_one_left(
    sample_world: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "world"
    with start_writer(folder) as writer:
        while writer.poll() is None and sum(1 for _ in folder.rglob("*")) < 300:
            time.sleep(0.005)
        writer.send_signal(signal.SIGKILL)
    assert not (folder / MANIFEST).exists()
    # Neither hash seed nor time zone changes a byte.
    elsewhere = start_writer(folder, PYTHONHASHSEED="12345", TZ="Asia/Tokyo")
    with start_writer(folder) as one, elsewhere as other:
        assert (one.wait(), other.wait()) == (0, 0)
    assert files_under(folder) == files_under(sample_world)


def listed(folder: Path) -> list[str]:
    body = (folder / "crawl/crawl-data/CC-NEWS/2025/11/warc.paths.gz").read_bytes()
    return gzip.decompress(body).decode().splitlines()


def test_a_late_warc_is_added_to_its_day_and_to_the_listing_and_stays(folder: Path) -> None:
    listed_before, before = listed(folder), stamps(folder)
    # Their order does not matter.
    later = add_late_warc(folder, date(2025, 11, 2))
    path = add_late_warc(folder, date(2025, 11, 1))
    assert set(listed(folder)) == {*listed_before, path, later}
    assert (folder / "crawl" / path).stat().st_size > 1000
    after = stamps(folder)
    changed = {Path(name).name for name in after if after[name] != before.get(name)}
    assert changed == {"warc.paths.gz", Path(path).name, Path(later).name, MANIFEST}
    assert add_late_warc(folder, date(2025, 11, 1)) == path
    write_world(folder)
    assert stamps(folder) == after


def test_a_late_warc_needs_a_world_and_one_of_its_days(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="write it first"):
        add_late_warc(tmp_path / "nothing", date(2025, 11, 1))
    with pytest.raises(InputError, match="no day '2025-12-24'"):
        add_late_warc(folder, date(2025, 12, 24))
