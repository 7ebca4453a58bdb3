"""How long a person waits: for the definitions to load, and for `dev` to answer."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from news_platform_tests.servers.dagster_ui import (
    PROJECT,
    DagsterUi,
    free_port,
    prepare_home,
    stop_group,
)

IMPORT_CPU_SECONDS = 5.0
# On an idle machine; the tests' own neighbours may take two thirds of ours.
READY_SECONDS = 30.0
UNDER_LOAD = 3


def test_the_definitions_load_within_five_seconds_and_without_the_clouds(tmp_path: Path) -> None:
    code = (
        "import sys, time, news_platform.definitions\n"
        "assert not {'dagster_aws', 'dagster_gcp'} & set(sys.modules)\n"
        "print(time.process_time())"
    )
    env = {**os.environ, "NEWS_PLATFORM_ROOT": str(tmp_path / "root")}
    words = [sys.executable, "-W", "ignore", "-c", code]
    took = min(
        float(subprocess.run(words, env=env, cwd=PROJECT, capture_output=True, check=True).stdout)
        for _ in range(2)  # the first may have to write bytecode
    )
    assert took < IMPORT_CPU_SECONDS


def test_dev_answers_within_half_a_minute(tmp_path: Path) -> None:
    prepare_home(tmp_path / "home")
    port = free_port()
    environ = {
        "DAGSTER_HOME": str(tmp_path / "home"),
        "NEWS_PLATFORM_ROOT": str(tmp_path / "root"),
        "NEWS_PLATFORM_SAMPLE": "1",
    }
    started = time.monotonic()
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "news_platform.cli", "dev", "--port", str(port)],
            cwd=PROJECT,
            env={**os.environ, **environ},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while not _answers(f"http://127.0.0.1:{port}/server_info"):
            log_text = (tmp_path / "log").read_text(errors="replace")
            assert process.poll() is None, log_text
            assert time.monotonic() - started < READY_SECONDS * UNDER_LOAD, log_text
            time.sleep(0.2)
        ui = DagsterUi(f"http://127.0.0.1:{port}", tmp_path / "home")
        asked = ui.query("{ workspaceOrError { ... on Workspace { locationEntries { name } } } }")
        assert asked == {"workspaceOrError": {"locationEntries": [{"name": "news_platform"}]}}
    finally:
        stop_group(process)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except (urllib.error.URLError, OSError):
        return False
