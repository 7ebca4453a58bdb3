"""The same snapshots give the same records and ids in every process and folder."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

# Segments every n-th page of a folder and prints all ids, texts and languages.
SEGMENT = """
import gzip, json, pathlib, sys
from news_platform.source_records.segment import segment
from news_platform.source_records.snapshots import SourcePage
from news_platform.source_records.options import SegmentOptions

found = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.html.gz"))[:: int(sys.argv[2])]:
    page = SourcePage(gzip.decompress(path.read_bytes()), url=path.name, institution="u1")
    done = segment(page, SegmentOptions())
    kept = [(record.id, record.text, record.meta.language) for record in done.records]
    found[path.name] = [kept, [(given.reason, given.detail) for given in done.decisions]]
print(json.dumps(found))
"""


def segmented(pages: Path, every: int, *, hash_seed: str, folder: Path) -> Mapping[str, object]:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SEGMENT, str(pages), str(every)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        cwd=folder,
        check=True,
        capture_output=True,
    )
    found: Mapping[str, object] = json.loads(done.stdout)
    return found


def assert_same(pages: Path, tmp_path: Path, *, every: int) -> None:
    first = segmented(pages, every, hash_seed="1", folder=tmp_path / "here")
    second = segmented(pages, every, hash_seed="4242", folder=tmp_path / "elsewhere")
    assert len(first) == len(sorted(pages.glob("*.html.gz"))[::every])
    assert [name for name in first if first[name] != second[name]] == []


def test_other_hashes_and_folders_give_the_same_records(bench_data: Path, tmp_path: Path) -> None:
    assert_same(bench_data / "pages" / "html", tmp_path, every=30)


@pytest.mark.soak
def test_all_pages_give_the_same_records_in_two_processes(bench_data: Path, tmp_path: Path) -> None:
    assert_same(bench_data / "pages" / "html", tmp_path, every=1)
