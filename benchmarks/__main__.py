"""Run every benchmark: `make bench`, or `python -m benchmarks NAME...` for some of them.

`--data FOLDER --json` measures other inputs of the same form and prints one JSON document.
"""

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import benchmarks

BENCHMARKS = (
    "articles",
    "article_speed",
    "captures",
    "category",
    "ccnews",
    "ccnews_seed",
    "crawl_day",
    "domain_store",
    "domain_metadata",
    "newsroom",
    "rss",
    "exports",
    "source_records",
    "near_duplicates",
    "stories",
    "corpus",
    "search",
    "isolation",
    "scale",
    "scale_requests",
    "startup",
    "following",
    "takedown",
    "server",
)


def run(chosen: Sequence[str]) -> None:
    """Run these benchmarks one after the other; each prints its own table."""
    for name in chosen:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
        print(f"   {time.monotonic() - started:.0f} s", flush=True)


def run_apart(chosen: Sequence[str]) -> dict[str, object]:
    """Run these benchmarks with their tables on standard error; return the figures of each."""
    with TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        # Before a benchmark is imported: the committed figures are those of the project's data.
        os.environ["BENCH_RESULTS"] = folder
        importlib.reload(benchmarks)
        run(chosen)
        written = {name: Path(folder, f"{name}.json") for name in chosen}
        return {
            name: json.loads(file.read_text()) if file.exists() else None
            for name, file in written.items()
        }


def main() -> None:
    """Parse the command line and run what it names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--data", help="folder of real inputs, instead of NEWS_PLATFORM_BENCH_DATA")
    parser.add_argument("--json", action="store_true", help="print the figures as one document")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"error: no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if given.data:
        os.environ["NEWS_PLATFORM_BENCH_DATA"] = given.data
    chosen = given.names or BENCHMARKS
    if not given.json and not given.data:
        run(chosen)
        return
    found = run_apart(chosen)
    if given.json:
        print(json.dumps(found[chosen[0]] if len(chosen) == 1 else found, indent=1))


if __name__ == "__main__":
    main()
