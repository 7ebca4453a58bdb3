"""Processes of a cluster start in their own groups and end with their children."""

import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import psutil
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
    _wait_until_gone(ids)


def _wait_until_gone(ids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(_is_alive(pid) for pid in ids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_ends_when_its_starter_is_killed(family: Process, tmp_path: Path) -> None:
    program = (
        "import os, sys, time; from pathlib import Path; from deploy.processes import Process;"
        f"Process('family', {family.command!r}, os.environ, Path({str(family.log)!r})).start();"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=DEPLOY.parent) as starter:
        ids = _ids(family)
        starter.kill()
    _wait_until_gone(ids)


@pytest.mark.parametrize(
    "server",
    ["postgres.postgres_server()", "redis.redis_server(FOLDER)", "s3.s3_process()"],
    ids=["PostgreSQL", "Redis", "S3"],
)
def test_a_server_ends_when_its_starter_is_killed(server: str, tmp_path: Path) -> None:
    program = (
        "import time; from pathlib import Path;"
        "from news_platform_tests.emulators import postgres, redis, s3;"
        f"FOLDER = Path({str(tmp_path)!r}); server = {server};"
        "print(server.__enter__(), flush=True); time.sleep(300)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=DEPLOY.parent, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        url = unquote(starter.stdout.readline().decode())
        ids = [one.pid for one in psutil.Process(starter.pid).children(recursive=True)]
        if "postgresql" in url:  # it is nobody's child
            lock = Path(url.partition("host=")[2].strip()) / "postmaster.pid"
            ids.append(int(lock.read_text().split()[0]))
        assert ids and all(map(_is_alive, ids))
        starter.kill()
    _wait_until_gone(ids)
