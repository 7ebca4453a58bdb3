"""Measure speed, size and memory of the domain store, each against an alternative.

Run with NEWS_PLATFORM_BENCH_DATA set. CPU time, best of three, both sides in one process and turn
by turn; the memory rows run in a process of their own.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import RESULTS_FOLDER, domain_store_growth, domain_store_lookup, domain_store_memory
from benchmarks.domain_store_bucket import (
    Bucket,
    make_bucket,
    measure_compaction,
    measure_size,
    measure_write,
)
from benchmarks.domain_store_pages import read_pages
from news_platform.settings import load_settings

RECORDS, DOMAINS = 165_000, 30_000
RESULTS = RESULTS_FOLDER / "domain_store.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `is_met` says whether the value reaches its target."""

    what: str
    value: float
    aim: str
    is_met: bool


def main() -> None:
    """Measure everything, print the table and write the results."""
    bench_data = load_settings(os.environ).bench_data
    if bench_data is None:
        print("needs real pages: set NEWS_PLATFORM_BENCH_DATA")
        return
    folder = Path(tempfile.mkdtemp(prefix="domain-store-bench-"))
    try:
        figures = _measure(Path(bench_data), folder)
    finally:
        shutil.rmtree(folder)
    rows = table(figures)
    print(f"{'what':<62}{'measured':>12}  aim")
    for row in rows:
        print(f"{row.what:<62}{row.value:>12,.2f}  {row.aim}{'' if row.is_met else '  MISSED'}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")


def _measure(bench_data: Path, folder: Path) -> dict[str, float]:
    pages = read_pages(bench_data)
    figures: dict[str, float] = {}
    bucket = make_bucket(pages, folder, records=RECORDS, domains=DOMAINS)
    figures |= {"raw_bytes": float(bucket.raw_bytes), "records": float(RECORDS)}
    steps: list[tuple[str, Callable[[Bucket], dict[str, float]]]] = [
        ("write", measure_write),
        ("size", lambda given: measure_size(given, pages)),
        ("lookup", domain_store_lookup.measure),
        ("compaction", measure_compaction),
        ("memory", domain_store_memory.measure),
    ]
    for name, step in steps:
        print(f"{name} ...", flush=True)
        figures |= step(bucket)
    print("growth ...", flush=True)
    return figures | domain_store_growth.measure(pages, folder)


def table(f: dict[str, float]) -> list[Row]:
    """Return the measured values with their targets."""

    def least(what: str, name: str, aim: float, unit: str) -> Row:
        return Row(what, f[name], f"at least {aim:g}{unit}", f[name] >= aim)

    def most(what: str, name: str, aim: float, unit: str) -> Row:
        return Row(what, f[name], f"at most {aim:g}{unit}", f[name] <= aim)

    return [
        least("write against the codec alone", "write_ratio", 0.85, "×"),
        least("stage 2 (copying) against the codec alone", "stage_2_ratio", 0.85, "×"),
        least("lookup against Polars pruning by row group", "row_group_ratio", 40, "×"),
        least("lookup against Polars filtering first (its default)", "lookup_ratio", 40, "×"),
        least("the same with every record parsed", "lookup_parsed_ratio", 40, "×"),
        least("lookup against an unpruned scan", "scan_ratio", 10_000, "×"),
        least("index of 50,000 domains against scanning JSONL", "index_ratio", 1_000, "×"),
        most("size against a member per record, short pages", "size_ratio", 0.62, "×"),
        most("size against a member per record, full pages", "full_size_ratio", 0.62, "×"),
        most("peak memory over a budget of an eighth, stage 1", "rss_ratio", 1.25, "×"),
        least("speed within that budget against unbounded, stage 1", "bounded_speed", 0.5, "×"),
        most("peak memory over a budget of an eighth, stage 2", "rss_ratio_2", 1.25, "×"),
        least("speed within that budget against unbounded, stage 2", "bounded_speed_2", 0.5, "×"),
        least("compaction against decode and recompress", "compaction_ratio", 4, "×"),
        most("adding a day at 400 days against at 10", "growth_ratio", 1.5, "×"),
        most("bytes written per byte added", "written_per_byte", 5, ""),
        most("fragments of a domain at any time", "most_fragments", 20, ""),
    ]


if __name__ == "__main__":
    main()
