"""Measure speed, memory and size of the news pipeline against the bare loop and its peers.

Run with NEWS_PLATFORM_BENCH_DATA set; `--only share` (command, workers, memory, peers) measures one
and keeps the other results of the last run. Speeds are CPU time, measured in turn in one run, so
that a busy machine slows both sides; only the results for two workers are wall time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks import RESULTS_FOLDER
from benchmarks.ccnews_command import command_share
from benchmarks.ccnews_peers import PEERS, measure_peer
from benchmarks.ccnews_runs import NAME
from news_platform.ccnews.pipeline import WarcSource, collect_warcs
from news_platform.ccnews.pool import CollectOptions
from news_platform.settings import load_settings
from news_platform.storage.objects.store import open_store

mpl.use("Agg")

RESULTS = RESULTS_FOLDER
# Copies of the 60 MB file that make the 600 MB one.
_COPIES = 10
_TURNS = 7
_LARGE_TURNS = 3
# 240 MB raw, for the whole command.
_COMMAND_COPIES = 4
_COMMAND = "share of the bare loop's speed, whole command, 240 MB"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: what was measured and whether it reaches its aim."""

    what: str
    value: float | None
    aim: str
    is_reached: bool


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, print the table, and store it as JSON and as a plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ccnews")
    parser.add_argument("--only", choices=sorted(_PARTS), action="append")
    chosen = parser.parse_args(arguments).only or list(_PARTS)
    bench_data = load_settings(os.environ).bench_data
    if bench_data is None:
        print("needs real pages: set NEWS_PLATFORM_BENCH_DATA")
        return
    small = Path(bench_data) / "warc" / "bench.warc.gz"
    with tempfile.TemporaryDirectory(prefix="ccnews-bench-") as folder:
        warcs = Warcs(small, _copied(small, Path(folder) / "large.warc.gz"), Path(folder))
        rows = [row for part in _PARTS if part in chosen for row in _PARTS[part](warcs)]
    _store(_merged(rows))


@dataclass(frozen=True, slots=True)
class Warcs:
    """The two measured files, and a folder for the output."""

    small: Path
    large: Path
    folder: Path


def _copied(small: Path, large: Path) -> Path:
    with large.open("wb") as file:
        for _ in range(_COPIES):
            file.write(small.read_bytes())
    return large


def _merged(rows: list[Row]) -> list[Row]:
    """Replace the rows of the last run by the new ones."""
    stored = RESULTS / "ccnews.json"
    known = json.loads(stored.read_text()) if stored.exists() else []
    found = {row["what"]: Row(**row) for row in known} | {row.what: row for row in rows}
    return [found[what] for what in _ORDER if what in found]


def _measured(kind: str, warc: Path, *more: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.ccnews_runs", kind, str(warc), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _share(warcs: Warcs) -> list[Row]:
    rows = []
    for name, warc, turns in (
        ("60 MB", warcs.small, _TURNS),
        ("600 MB", warcs.large, _LARGE_TURNS),
    ):
        print(f"against the bare loop, {name} ...", file=sys.stderr, flush=True)
        found: Mapping[str, list[float]] = _measured("turns", warc, str(turns))
        share = statistics.median(
            bare / full for bare, full in zip(found["bare"], found["full"], strict=True)
        )
        rows.append(Row(f"share of the bare loop's speed, {name}", share, ">= 0.85", share >= 0.85))
    return rows


def _command(warcs: Warcs) -> list[Row]:
    print("the whole command against the bare loop ...", file=sys.stderr, flush=True)
    found = command_share(warcs.small, copies=_COMMAND_COPIES, turns=_LARGE_TURNS)
    share = statistics.median(found)
    return [Row(_COMMAND, share, ">= 0.80", share >= 0.80)]


def _workers(warcs: Warcs) -> list[Row]:
    """Compare one and two workers on two large WARCs by wall time.

    The control is the bare loop in two processes against one: what the machine itself allows.
    """
    print("two workers against one ...", file=sys.stderr, flush=True)
    bare = {count: _bare_wall_seconds(warcs.large, count) for count in (1, 2)}
    seconds = {workers: _wall_seconds(warcs.large, warcs.folder, workers) for workers in (1, 2)}
    gain, control = seconds[1] / seconds[2], 2 * bare[1] / bare[2]
    return [
        Row("two workers against one, wall time", gain, ">= 1.75", gain >= 1.75),
        Row("control: two bare loops against one, wall time", control, "", True),
    ]


def _bare_wall_seconds(warc: Path, count: int) -> float:
    """Return the wall time of this many concurrent bare loops over one WARC each."""
    command = [sys.executable, "-m", "benchmarks.ccnews_runs", "bare", str(warc)]
    started = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(count)]
    assert [process.wait() for process in running] == [0] * count
    return time.monotonic() - started


def _wall_seconds(warc: Path, folder: Path, workers: int) -> float:
    source = open_store(str(folder / f"in{workers}"))
    names = [NAME.replace("-04954", f"-0495{number}") for number in (4, 5)]
    for name in names:
        source.put(name, warc)
    started = time.monotonic()
    report = collect_warcs(
        [WarcSource(name, (source,)) for name in names],
        root=open_store(str(folder / f"root{workers}")),
        options=CollectOptions(workers=workers),
        now=datetime.now(UTC),
        attempt="bench",
    )
    assert not report.failed
    return time.monotonic() - started


def _memory(warcs: Warcs) -> list[Row]:
    print("memory and size ...", file=sys.stderr, flush=True)
    one, ten = _measured("full", warcs.small), _measured("full", warcs.large)
    growth = ten["peak_mb"] / one["peak_mb"] - 1
    size = one["bytes"] / warcs.small.stat().st_size
    return [
        Row("peak memory of a worker, 600 MB (MB)", ten["peak_mb"], "< 350", ten["peak_mb"] < 350),
        Row("growth of it from 60 MB to 600 MB", growth, "< 0.10", growth < 0.10),
        Row("output against the .warc.gz", size, "<= 1.1", size <= 1.1),
    ]


def _peers(warcs: Warcs) -> list[Row]:
    rows = []
    for peer in PEERS:
        print(f"against {peer.name} ...", file=sys.stderr, flush=True)
        before = _measured("turns", warcs.small, "3")["full"]
        theirs = measure_peer(peer, warcs.small)
        after = _measured("turns", warcs.small, "3")["full"]
        times = theirs / statistics.median([*before, *after]) if theirs else None
        is_reached = times is not None and times >= peer.aim
        rows.append(Row(f"times faster than {peer.name}", times, f">= {peer.aim:g}", is_reached))
    return rows


_PARTS: Mapping[str, Callable[[Warcs], list[Row]]] = {
    "share": _share,
    "command": _command,
    "workers": _workers,
    "memory": _memory,
    "peers": _peers,
}
_ORDER = (
    "share of the bare loop's speed, 60 MB",
    "share of the bare loop's speed, 600 MB",
    _COMMAND,
    "two workers against one, wall time",
    "control: two bare loops against one, wall time",
    "peak memory of a worker, 600 MB (MB)",
    "growth of it from 60 MB to 600 MB",
    "output against the .warc.gz",
    *(f"times faster than {peer.name}" for peer in PEERS),
)


def _store(rows: list[Row]) -> None:
    print(f"{'what':<48}{'measured':>10}  aim")
    for row in rows:
        value = "-" if row.value is None else f"{row.value:.2f}"
        print(f"{row.what:<48}{value:>10}  {row.aim}{'' if row.is_reached else '  MISSED'}")
    RESULTS.mkdir(exist_ok=True)
    document = json.dumps([asdict(row) for row in rows], indent=1)
    (RESULTS / "ccnews.json").write_text(document + "\n")
    _plot(rows, RESULTS / "ccnews.png")


def _plot(rows: list[Row], path: Path) -> None:
    """Plot the ratios on a logarithmic axis."""
    ratios = [row for row in rows if row.value is not None and "(MB)" not in row.what]
    figure, axes = plt.subplots(figsize=(8, 4))
    colours = ["tab:green" if row.is_reached else "tab:red" for row in ratios]
    axes.barh([row.what for row in ratios], [row.value or 0 for row in ratios], color=colours)
    axes.set_xscale("symlog", linthresh=1)
    axes.invert_yaxis()
    axes.set_xlabel("ratio, aims in docs/benchmarks/ccnews.md")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
