"""The incidents of docs/runbook.md, ended by the commands that the page gives."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from news_platform.operations.checks import Diagnosis, Health
from news_platform.operations.doctor import examine
from news_platform_tests.operations.conftest import Site
from news_platform_tests.servers.dagster_ui import PROJECT
from news_platform_tests.servers.demo import Demo

RUNBOOK = PROJECT / "docs" / "runbook.md"


def _commands(title: str, **values: str) -> list[list[str]]:
    """Return the commands of a section, with these values for its placeholders."""
    section = RUNBOOK.read_text().partition(f"### {title}\n")[2].partition("\n#")[0]
    lines = [line.strip() for line in section.splitlines() if line.startswith("      ")]
    for name, value in values.items():
        lines = [re.sub(rf"\b{name}\b", value, line) for line in lines]
    assert lines, title
    return [line.split() for line in lines]


def _run(words: list[str], environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "news_platform.cli", *words[1:]]
    command = program if words[0] == "news-platform" else words
    return subprocess.run(command, env=dict(environ), capture_output=True, text=True, timeout=600)


def _findings(site: Site) -> dict[str, Diagnosis]:
    started = time.monotonic()
    found = {one.check: one for one in examine(site.resources())}
    assert time.monotonic() - started < 60, "ten seconds on an idle machine"
    return found


def test_a_locked_ledger_is_found_with_the_process_that_holds_it(site: Site) -> None:
    ledger = site.folder / "root/ledger.sqlite"
    program = (
        "import sqlite3, time;"
        f"c = sqlite3.connect({str(ledger)!r}, isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
        found = _findings(site)["ledger"]
        assert found.state is Health.WRONG
        assert f"process {holder.pid} (" in found.meaning
        assert "'A locked ledger' in docs/runbook.md" in found.action
        for words in _commands("A locked ledger", PID=str(holder.pid)):
            _run(words, {**os.environ, **site.environ})
        assert holder.wait(10) != 0
    assert _findings(site)["ledger"].state is Health.OK


def test_a_sensor_that_fails_is_found_and_its_next_good_tick_ends_it(site: Site) -> None:
    site.tick("follow_domain_buckets", error="the code is broken")
    found = _findings(site)["sensors"]
    assert found.state is Health.WRONG
    assert "follow_domain_buckets failed: the code is broken" in found.meaning
    assert "'A sensor that fails' in docs/runbook.md" in found.action
    environ = {**os.environ, **site.environ}
    (doctor, status) = [_run(words, environ) for words in _commands("A sensor that fails")]
    assert doctor.returncode == 1 and "the code is broken" in doctor.stdout
    assert status.returncode == 0 and "domain_buckets" in status.stdout
    site.tick("follow_domain_buckets")
    assert _findings(site)["sensors"].state is Health.OK


@pytest.mark.soak
def test_a_corrupt_day_is_found_and_collected_again(finished_demo: Demo, tmp_path: Path) -> None:
    demo = finished_demo.copy(tmp_path / "demo")
    file = max((demo.root / "news/raw").rglob("*.parquet"), key=lambda path: path.stat().st_size)
    day = "-".join(part.partition("=")[2] for part in file.parts if "=" in part)[:10]
    whole = file.read_bytes()
    file.unlink()  # a copy has links to the files of the other demo
    file.write_bytes(whole[: len(whole) // 2])
    found = _doctor(demo)["days"]  # before any check has seen it
    assert found["state"] == "wrong" and day in found["meaning"]
    assert "'A corrupt day'" in found["action"]
    collect, adopt = _commands("A corrupt day", DAY=day)
    assert _run(adopt, demo.environ).returncode == 0
    seen = _doctor(demo)["checks"]
    assert seen["state"] == "wrong" and "raw_news, rows_equal_markers" in seen["meaning"]
    assert day in seen["meaning"] and "'A corrupt day'" in seen["action"]
    done = _run(collect, demo.environ)
    assert done.returncode == 0, done.stderr
    assert _run(adopt, demo.environ).returncode == 0
    healed = _doctor(demo)
    assert healed["days"]["state"] == "ok"
    assert "raw_news" not in healed["checks"]["meaning"]


def _doctor(demo: Demo) -> dict[str, dict[str, str]]:
    done = _run(["news-platform", "doctor", "--json"], demo.environ)
    return {one["check"]: one for one in json.loads(done.stdout)["findings"]}
