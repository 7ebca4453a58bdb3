"""Run every long fault test in a process of its own, resume where it ended, and write a report.

`make soak` runs all of them, and the shorter tests that prove a promise; `make soak PARTS="fuzz
takedowns"` those whose name contains a word. What has passed at the same commit is not run again.
`docs/soak.md` is the report of the last runs; `PARTS=--report` only writes it again.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).parents[1]
RESULTS = PROJECT / ".soak" / "results.jsonl"
REPORT = PROJECT / "docs" / "soak.md"
# A part may take a quarter of an hour on two idle cores; on a busy machine it gets twice that.
_SECONDS, _YEAR_SECONDS = 1_800, 7_200
_RUNS = "| part | result | seconds | at | commit |\n|---|---|---|---|---|\n"
_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| (\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
# Promises are proved by long tests and by shorter ones, which `make test` runs, too.
_ANY = ("-m", "soak or not soak", "-p", "no:xdist", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Result:
    """How one part ended."""

    part: str
    outcome: str
    seconds: float
    at: str
    commit: str


def list_parts() -> list[str]:
    """Return the ids of all long tests, in the order of their files, and of the promised others."""
    words = ("--collect-only", "-m", "soak", "-p", "no:xdist", "-p", "no:cacheprovider")
    found = _pytest(*words, timeout=600).stdout
    long = [line for line in found.splitlines() if "::" in line]
    promised = (f"news_platform_tests/{test}" for test in promised_tests())
    known = {part.partition("[")[0] for part in long}
    return [*long, *(test for test in dict.fromkeys(promised) if test not in known)]


def read_results(path: Path = RESULTS) -> Mapping[str, Result]:
    """Return the last result of each part."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {one.part: one for one in (Result(**json.loads(line)) for line in lines)}


def wanted(parts: Sequence[str], words: Sequence[str], done: Mapping[str, Result]) -> list[str]:
    """Return the parts that contain one of the words and have not passed at this commit."""
    commit = _commit()
    return [
        part
        for part in parts
        if (not words or any(word in part for word in words))
        and not (part in done and (done[part].outcome, done[part].commit) == ("passed", commit))
    ]


def run_part(part: str) -> Result:
    """Run one test; its output is beside the results."""
    seconds = _YEAR_SECONDS if "test_a_year_of_trouble" in part else _SECONDS
    environ = {
        "KEPT_DEMO": str(RESULTS.parent / f"demo-{_commit()}"),
        **os.environ,
        "SIMULATED_YEAR": str(RESULTS.parent / "year"),
    }
    started = time.monotonic()
    try:
        done = _pytest(*_ANY, "--timeout=0", part, timeout=seconds, environ=environ)
        outcome = {0: "passed", 5: "skipped"}.get(done.returncode, "failed")
        if outcome == "passed" and "1 skipped" in done.stdout:
            outcome = "skipped"
        shown = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        outcome, shown = f"not ended after {seconds} s", ""
    name = "".join(letter if letter.isalnum() else "_" for letter in part)
    (RESULTS.parent / f"{name[-120:]}.log").write_text(shown)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return Result(part, outcome, round(time.monotonic() - started, 1), now, _commit())


def promised_tests() -> list[str]:
    """Return the ids of the tests that the report's table of promises names."""
    return re.findall(r"`([\w/]+\.py::\w+)`", _report_head())


def write_report(results: Mapping[str, Result], path: Path = REPORT) -> None:
    """Write the table of all results below the promises, which are written by hand.

    Results of other machines stay: this one may have run a few parts only.
    """
    rows = {**reported_results(path), **results}
    path.write_text(_report_head() + "".join(_rows(rows)))


def reported_results(path: Path = REPORT) -> dict[str, Result]:
    """Return the results that the report has."""
    found = _ROW.findall(path.read_text()) if path.exists() else []
    parts = [f"news_platform_tests/{row[0]}".replace("\\|", "|") for row in found]
    rows = zip(parts, found, strict=True)
    return {part: Result(part, row[1], float(row[2]), *row[3:]) for part, row in rows}


def _report_head() -> str:
    return "".join(REPORT.read_text().partition(_RUNS)[:2])


def _rows(results: Mapping[str, Result]) -> Iterator[str]:
    for part, one in sorted(results.items()):
        name = part.removeprefix("news_platform_tests/").replace("|", "\\|")
        yield f"| `{name}` | {one.outcome} | {one.seconds:.0f} | {one.at} | {one.commit} |\n"


def _pytest(
    *words: str, timeout: float, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=PROJECT,
        env=dict(environ) if environ is not None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def _commit() -> str:
    """Return the commit of the tree; the report itself may have changed since."""
    name = _git("describe", "--always")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/soak.md")
    return f"{name}-dirty" if changed else name or "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main(words: Sequence[str]) -> None:
    """Run what is wanted, one after the other; fail if a part failed or did not end."""
    RESULTS.parent.mkdir(exist_ok=True)
    results = dict(read_results())
    if list(words) == ["--report"]:
        write_report(results)
        return
    bad = 0
    for part in wanted(list_parts(), words, results):
        result = results[part] = run_part(part)
        with RESULTS.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        write_report(results)
        bad += result.outcome not in ("passed", "skipped")
        print(f"{result.outcome:<10} {result.seconds:>8.1f} s  {part}", flush=True)  # noqa: T201
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
