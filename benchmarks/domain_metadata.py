"""Benchmark the domain survey: quality of robots.txt and sitemaps, and the cost of a survey.

The survey and a bare aiohttp loop send the same eight requests to each of 5,000 loopback hosts, in
turn, each in a process of its own; the CPU of the server counts for neither. The bare loop stores
nothing, so the survey runs twice: once throwing the files of its domains away, once storing them.
A last run surveys 20,000 hosts, of which 5 % are hostile, and measures the time.
"""

import json
import os
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import RESULTS_FOLDER, robots, sitemaps
from benchmarks.survey_scale import HOSTS
from news_platform.settings import load_settings

DOMAINS = 5000
ROUNDS = 3
RESULTS = RESULTS_FOLDER / "domain_metadata.json"


@contextmanager
def loopback_sites() -> Iterator[int]:
    """Run the sites in a separate process; yield their port."""
    program = [sys.executable, "-m", "benchmarks.loopback_sites"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as sites:
        assert sites.stdout is not None
        try:
            yield int(sites.stdout.readline())
        finally:
            sites.terminate()


def run(kind: str, port: int) -> tuple[float, float]:
    """Return the CPU seconds of one run, and how many of them storing took."""
    program = [sys.executable, "-m", "benchmarks.survey_runs", kind, str(port), str(DOMAINS)]
    done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
    spent, storing = json.loads(done.stdout)
    return spent, storing


def measure_survey() -> dict[str, object]:
    """Return the cost of a survey relative to the bare loop, and the most requests per host."""
    bare, unstored, whole, storing = [], [], [], []
    with loopback_sites() as port:
        for _ in range(ROUNDS):
            bare.append(run("bare", port)[0])
            unstored.append(run("unstored", port)[0])
            spent, stored = run("survey", port)
            whole.append(spent)
            storing.append(stored)
        most = int(urllib.request.urlopen(f"http://127.0.0.1:{port}/most").read())
    return {
        "domains": DOMAINS,
        "bare_cpu_ms_per_domain": _milliseconds(bare),
        "survey_unstored_cpu_ms_per_domain": _milliseconds(unstored),
        "survey_cpu_ms_per_domain": _milliseconds(whole),
        "of_which_storing_cpu_ms": _milliseconds(storing),
        "survey_unstored_to_bare": _ratio(unstored, bare),
        "survey_to_bare": _ratio(whole, bare),
        "most_requests_at_one_host": most,
    }


def measure_scale() -> dict[str, object]:
    """Return the rate of a survey of many hosts, some of them hostile."""
    with loopback_sites() as port:
        program = [sys.executable, "-m", "benchmarks.survey_scale", str(port), str(HOSTS)]
        done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def _milliseconds(seconds: list[float]) -> float:
    return round(statistics.median(seconds) / DOMAINS * 1000, 2)


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 2)


def main() -> None:
    """Measure everything, print one table and store the numbers."""
    data = load_settings(os.environ).bench_data
    figures = {"survey": measure_survey(), "scale": measure_scale()}
    if data is not None:
        figures |= {"robots": robots.measure(Path(data)), "sitemaps": sitemaps.measure(Path(data))}
    for part, values in figures.items():
        for name, value in values.items():
            print(f"{part:<10}{name:<34}{value!s:>12}")
    if data is not None:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
