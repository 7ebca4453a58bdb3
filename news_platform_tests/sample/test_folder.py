"""A writer that dies in the middle leaves a folder that the next one completes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from news_platform.sample.world import MANIFEST, read_manifest, write_world

CODE = """
import pathlib, sys
from news_platform.sample.world import write_world
write_world(pathlib.Path(sys.argv[1]))
"""


def whole(path: Path) -> dict[str, bytes]:
    return {
        found.relative_to(path).as_posix(): found.read_bytes()
        for found in path.rglob("*")
        if found.is_file() and not found.name.endswith(".part")
    }


def start_writer(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, str(folder)], env={"PYTHONPATH": ":".join(sys.path)}
    )


@pytest.mark.parametrize("files", [1, 300])
def test_a_writer_killed_in_the_middle_is_made_good_by_the_next(
    files: int, sample_world: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "world"
    with start_writer(folder) as writer:
        while writer.poll() is None and sum(1 for _ in folder.rglob("*")) < files:
            time.sleep(0.005)
        writer.send_signal(signal.SIGKILL)
    killed_early = not (folder / MANIFEST).exists()
    write_world(folder)
    assert killed_early
    assert whole(folder) == whole(sample_world)


def test_two_writers_at_once_agree(sample_world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "world"
    with start_writer(folder) as one, start_writer(folder) as other:
        assert (one.wait(), other.wait()) == (0, 0)
    assert whole(folder) == whole(sample_world)
    assert not list(folder.rglob("*.part"))


def test_a_manifest_names_every_file_of_the_world(sample_world: Path) -> None:
    manifest = read_manifest(sample_world)
    assert manifest is not None
    assert {*manifest.files, MANIFEST} == set(whole(sample_world))
    assert manifest.late == ()


def test_a_world_is_found_unwhole_when_its_code_was_other(sample_world: Path) -> None:
    manifest = read_manifest(sample_world)
    assert manifest is not None
    older = type(manifest)("an older recipe", manifest.summary, manifest.files)
    assert manifest.holds(sample_world, manifest.summary.seed)
    assert not older.holds(sample_world, manifest.summary.seed)
