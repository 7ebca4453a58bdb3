"""The demo as a new user runs it: everything once, then nothing, then only what was lost."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from news_platform.cli.demo import content_hash
from news_platform.defs.graph import BUILD_ORDER
from news_platform_tests.servers.demo import Demo

# Nothing is taken down in the sample world.
ASSETS = [step.asset for step in BUILD_ORDER if step.asset != "takedowns"]


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the demo command."""

    code: int
    stdout: str
    stderr: str

    @property
    def built(self) -> Mapping[str, list[str]]:
        document = json.loads(self.stdout)
        return {row["asset"]: row["built"] for row in document["assets"] if row["built"]}


def run_demo(root: Path, *words: str, **environ: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "news_platform.cli", "demo", "--root", str(root), *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**{k: v for k, v in os.environ.items() if k != "DAGSTER_HOME"}, **environ},
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def demo_root(demo_in_place: Demo) -> Path:
    assert list(demo_in_place.built) == ASSETS, "the first run builds every asset"
    return demo_in_place.root


def test_a_second_run_builds_nothing_and_changes_no_byte(demo_root: Path) -> None:
    before = content_hash(demo_root)
    second = run_demo(demo_root)
    assert second.code == 0
    assert "no byte changed" in second.stdout
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
    again = run_demo(demo_root, "--json")
    assert again.code == 0, again.stderr
    assert {asset: len(built) for asset, built in again.built.items()} == dict.fromkeys(LOSSES, 1)
    assert content_hash(demo_root) == before


def test_the_demo_ends_with_a_workbook_and_answers_for_a_domain(demo_root: Path) -> None:
    assert list(demo_root.glob("**/*.xlsx"))
    done = subprocess.run(
        [sys.executable, "-m", "news_platform.cli", "store", "get", "meridian.example",
         "--root", str(demo_root), "--json"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "meridian.example" in done.stdout


def test_a_real_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root.json").write_text('{"format": 3, "contents": "real"}')
    refused = run_demo(tmp_path)
    assert refused.code == 2
    assert refused.stderr.count("\n") == 1
    assert "holds the real world" in refused.stderr


def test_a_root_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("not a folder")
    refused = run_demo(tmp_path / "taken")
    assert refused.code in (1, 2)
    assert "Traceback" not in refused.stderr
    assert "taken" in refused.stderr


def test_a_missing_dagster_home_is_one_clear_line(tmp_path: Path) -> None:
    refused = run_demo(tmp_path / "root", DAGSTER_HOME=str(tmp_path / "nowhere"))
    assert refused.code == 2
    assert refused.stderr.splitlines()[-1].startswith("error: DAGSTER_HOME=")
