"""The same bytes give the same article in every process, whatever its surroundings."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

# Extracts every n-th page of a folder and prints the articles.
EXTRACT = """
import gzip, json, pathlib, sys
from news_platform.articles.extract import extract_article

found = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.html.gz"))[:: int(sys.argv[2])]:
    page = gzip.decompress(path.read_bytes())
    found[path.name] = repr(extract_article(page, f"https://{path.name}/news/1"))
print(json.dumps(found))
"""
HERE = {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
ELSEWHERE = {"PYTHONHASHSEED": "4242", "TZ": "Asia/Tokyo", "LC_ALL": "C", "OMP_NUM_THREADS": "2"}


def extracted(pages: Path, every: int, *, environ: Mapping[str, str]) -> Mapping[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", EXTRACT, str(pages), str(every)],
        env={**os.environ, **environ, "PYTHONPATH": ":".join(sys.path)},
        check=True,
        capture_output=True,
    )
    found: Mapping[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.soak
def test_all_pages_give_the_same_articles_in_other_surroundings(bench_data: Path) -> None:
    pages = bench_data / "pages" / "html"
    first = extracted(pages, 1, environ=HERE)
    second = extracted(pages, 1, environ=ELSEWHERE)
    assert len(first) == len(list(pages.glob("*.html.gz"))) > 0
    assert [name for name in first if first[name] != second[name]] == []
