"""Find processes of the system and wait for their end."""

import time

import psutil

# Workers that existed before the test started.
FOREIGN: set[int] = set()


def own_children() -> list[int]:
    """Return the ids of the pool workers below this process that started since the test began."""
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if child.pid not in FOREIGN and _is_worker(child)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "news_platform.isolation.worker" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def assert_gone(pids: list[int], *, within_seconds: float = 5.0) -> None:
    """Wait until all of the processes have ended; fail if one has not."""
    until = time.monotonic() + within_seconds
    while living := [pid for pid in pids if _lives(pid)]:
        assert time.monotonic() < until, f"still alive: {living}"
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    # A killed orphan stays a zombie if no init process reaps it, as in many containers.
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
