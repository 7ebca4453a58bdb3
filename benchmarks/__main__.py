"""Run every benchmark: `make bench`, or `python -m benchmarks NAME...` for some of them."""

import importlib
import sys
import time

BENCHMARKS = (
    "articles",
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
    unknown = sorted(set(sys.argv[1:]) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"error: no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    run(sys.argv[1:] or list(BENCHMARKS))
