"""The Compose file under podman: each part is killed during a backfill, and the image upgraded."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.podman import missing_tools
from deploy.ten_days import DAYS, write_ten_days
from news_platform.sample.world import DAYS as SAMPLE_DAYS


@pytest.mark.soak
def test_ten_days_are_the_same_when_every_container_was_killed_and_upgraded() -> None:
    if lacking := missing_tools():
        pytest.skip(f"containers need {', '.join(lacking)}")
    command = (sys.executable, "-m", "news_platform_tests.cluster.container_faults")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("THE SAME: ")


def test_the_crawl_of_ten_days_lists_the_warcs_of_each(tmp_path: Path) -> None:
    sample = tmp_path / "world" / "crawl"
    sample.mkdir(parents=True)
    for day in SAMPLE_DAYS:
        (sample / f"CC-NEWS-{day:%Y%m%d}060000-00001.warc.gz").write_text(str(day))
    write_ten_days(tmp_path / "world", tmp_path / "crawl")
    listings = (tmp_path / "crawl").rglob("warc.paths.gz")
    lines = [line for file in listings for line in gzip.decompress(file.read_bytes()).split()]
    warcs = sorted(line.decode() for line in lines if line.endswith(b"-00001.warc.gz"))
    assert [path.rpartition("/")[2][8:16] for path in warcs] == [f"{day:%Y%m%d}" for day in DAYS]
    assert (tmp_path / "crawl" / warcs[-1]).read_text() == str(SAMPLE_DAYS[9 % 3])
