"""Processes of a cluster start in their own groups and end with their children."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.processes import Process
from news_platform_tests.cluster.live import DEPLOY

# A parent that starts a child, prints both ids and sleeps; it would leave the child behind.
_FAMILY = (
    "import os, subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(os.getpid(), child.pid, flush=True); time.sleep(60)"
)


def _is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.fixture
def family(tmp_path: Path) -> Process:
    command = (sys.executable, "-c", _FAMILY)
    return Process("family", command, os.environ, tmp_path / "family.log")


def _ids(family: Process) -> list[int]:
    deadline = time.monotonic() + 30
    while not family.log.exists() or not family.log.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [int(part) for part in family.log.read_text().split()]


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_a_process_ends_with_its_children(ending: str, family: Process) -> None:
    family.start()
    ids = _ids(family)
    getattr(family, ending)()
    deadline = time.monotonic() + 10
    while any(_is_alive(pid) for pid in ids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_is_alive(pid) for pid in ids)


def test_a_process_ends_when_its_starter_is_killed(family: Process, tmp_path: Path) -> None:
    program = (
        "import os, sys, time; from pathlib import Path; from deploy.processes import Process;"
        f"Process('family', {family.command!r}, os.environ, Path({str(family.log)!r})).start();"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=DEPLOY.parent) as starter:
        ids = _ids(family)
        starter.kill()
    deadline = time.monotonic() + 10
    while any(_is_alive(pid) for pid in ids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_is_alive(pid) for pid in ids)
