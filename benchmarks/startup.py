"""The CPU time of loading the definitions, which every run, sensor process and worker pays.

Each import runs in a process of its own, since a second import in one process costs nothing.
"""

import json
import os
import resource
import statistics
import subprocess
import sys

from benchmarks import RESULTS_FOLDER

RESULTS = RESULTS_FOLDER / "startup.json"
RUNS = 5
MODULES = ("dagster", "news_platform.settings", "news_platform.definitions")


def main() -> None:
    """Print the median user and system seconds of each import, and store them as JSON."""
    medians = {name: statistics.median(cpu_seconds(name) for _ in range(RUNS)) for name in MODULES}
    for name, seconds in medians.items():
        print(f"import {name:<28}{seconds:>6.2f} s CPU")
    over = medians["news_platform.definitions"] - medians["dagster"]
    print(f"definitions over dagster          {over:>6.2f} s CPU (at most 1.5)")
    RESULTS.write_text(
        json.dumps({name: round(seconds, 2) for name, seconds in medians.items()}, indent=1) + "\n"
    )


def cpu_seconds(module: str) -> float:
    """Return the CPU seconds of a fresh process that imports one module."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {name: text for name, text in os.environ.items() if name != "DAGSTER_HOME"}
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
