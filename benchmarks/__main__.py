"""Run every benchmark: `make bench`, or some of them: `python -m benchmarks NAME... [OPTION...]`.

Options after the names are those of the benchmarks themselves.
"""

import importlib
import sys
import time
from itertools import takewhile

BENCHMARKS = (
    "articles",
    "category",
    "ccnews",
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


def run(chosen: list[str]) -> None:
    """Run these benchmarks one after the other; each prints its own table."""
    for name in chosen:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
        print(f"   {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"error: no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    sys.argv[1:] = words[len(names) :]
    run(names or list(BENCHMARKS))
