"""A backfill over all crawl assets in which everything happens that an operator fears."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def judge_backfill(folder: Path, days: int, *, least_kills: int) -> None:
    """Each partition is built once and in order, damage stays where it is, and nothing is lost."""
    command = [sys.executable, "-m", "news_platform_tests.year.month", str(folder), str(days)]
    with (folder / "log").open("wb") as log:
        done = subprocess.run(command, cwd=PROJECT, stdout=log, stderr=log, check=False)
    assert done.returncode == 0, (folder / "log").read_text(errors="replace")[-3000:]
    found = json.loads((folder / "figures.json").read_text())
    assert found["kills"] >= least_kills and found["canceled"]
    assert found["stale"] == {} and found["red"] == []
    collected = dict(found["builds"].pop("raw_news"))
    assert sorted(collected) == sorted({*collected, *found["days"]})
    for asset, builds in found["builds"].items():
        counts = Counter(day for day, _ in builds)
        assert counts.keys() >= set(found["days"]), f"{asset} lost a day"
        # A day of clusters is built again for days before it, an index for its new version.
        most = {"near_duplicates": 3, "search_index": 2}.get(asset, 1)
        assert {day: count for day, count in counts.items() if count > most} == {}, asset
        assert all(at >= collected[day] for day, at in builds), f"{asset} was built too early"
        if asset == "search_index":
            newest = {day: at for day, at in sorted(builds, key=lambda one: one[1])}
            assert min(newest.values()) >= found["times"]["raised"], "all have the new version"
        if asset not in ("captures", "feed_candidates"):  # they are written with the pages
            from_damaged = [at for day, at in builds if day == found["damaged"]]
            assert min(from_damaged) >= found["times"]["repaired"], f"damage reached {asset}"


def test_a_backfill_ends_well_whatever_happens_meanwhile(tmp_path: Path) -> None:
    """A damaged file, a canceled run, a new version, and a daemon killed at call after call."""
    judge_backfill(tmp_path, 3, least_kills=5)


@pytest.mark.soak
def test_a_backfill_of_thirty_days_ends_well_whatever_happens_meanwhile(tmp_path: Path) -> None:
    judge_backfill(tmp_path, 30, least_kills=20)
