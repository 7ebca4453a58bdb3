"""One finished demo for all tests of a session that look at it, also over several workers."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest

from news_platform_tests.emulators.sharing import alone, shared_folder
from news_platform_tests.servers.dagster_ui import PROJECT, prepare_home


@dataclass(frozen=True, slots=True)
class Demo:
    """A sample root that was built by `news-platform demo`, and the Dagster home of those runs."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "data-demo"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def built(self) -> Mapping[str, list[str]]:
        """Return the partitions that the first run built, by asset."""
        document = json.loads((self.folder / "demo.json").read_text())
        return {row["asset"]: row["built"] for row in document["assets"] if row["built"]}

    @property
    def reads(self) -> Mapping[str, list[str]]:
        """Return the datasets that the builds of each asset read."""
        found: dict[str, list[str]] = json.loads((self.folder / "reads.json").read_text())
        return found

    @property
    def environ(self) -> Mapping[str, str]:
        """Return what a process needs to work on this demo."""
        return {
            **os.environ,
            "DAGSTER_HOME": str(self.home),
            "NEWS_PLATFORM_ROOT": str(self.root),
            "NEWS_PLATFORM_SAMPLE": "1",
        }

    def copy(self, folder: Path) -> "Demo":
        """Return a copy that a test may change by replacing files, as the platform does.

        Data files are links: a copied file would have another ETag, and its followers be stale.
        """
        # Tests that read a database beside this one make and remove such files.
        passing = shutil.ignore_patterns("*-shm", "*-wal")
        shutil.copytree(
            self.folder, folder, symlinks=True, ignore=passing, copy_function=_link_or_copy
        )
        return Demo(folder)


def _link_or_copy(source: str, target: str) -> None:
    """Link a file; copy what is changed in place, databases and logs."""
    if "/data-demo/" in source and ".sqlite" not in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def report_a_red_day(demo: Demo, day: str) -> None:
    """Report a night in which one day of the crawl is damaged and the others are sound."""
    # Imported here: this module is a plugin of every test session, and Dagster takes seconds.
    import dagster as dg

    from news_platform.defs.ccnews_checks import rows_equal_markers
    from news_platform.defs.checks import Reporter, evaluate_all
    from news_platform.resources import open_resources
    from news_platform.settings import load_settings

    wrong = replace(
        rows_equal_markers,
        evaluate=lambda _resources, key: dg.AssetCheckResult(passed=key != day),
        built=lambda _resources: ["2025-11-01", "2025-11-02", "2025-11-03"],
    )
    resources = open_resources(load_settings(demo.environ))
    with dg.DagsterInstance.from_config(str(demo.home)) as instance:
        reporter = Reporter(instance, str(uuid4()))
        evaluate_all([wrong], resources, reporter, is_time_left=lambda: True, log=lambda _: None)


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Return the demo after its first run; tests read it, or change a copy."""
    shared = _kept_folder() or shared_folder(tmp_path_factory)
    demo = Demo(shared / "finished-demo")
    with alone(shared / "finished-demo.lock"):
        if not demo.folder.exists():
            first = Demo(shared / "first-demo")
            _run(first)  # goes on where a session that was ended had stopped
            # A copy that was interrupted is not taken for a finished one.
            shutil.rmtree(shared / "unfinished-demo", ignore_errors=True)
            first.copy(shared / "unfinished-demo").folder.rename(demo.folder)
    return demo


@pytest.fixture(scope="session")
def demo_in_place(finished_demo: Demo) -> Demo:
    """Return the demo where it ran, for the one module that runs it again.

    Markers name the files they were made from, so that another place is another input.
    """
    assert finished_demo.folder.exists()
    return Demo(finished_demo.folder.parent / "first-demo")


def _kept_folder() -> Path | None:
    """Return the folder that sessions of long runs have in common: each would build the same."""
    folder = Path(os.environ["KEPT_DEMO"]) if "KEPT_DEMO" in os.environ else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(demo: Demo) -> None:
    prepare_home(demo.home)
    words = ["-m", "news_platform_tests.servers.recorded_demo", str(demo.folder / "reads.json")]
    words += ["demo", "--root", str(demo.root), "--json"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=PROJECT,
        env=dict(demo.environ),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (demo.folder / "demo.json").write_text(done.stdout)
