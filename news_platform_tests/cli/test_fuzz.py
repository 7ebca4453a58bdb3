"""A fuzz of every command: one line, the right exit code, no traceback, no hang, no stray file."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from news_platform_tests.cli.fuzz import Box, commands, lines
from news_platform_tests.cli.fuzz_worker import Outcome

PROJECT = Path(__file__).parent.parent.parent
_SHORT, _FULL, _PROCESSES = 120, 2_000, 6
# Native code that does not return to the interpreter cannot be interrupted, only killed. The first
# line waits for the imports too.
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


def _outcomes(box: Box, *, seed: int, count: int) -> Iterator[Outcome]:
    """Yield how every line ended; a worker that dies is replaced, and its line is the finding."""
    number = 0
    while number < count:
        words = [str(box.folder), str(seed), str(count), str(number)]
        worker = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "news_platform_tests.cli.fuzz_worker", *words],
            stdout=subprocess.PIPE,
            cwd=box.folder / "cwd",
            env=_environ(box),
            text=True,
        )
        with worker:
            assert worker.stdout is not None
            while report := _next_report(worker):
                number += 1
                yield Outcome(**json.loads(report))
        if number < count:
            (line,) = islice(lines(box, seed=seed, count=count), number, number + 1)
            number += 1
            crash = f"the worker ended with {worker.returncode}"
            yield Outcome(line.words, line.must_fail, None, "", "", 0.0, 0.0, crash, [])


def _next_report(worker: "subprocess.Popen[str]") -> str:
    with _killed_after(worker, _KILL_SECONDS):
        assert worker.stdout is not None
        return worker.stdout.readline()


@contextmanager
def _killed_after(worker: "subprocess.Popen[str]", seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, worker.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _outside(box: Box) -> dict[str, int]:
    """Return what lies outside the roots and belongs to no --output, with the sizes of files."""
    # While this looks, the next line runs, with temporary files; they must be gone at the end.
    kept = (str(box.folder / "roots"), str(box.folder / "tmp/"))
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
    found = []
    ended = 0
    for done in _outcomes(box, seed=seed, count=count):
        ended += 1
        if problem := _problem(done):
            found.append(f"{problem}: {[word[:60] for word in done.words]}: {done.stderr[-300:]}")
        if (after := _outside(box)) != before:
            found.append(f"left {after.keys() ^ before.keys()}: {done.words}")
            before = after
    assert not found, f"{len(found)} of {count} lines:\n" + "\n".join(found)
    assert ended == count
    left = [path.name for path in (box.folder / "tmp").iterdir()]
    assert [name for name in left if not name.startswith("out.")] == []


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


def test_every_command_has_its_turn(box: Box) -> None:
    asked = list(lines(box, seed=1, count=_SHORT))
    asked_for = {line.words[: len(path)] for line in asked for path, _ in commands()}
    assert {path for path, _ in commands()} <= asked_for


_STRAYING = """
import os, pathlib, socket, sqlite3, sys
from news_platform_tests.cli.fuzz import Box, Line
from news_platform_tests.cli.fuzz_worker import Watch

box = Box(pathlib.Path(sys.argv[1]))
root = box.root(0)
root.mkdir(parents=True)
stray = box.folder / "home"
watch = Watch(box)
sys.addaudithook(watch)
with watch.watching(Line(("x", "--root", str(root)), False)):
    (root / "inside").write_text("")
    assert watch.strays == []
    (stray / "a").write_text("")
    os.rename(stray / "a", stray / "b")
    os.symlink("x", stray / "c")
    folder = os.open(stray, os.O_RDONLY)
    os.mkdir("d", dir_fd=folder)
    os.remove(stray / "b")
    sqlite3.connect(stray / "e").close()
    (stray / "c").is_symlink()
    for address in ("example.org", "192.0.2.1", b"example.org"):
        try:
            socket.getaddrinfo(address, 80)
        except socket.gaierror as error:
            assert "does not leave this machine" in str(error)
        else:
            raise AssertionError(address)
    socket.getaddrinfo("localhost", 80)
print([line.replace(str(stray), "") for line in watch.strays])
"""


def test_the_watch_of_the_fuzz_sees_what_strays(box: Box) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STRAYING, str(box.folder)],
        capture_output=True,
        text=True,
        check=False,
        env=_environ(box),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(
        ["open /a", "os.rename /a", "os.rename /b", "os.symlink /c", "os.mkdir /d", "os.remove /b",
         "sqlite3.connect /e"]
    )  # fmt: skip
