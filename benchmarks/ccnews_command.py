"""Measure `news-platform ccnews collect` as a command: the CPU time of all its processes.

The start of the command and of its worker is taken off: it is what the same command takes for the
first records of the file alone. Both sides run in turn, so that a busy machine slows both.
"""

import resource
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from benchmarks.ccnews_runs import NAME

# Records that a start reads: some pages, so that whatever is loaded once is loaded.
FIRST_RECORDS = 40


def command_share(small: Path, *, copies: int, turns: int) -> list[float]:
    """Return the share of the bare loop's speed that the command reaches, for each turn."""
    shares = []
    with tempfile.TemporaryDirectory(prefix="ccnews-bench-") as folder:
        warc, start = Path(folder) / "whole" / NAME, Path(folder) / "start" / NAME
        for path, body in (
            (warc, small.read_bytes() * copies),
            (start, first_members(small.read_bytes(), FIRST_RECORDS)),
        ):
            path.parent.mkdir()
            path.write_bytes(body)
        for turn in range(turns):
            bare = _bare_seconds(warc) - _bare_seconds(start)
            root = f"{folder}/root{turn}"
            full = _command_seconds(warc, f"{root}a") - _command_seconds(start, f"{root}b")
            print(f"bare {bare:.2f} s, command {full:.2f} s: {bare / full:.3f}", file=sys.stderr)
            shares.append(bare / full)
    return shares


def first_members(body: bytes, count: int) -> bytes:
    """Return the first gzip members of a file."""
    rest = body
    for _ in range(count):
        reader = zlib.decompressobj(wbits=31)
        reader.decompress(rest)
        rest = reader.unused_data
    return body[: len(body) - len(rest)]


def _bare_seconds(warc: Path) -> float:
    return _cpu_seconds([sys.executable, "-m", "benchmarks.ccnews_runs", "bare", str(warc)])


def _command_seconds(warc: Path, root: str) -> float:
    command = ["ccnews", "collect", str(warc), "--workers", "1", "--root", root, "--json"]
    return _cpu_seconds([sys.executable, "-m", "news_platform.cli", *command])


def _cpu_seconds(command: list[str]) -> float:
    """Return the CPU time of a process and of all that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
