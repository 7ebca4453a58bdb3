"""One measurement in its own process: `python -m benchmarks.ccnews_runs full|bare|turns WARC`."""

import json
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.ccnews_bare import bare_loop
from news_platform.ccnews.pool import CollectOptions, CollectTask, StoreAddress
from news_platform.ccnews.worker import collect_task
from news_platform.storage.objects.store import StoreOptions

# A name with a timestamp, as in the crawl; the measured file may have any name.
NAME = "CC-NEWS-20251101004549-04954.warc.gz"


def run_bare(path: Path) -> dict[str, float]:
    """Measure the bare loop."""
    started = time.process_time()
    pages = bare_loop(path)
    return {"pages": pages, "cpu_seconds": time.process_time() - started}


def run_full(path: Path) -> dict[str, float]:
    """Measure the whole pipeline as a worker runs it, with all datasets published."""
    with tempfile.TemporaryDirectory(prefix="ccnews-bench-") as folder:
        here = Path(folder)
        task = task_of(path, here)
        started = time.process_time()
        marker = collect_task(task)
        cpu_seconds = time.process_time() - started
    return {"pages": marker.rows, "cpu_seconds": cpu_seconds, "bytes": marker.bytes}


def task_of(path: Path, folder: Path) -> CollectTask:
    """Return the task of a worker that reads the WARC under a name like those of the crawl."""
    for name in ("in", "scratch"):
        (folder / name).mkdir()
    (folder / "in" / NAME).symlink_to(path)
    return CollectTask(
        path=NAME,
        size_bytes=path.stat().st_size,
        sources=(StoreAddress(str(folder / "in"), StoreOptions()),),
        root=StoreAddress(str(folder / "root"), StoreOptions()),
        scratch=str(folder / "scratch"),
        options=CollectOptions(),
        attempt="bench",
        now=datetime.now(UTC),
        skip={},
    )


def run_turns(path: Path, turns: int) -> dict[str, list[float]]:
    """Measure both in turn in one warm process; the first turn of each is not counted."""
    found: dict[str, list[float]] = {"bare": [], "full": []}
    for turn in range(turns + 1):
        for kind, run in (("bare", run_bare), ("full", run_full)):
            seconds = run(path)["cpu_seconds"]
            found[kind] += [seconds] if turn else []
    return found


def main(kind: str, path: str, turns: str = "5") -> None:
    """Print the results of one run as JSON."""
    if kind == "turns":
        print(json.dumps(run_turns(Path(path), int(turns))))
        return
    results = {"bare": run_bare, "full": run_full}[kind](Path(path))
    results["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
