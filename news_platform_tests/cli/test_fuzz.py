"""A fuzz of every command: one line, the right exit code, no traceback, no hang, no stray file."""

import contextlib
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from news_platform_tests.cli.fuzz import Box, lines
from news_platform_tests.cli.fuzz_worker import Outcome

PROJECT = Path(__file__).parent.parent.parent
_SHORT, _FULL, _PROCESSES = 100, 2_000, 2
# Native code that does not return to the interpreter cannot be interrupted, only killed.
_KILL_SECONDS = 90.0


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Return a new box, which is the working, home and temporary folder of the lines."""
    return Box.create(tmp_path / "box")


def _environ(box: Box) -> dict[str, str]:
    """Return an environment without settings of ours and without cloud accounts."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    return kept | {
        "HOME": str(box.folder / "home"),
        "TMPDIR": str(box.folder / "tmp"),
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Nothing leaves this machine: no crawl on the web, and no search for cloud accounts.
        "NEWS_PLATFORM_CRAWL_URL": str(box.folder / "inputs/folder"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_GCE_CHECK": "true",
    }


def _outcomes(box: Box, *, seed: int, count: int) -> list[Outcome]:
    """Return how every line ended; if the worker dies or hangs, its line is the finding."""
    words = [str(box.folder), str(seed), str(count)]
    reports = box.folder.with_name("reports.jsonl")
    with reports.open("w") as out, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "news_platform_tests.cli.fuzz_worker", *words],
            stdout=out,
            cwd=box.folder / "cwd",
            env=_environ(box),
            timeout=_KILL_SECONDS + count,
            check=False,
        )
    found = [Outcome(**json.loads(line)) for line in reports.read_text().splitlines()]
    for line in islice(lines(box, seed=seed, count=count), len(found), None):
        pytest.fail(f"the worker did not end this line: {line}")
    return found


def _outside(box: Box) -> dict[str, int]:
    """Return what lies outside the roots and belongs to no --output, with the sizes of files."""
    kept = (str(box.folder / "roots"), str(box.folder / "tmp/out."))
    paths = (path for path in box.folder.rglob("*") if not str(path).startswith(kept))
    return {str(path): -1 if path.is_dir() else path.lstat().st_size for path in paths}


def _problem(done: Outcome) -> str | None:
    """Return what is wrong with how a line ended."""
    if done.crash:
        return f"crashed: {done.crash}"
    if done.strays:
        return f"wrote outside the root: {done.strays}"
    if "Traceback" in done.stderr or done.seconds > done.max_seconds:
        return f"traceback, or {done.seconds:.1f} s"
    if done.code not in (0, 1, 2):
        return f"exit code {done.code!r}"
    if done.code == 0:
        return "succeeded with a wrong value" if done.must_fail else _json_problem(done)
    last = done.stderr.strip().splitlines()[-1:] or [""]
    if not last[0].startswith(("error: ", "Error: ")):
        return "failed without an error line"
    return None


def _json_problem(done: Outcome) -> str | None:
    try:
        json.loads(done.stdout if "--json" in done.words else "{}")
    except ValueError:
        return "printed no JSON document"
    return None


def _fuzz(box: Box, *, seed: int, count: int) -> None:
    before = _outside(box)
    found = [
        f"{problem}: {[word[:60] for word in done.words]}: {done.stderr[-300:]}"
        for done in _outcomes(box, seed=seed, count=count)
        if (problem := _problem(done))
    ]
    assert not found, f"{len(found)} of {count} lines:\n" + "\n".join(found)
    assert _outside(box) == before


def test_no_line_of_any_command_crashes_hangs_or_writes_elsewhere(box: Box) -> None:
    _fuzz(box, seed=14, count=_SHORT)


@pytest.mark.soak
def test_no_line_of_two_thousand_crashes_hangs_or_writes_elsewhere(box: Box) -> None:
    _fuzz(box, seed=2026, count=_FULL)


def test_lines_end_alike_as_processes_of_their_own(box: Box) -> None:
    chosen = [line for line in lines(box, seed=5, count=400) if "\udcff" in "".join(line.words)]
    for line in chosen[:_PROCESSES]:
        done = subprocess.run(
            [sys.executable, "-m", "news_platform.cli", *map(os.fsencode, line.words)],
            capture_output=True,
            timeout=30,
            check=False,
            cwd=box.folder / "cwd",
            env=_environ(box),
        )
        assert done.returncode in (1, 2), line
        assert b"Traceback" not in done.stderr, (line, done.stderr)
