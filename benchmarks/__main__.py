"""Run every benchmark: `make bench`, or `python -m benchmarks NAME...` for some of them.

`--data FOLDER` names the folder of real inputs; `--json` prints the ratios of those benchmarks that
return them, as one JSON document at the end.
"""

import argparse
import importlib
import json
import os
import sys
import time

BENCHMARKS = (
    "articles",
    "article_speed",
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


def run(chosen: list[str]) -> dict[str, dict[str, float]]:
    """Run these benchmarks one after the other; each prints its own table. Return their ratios."""
    ratios = {}
    for name in chosen:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        if found := importlib.import_module(f"benchmarks.{name}").main():
            ratios[name] = found
        print(f"   {time.monotonic() - started:.0f} s", flush=True)
    return ratios


def main() -> None:
    """Read the command line and run what it names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--data", metavar="FOLDER", help="the folder of real inputs")
    parser.add_argument("--json", action="store_true", help="print the ratios as JSON at the end")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.names) - set(BENCHMARKS)):
        sys.exit(f"error: no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if asked.data:
        os.environ["NEWS_PLATFORM_BENCH_DATA"] = asked.data
    ratios = run(asked.names or list(BENCHMARKS))
    if asked.json:
        print(json.dumps(ratios))


if __name__ == "__main__":
    main()
