"""What all workers of a test session share: a folder, and one lock per thing that is made once."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def session_pid() -> int:
    """Return the process that outlives all workers: pytest's own, or that of xdist."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def worker_name() -> str:
    """Return a name that no other worker of the session has."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this session have in common."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock that no other process holds."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
