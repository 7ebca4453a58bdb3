"""The demo as a new user runs it: everything once, then nothing, then only what was lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.services.demo import content_hash
from news_platform_tests.cli.runner import Commands
from news_platform_tests.servers.demo import Demo

# Nothing is taken down in the sample world.
ASSETS = [step.asset for step in BUILD_ORDER if step.asset != "takedowns"]


def run_demo(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "news_platform.cli", "demo", "--root", str(root), *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"},
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def demo_root(demo_in_place: Demo) -> Path:
    assert list(demo_in_place.built) == ASSETS, "the first run builds every asset"
    return demo_in_place.root


def test_a_second_run_builds_nothing_and_changes_no_byte(demo_root: Path) -> None:
    assert list(demo_root.glob("**/*.xlsx")), "the demo ends with a workbook"
    before = content_hash(demo_root)
    assert "no byte changed" in run_demo(demo_root).stdout
    assert content_hash(demo_root) == before


LOSSES = {
    "raw_news": "news/raw/**/main_lang=de/**/part-0.parquet",
    "domain_buckets": "domain_buckets/**/*.jsonl.gz",
    "domain_catalog": "domain_catalog/part-0.parquet",
    # The last day of both, since what follows is built from the days before it, too.
    "domain_surveys": "domain_surveys/date=2025-11-03/part-0.parquet",
    "near_duplicates": "near_duplicates/date=2025-11-03/part-0.parquet",
}


def test_lost_outputs_are_built_again_and_nothing_else(demo_root: Path) -> None:
    before = content_hash(demo_root)
    for pattern in LOSSES.values():
        min(demo_root.glob(pattern)).unlink()
    assets = json.loads(run_demo(demo_root, "--json").stdout)["assets"]
    built = {row["asset"]: len(row["built"]) for row in assets if row["built"]}
    assert built == dict.fromkeys(LOSSES, 1)
    assert content_hash(demo_root) == before


def test_a_real_root_a_file_and_a_missing_dagster_home_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "root.json").write_text('{"format": 3, "contents": "real"}')
    (tmp_path / "taken").write_text("not a folder")
    demo, home = Commands(""), {"DAGSTER_HOME": str(tmp_path / "nowhere")}
    assert "holds the real world" in demo.error(tmp_path / "real", "demo")
    assert "taken" in demo.error(tmp_path / "taken", "demo")
    assert Commands("", home).error(tmp_path / "new", "demo").startswith("DAGSTER_HOME=")
