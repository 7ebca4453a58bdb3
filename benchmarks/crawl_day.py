"""Measure a day of the crawl end to end, from raw_news to search_index, as the commands run it.

The day has all real WARCs as often as asked for: `python -m benchmarks.crawl_day --copies 20` reads
1.1 GB. Each stage is one command, measured by the CPU time of all its processes; what the same
command takes when nothing is to be done is taken off.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import RESULTS_FOLDER
from news_platform.settings import load_settings

RESULTS = RESULTS_FOLDER / "crawl_day.json"

_DAY = "20251101"
STAGES = {
    "raw_news": ("ccnews", "collect", "{warcs}", "--workers", "1"),
    "domain_buckets, domain_store, domain_catalog": ("store", "build"),
    "crawl_articles": ("corpus", "build"),
    "search_index": ("search", "the", "--build"),
}


@dataclass(frozen=True, slots=True)
class StageCost:
    """The cost of one stage for a day."""

    stage: str
    cpu_seconds: float
    core_minutes_per_gb: float
    peak_mb: float


def main(arguments: Sequence[str] = ()) -> None:
    """Print and store the core-minutes of each stage per gigabyte of WARCs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=1, help="how often each WARC is in the day")
    copies = parser.parse_args(arguments).copies
    data = load_settings(os.environ).bench_data
    if not data:
        print("crawl_day: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    with tempfile.TemporaryDirectory(prefix="crawl-day-") as folder:
        warcs = _day_of(Path(data) / "warc", Path(folder), copies)
        size = sum(warc.stat().st_size for warc in warcs)
        found = [_measured(stage, warcs, folder, size) for stage in STAGES]
    print(f"{len(warcs)} WARCs, {size / 1e6:.0f} MB compressed")
    for one in found:
        print(
            f"{one.stage:<48}{one.cpu_seconds:>8.1f} CPU s{one.core_minutes_per_gb:>8.1f} "
            f"core-minutes per GB{one.peak_mb:>7.0f} MB"
        )
    RESULTS.write_text(
        json.dumps({"bytes": size, "stages": [asdict(one) for one in found]}, indent=1) + "\n"
    )


def _day_of(data: Path, folder: Path, copies: int) -> list[Path]:
    """Return the WARCs of the day: links to the real ones, under names of the crawl."""
    sources = [data / "bench.warc.gz", *sorted((data / "world").glob("*.warc.gz"))] * copies
    warcs = [
        folder / f"CC-NEWS-{_DAY}{number:06d}-{number:05d}.warc.gz"
        for number in range(len(sources))
    ]
    for source, warc in zip(sources, warcs, strict=True):
        warc.symlink_to(source)
    return warcs


def _measured(stage: str, warcs: Sequence[Path], folder: str, size: int) -> StageCost:
    parts = STAGES[stage]
    words = [str(w) for part in parts for w in (warcs if part == "{warcs}" else (part,))]
    command = [sys.executable, "-m", "news_platform.cli", *words, "--root", f"{folder}/root"]
    first, peak = _cpu_seconds(command)
    again, _ = _cpu_seconds(command)
    seconds = first - again
    return StageCost(stage, round(seconds, 2), round(seconds / 60 / (size / 1e9), 2), peak)


def _cpu_seconds(command: Sequence[str]) -> tuple[float, float]:
    """Return the CPU time of a command and all its processes, and the largest one's memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, round(after.ru_maxrss / 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
