"""Same seed, same bytes; a folder is complete, or it is mended."""

import gzip
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from news_platform.errors import InputError
from news_platform.sample.build import World, build_world
from news_platform.sample.world import (
    DAYS,
    MANIFEST,
    SEED,
    WORLD_NOW,
    add_late_warc,
    read_manifest,
    write_world,
)

# The world's content, gzip members inflated (compressed bytes are zlib's business). Whoever
# changes the world on purpose writes the new digest here, and nobody changes it by accident.
PINNED_DIGEST = "d71409bb0dfb3ff03e006d229b9eb9986b9f26c886b6d5b7e7e8795fb8732307"


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


def files_under(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_content_of_the_world_is_pinned(world: World) -> None:
    assert content_digest(world.files) == PINNED_DIGEST


def test_a_process_with_other_hashes_writes_the_same_bytes(
    sample_world: Path, tmp_path: Path
) -> None:
    code = (
        "import pathlib, sys\n"
        "from news_platform.sample.world import write_world\n"
        "write_world(pathlib.Path(sys.argv[1]))\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"PYTHONHASHSEED": "12345", "TZ": "Asia/Tokyo", "PYTHONPATH": ":".join(sys.path)},
        check=True,
    )
    assert files_under(tmp_path) == files_under(sample_world)


def test_what_is_built_is_what_is_written(world: World, sample_world: Path) -> None:
    written = files_under(sample_world)
    written.pop(MANIFEST)
    assert written == world.files


def test_the_summary_tells_what_was_built(world: World, sample_world: Path) -> None:
    summary = write_world(sample_world)
    assert summary == world.summary
    assert summary.outlets >= 12
    assert summary.languages >= 6
    assert summary.charsets >= 4
    assert summary.articles >= 400
    assert summary.warcs == 6
    assert summary.files == len(world.files)
    assert summary.size_bytes == sum(map(len, world.files.values())) < 8_000_000
    with pytest.raises(FrozenInstanceError):
        summary.articles = 0  # type: ignore[misc]  # the point of the test


def test_the_world_is_seen_from_the_evening_of_its_last_day() -> None:
    assert WORLD_NOW.isoformat() == "2025-11-03T20:00:00+00:00"
    assert [day.isoformat() for day in DAYS] == ["2025-11-01", "2025-11-02", "2025-11-03"]


def test_writing_again_touches_nothing(folder: Path) -> None:
    before = stamps(folder)
    write_world(folder)
    assert stamps(folder) == before


def test_a_half_written_folder_is_mended_and_only_where_needed(world: World, folder: Path) -> None:
    before = stamps(folder)
    warc = next(path for path in world.files if path.endswith(".warc.gz"))
    (folder / warc).write_bytes(world.files[warc][:-1])
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
    assert {k: v for k, v in files_under(folder).items() if k != MANIFEST} == world.files


def test_an_altered_file_is_noticed_although_the_manifest_stands(
    world: World, folder: Path
) -> None:
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.holds(folder, SEED)
    assert not manifest.holds(folder, SEED + 1)
    (folder / "feeds.opml").write_bytes(b"<opml")
    assert not manifest.holds(folder, SEED)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"recipe": 1}'])
def test_an_unreadable_manifest_counts_as_none(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(damage)
    assert read_manifest(tmp_path) is None


def test_another_seed_leaves_none_of_the_old_world_and_all_that_is_not_ours(
    folder: Path,
) -> None:
    (folder / "notes.txt").write_text("mine")
    summary = write_world(folder, seed=7)
    written = files_under(folder)
    assert summary.seed == 7
    assert written.pop("notes.txt") == b"mine"
    assert len(written) == summary.files + 1
    assert content_digest(written) != PINNED_DIGEST


def listed(folder: Path) -> list[str]:
    body = (folder / "crawl/crawl-data/CC-NEWS/2025/11/warc.paths.gz").read_bytes()
    return gzip.decompress(body).decode().splitlines()


def test_a_late_warc_is_added_to_its_day_and_to_the_listing_and_stays(folder: Path) -> None:
    listed_before, before = listed(folder), stamps(folder)
    path = add_late_warc(folder, date(2025, 11, 1))
    assert set(listed(folder)) == {*listed_before, path}
    assert (folder / "crawl" / path).stat().st_size > 1000
    after = stamps(folder)
    changed = {Path(name).name for name in after if after[name] != before.get(name)}
    assert changed == {"warc.paths.gz", Path(path).name, MANIFEST}
    assert add_late_warc(folder, date(2025, 11, 1)) == path
    summary = write_world(folder)
    assert (summary.late, summary.warcs) == (("2025-11-01",), 7)
    assert stamps(folder) == after


def test_the_order_in_which_late_warcs_come_does_not_matter(folder: Path) -> None:
    for day in (2, 1):
        add_late_warc(folder, date(2025, 11, day))
    written = files_under(folder)
    written.pop(MANIFEST)
    assert written == build_world(SEED, late=[date(2025, 11, 1), date(2025, 11, 2)]).files


def test_a_late_warc_needs_a_world_and_one_of_its_days(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="write it first"):
        add_late_warc(tmp_path / "nothing", date(2025, 11, 1))
    with pytest.raises(InputError, match="no day '2025-12-24'"):
        add_late_warc(folder, date(2025, 12, 24))


def test_the_default_seed_is_part_of_the_summary(world: World) -> None:
    assert world.summary.seed == SEED
