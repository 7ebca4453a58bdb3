"""Run staging and building with a memory budget of an eighth of the bucket, in own processes."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.domain_store_bucket import Bucket

NO_BUDGET = 64 << 30


def measure(bucket: "Bucket") -> dict[str, float]:
    """Return peak memory relative to the budget, and speed relative to an unlimited run."""
    budget = bucket.raw_bytes // 8
    folder = bucket.folder / "memory"
    bounded = {stage: _run(bucket, folder / "bounded", stage, budget) for stage in ("1", "2")}
    free = {stage: _run(bucket, folder / "free", stage, NO_BUDGET) for stage in ("1", "2")}
    return {
        "budget_bytes": float(budget),
        "rss_ratio": bounded["1"]["rss_bytes"] / budget,
        "bounded_speed": free["1"]["seconds"] / bounded["1"]["seconds"],
        "spilled_runs": bounded["1"]["spilled"],
        "rss_ratio_2": bounded["2"]["rss_bytes"] / budget,
        "bounded_speed_2": free["2"]["seconds"] / bounded["2"]["seconds"],
    }


def _run(bucket: "Bucket", root: Path, stage: str, budget: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.domain_store_memory"]
    given = [stage, str(root), str(bucket.rows[0].parent), str(budget)]
    done = subprocess.run([*command, *given], check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _stage(stage: str, root: str, rows: str, budget: int) -> dict[str, float]:
    # Imported here, because the child measures its own memory and the parent needs none of it.
    from news_platform.domain_store.layout import BuildOptions
    from news_platform.domain_store.pipeline import build_buckets
    from news_platform.domain_store.staging.rows import matching_input
    from news_platform.domain_store.staging.stage import stage_input
    from news_platform.storage.objects.store import StoreOptions, open_store

    store = open_store(root)
    options = BuildOptions(buckets=1, memory_bytes=budget)
    start, spilled = time.process_time(), 0
    if stage == "1":
        found = matching_input(f"{rows}/*.parquet", options=StoreOptions())
        report = stage_input(found, store=store, batch="2025-11-01", options=options)
        spilled = report.spilled_runs
    else:
        build_buckets([0], store=store, options=options, now=datetime(2025, 11, 3, tzinfo=UTC))
    seconds = time.process_time() - start
    return {"seconds": seconds, "rss_bytes": _peak_bytes(), "spilled": float(spilled)}


def _peak_bytes() -> float:
    # Not getrusage, whose peak includes that of the parent.
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_stage(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
