"""The steps of docs/extending.md, applied to a copy of the package, give a whole dataset."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from news_platform_tests.servers.demo import Demo

PROJECT = Path(__file__).parent.parent.parent
PAGE = PROJECT / "docs" / "extending.md"
STEP = re.compile(r"^`([\w/]+\.py)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_FILES = 8
# The copy has what the steps and the commands need; the rest is as large as it is useless here.
COPIED = (
    "news_platform",
    "news_platform_tests",
    "docs",
    "pyproject.toml",
    "README.md",
    "benchmarks/results",
)

LOOK = """
import json
import runpy
from datetime import UTC, datetime, timedelta
from click.testing import CliRunner
from news_platform.api import open_root
from news_platform.cli.main import main
from news_platform.composition.engines import engine_of
from news_platform.datasets.registry import DATASETS
from news_platform.definitions import build_definitions
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.runs import JOB_ASSETS
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.objects.store import open_store
from news_platform.storage.retention import apply_retention, expiring_units

def call(*words):
    done = CliRunner().invoke(main, [*words, "--root", "ROOT", "--json"])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return json.loads(done.stdout)

def count(condition):
    return open_root("ROOT").sql(f"select count(*) from headlines where {condition}").row(0)[0]

defs = build_definitions(Resources(Settings(root="no-such-root", sample=False)))
spec = next(it for it in defs.resolve_all_asset_specs() if it.key.to_user_string() == "headlines")
store, dataset = open_store("ROOT"), DATASETS["headlines"]
engine = engine_of(store, dataset)
url, title = open_root("ROOT").sql("select url, title from headlines order by url").row(0)
explained = call("explain", url)
request = ("takedown", "add", url, "--reason", "asked")
found = {
    "deps": sorted(dep.asset_key.to_user_string() for dep in spec.deps),
    "group": spec.group_name,
    "late": str(spec.metadata["no_freshness_policy"]),
    "rule": "headlines" in [rule.asset for rule in BUILD_ORDER],
    "job": "build_headlines" in JOB_ASSETS,
    "sensor": "follow_headlines" in [sensor.name for sensor in defs.sensors],
    "rows": count("true"),
    "units": sorted(engine.units()),
    "status": "headlines" in str(call("status")),
    "explain": [it["text"] for it in explained["evidence"] if it["dataset"] == "headlines"],
    "title": title,
    "kept": [it for it in call("retention", "plan") if it["dataset"] == "headlines"],
    "found": sum(call(*request, "--dry-run")["places"].get("headlines", {}).values()),
}
call(*request)
found["removed"] = call("takedown", "apply")["removed"]["headlines"]["rows"]
found["verified"] = call("takedown", "verify")["findings"]
found["left"] = count(f"url = '{url}'")
later = datetime.now(UTC) + timedelta(days=dataset.keep + 1)
old = expiring_units(engine, keep_days=dataset.keep, now=later)
found["expired"] = sorted(apply_retention(store, dataset.name, old).objects)
found["files"] = sorted(engine.files())
runpy.run_path("docs/generate.py", run_name="__main__")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def steps() -> Mapping[str, str]:
    return dict(STEP.findall(PAGE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, steps: Mapping[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("extended")
    for name in COPIED:
        source = PROJECT / name
        ignore = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    for path, text in steps.items():
        (folder / path).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def demo(finished_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return finished_demo.copy(tmp_path_factory.mktemp("demo") / "copy")


def _run(package: Path, demo: Demo, *args: str) -> str:
    environ = {**os.environ, **demo.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, *args],
        cwd=package,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_dataset_takes_few_files_and_none_that_exists(steps: Mapping[str, str]) -> None:
    assert 3 <= len(steps) <= MOST_FILES
    assert [path for path in steps if (PROJECT / path).exists()] == []


def test_the_demo_builds_the_new_dataset_and_nothing_else(package: Path, demo: Demo) -> None:
    command = ("-m", "news_platform.cli", "demo", "--root", str(demo.root), "--json")
    built = {
        row["asset"]: row["built"]
        for row in json.loads(_run(package, demo, *command))["assets"]
        if row["built"]
    }
    assert built == {"headlines": ["2025-11-01", "2025-11-02", "2025-11-03"]}
    looked = _run(package, demo, "-c", LOOK.replace("ROOT", str(demo.root)))
    found = json.loads(looked.splitlines()[-1])
    days = ["2025-11-01", "2025-11-02", "2025-11-03"]
    assert found["deps"] == ["crawl_articles", "feed_articles"]
    assert found["group"] == "corpus" and "newest_day_is_built" in found["late"]
    assert found["rule"] and found["job"] and found["sensor"] and found["status"]
    assert found["rows"] > 20 and found["units"] == days
    assert found["explain"] == [f"Its headline is {found['title']}.".replace("_", " ")]
    assert [it["objects"] for it in found["kept"]] == [0]
    assert found["found"] == found["removed"] == 1
    assert found["verified"] == [] and found["left"] == 0
    # Three units are few enough to go at once.
    assert found["expired"] == days and found["files"] == []
    dictionary = (package / "docs" / "data_dictionary.md").read_text(encoding="utf-8")
    assert "## headlines" in dictionary and "| title | String | headline |" in dictionary


def test_the_new_tests_pass(package: Path, demo: Demo, steps: Mapping[str, str]) -> None:
    tests = [path for path in steps if path.startswith("news_platform_tests/")]
    assert tests
    _run(package, demo, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
