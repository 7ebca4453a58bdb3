"""A disk that fills in the middle: a clear error, a whole store, and a re-run that goes through."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# One try: what was done, the outcome, the days seen with no room left and after the re-run.
_LINE = re.compile(r"(stage|build|compact) \d+ (full|done): (\d) days, then (\d) days")
# What a reader may see of each step, before it and after it.
_SEEN = {"stage": {2}, "build": {2, 3}, "compact": {3}}


def _tries(tmp_path: Path, which: str) -> list[tuple[str, str, int, int]]:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], check=False).returncode:
        pytest.skip("needs user namespaces to mount a file system")
    disk, scratch = tmp_path / "disk", tmp_path / "scratch"
    disk.mkdir()
    scratch.mkdir()
    program = f'"{sys.executable}" -m news_platform_tests.domain_store.full_disk'
    script = f'mount -t tmpfs -o size=6m none "{disk}" && {program} "{disk}" "{scratch}" {which}'
    command = [unshare, "-rm", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [(line, _LINE.fullmatch(line)) for line in done.stdout.splitlines()]
    assert [line for line, match in found if match is None] == []
    return [(m[1], m[2], int(m[3]), int(m[4])) for _, m in found if m]


@pytest.mark.parametrize(
    ("which", "steps"),
    [("root", {"stage", "build", "compact"}), ("scratch", {"stage"})],
    ids=["the disk of the root", "the disk of the scratch folder"],
)
def test_a_full_disk_is_told_hurts_no_reader_and_a_second_run_goes_through(
    tmp_path: Path, which: str, steps: set[str]
) -> None:
    tries = _tries(tmp_path, which)
    assert {step for step, outcome, _, _ in tries if outcome == "full"} == steps
    assert {step for step, outcome, _, _ in tries if outcome == "done"} == steps
    for step, _, during, after in tries:
        assert during in _SEEN[step]
        assert after == max(_SEEN[step])
