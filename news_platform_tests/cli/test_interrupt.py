"""A command that takes long shows it; Ctrl-C ends it with one line within two seconds."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import open_store

# DuckDB counts for minutes, in one call that runs no Python; Python sleeps in the second.
BUSY = {
    "native code": "sum(hash(a.range)) from range(1000000000000) a",
    "an answer to come": "count(*) from range(1000000) a, range(1000000) b where a.range < b.range",
}


@pytest.mark.parametrize("query", BUSY.values(), ids=BUSY)
def test_an_interrupted_command_says_so_in_one_line_and_soon(tmp_path: Path, query: str) -> None:
    claim_root(open_store(str(tmp_path)), sample=False)
    words = [sys.executable, "-m", "news_platform.cli", "sql", f"select {query}", "--root"]
    with subprocess.Popen([*words, str(tmp_path)], stderr=subprocess.PIPE, text=True) as running:
        # Until it uses a processor for the query: before, it imports and opens.
        while _cpu_seconds(running.pid) < 2.5:
            assert running.poll() is None
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, error = running.communicate(timeout=30)
    assert error.strip() == "stopped; run again to go on"
    assert running.returncode == 130
    # Two seconds on an idle machine.
    assert time.monotonic() - began < 5


def test_a_terminal_shows_for_how_long_a_silent_command_has_been_at_work(tmp_path: Path) -> None:
    claim_root(open_store(str(tmp_path)), sample=False)
    words = [sys.executable, "-m", "news_platform.cli", "sql", f"select {BUSY['native code']}"]
    ours, theirs = pty.openpty()
    with subprocess.Popen([*words, "--root", str(tmp_path)], stderr=theirs) as running:
        shown = os.read(ours, 1024).decode()
        running.kill()
    os.close(ours)
    os.close(theirs)
    assert shown == "\r\x1b[K… 3 s\r"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
