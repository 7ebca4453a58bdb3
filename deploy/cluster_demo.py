"""Build the sample on a cluster on this machine and compare it with one machine.

`make cluster-demo` starts PostgreSQL, Redis, an S3 emulator, the webserver, the daemon and two
workers, backfills the graph through them, and prints one line: the same, or what differs.
"""

import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from deploy.builds import build_stale
from deploy.compare import Content, differences, read_contents
from deploy.graphql import RunInfo
from deploy.sample_cluster import WORKERS, SampleCluster, run_on_one_machine, sample_cluster
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.rebuild_rules import RebuildRule

_WORKER_TAG = "news_platform/worker"


def main() -> None:
    """Run the demo; exit with 1 if a dataset differs or a worker executed no run."""
    started = time.monotonic()
    # TERM unwinds like Ctrl-C, so that every server is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with TemporaryDirectory(prefix="news-platform-cluster-") as name:
        folder = Path(name)
        _say("the sample on one machine ...")
        one = run_on_one_machine(folder)
        _say("starting PostgreSQL, Redis, S3, webserver, daemon and two workers ...")
        with sample_cluster(folder) as cluster:
            for step in BUILD_ORDER:
                _run_step(step, cluster)
            runs = cluster.dagster.runs()
            many = read_contents(cluster.resources.data_root.store, cluster.resources.ledger.engine)
    _show_runs(runs)
    _show_contents(one, many)
    _end(differences(one, many), runs, seconds=time.monotonic() - started)


def _run_step(step: RebuildRule, cluster: SampleCluster) -> None:
    started = time.monotonic()
    built = build_stale(step, cluster.resources, cluster.dagster)
    _say(f"  {step.asset:<24}{built:>4} partitions {time.monotonic() - started:>6.1f} s")


def _show_runs(runs: list[RunInfo]) -> None:
    _say(f"{'asset':<26}{'partition':<26}{'worker':<12}status")
    for run in reversed(runs):
        tags = run.tags
        worker = tags.get(_WORKER_TAG, "none")
        partition = tags.get("dagster/partition", tags.get("dagster/asset_partition_range_end", ""))
        _say(f"{run.asset:<26}{partition:<26}{worker:<12}{run.status}")


def _show_contents(one: Mapping[str, Content], many: Mapping[str, Content]) -> None:
    _say(f"{'dataset':<32}{'one machine':>12}{'cluster':>10}  same rows")
    for name in sorted({*one, *many}):
        left, right = one.get(name), many.get(name)
        counts = f"{left.rows if left else 0:>12}{right.rows if right else 0:>10}"
        _say(f"{name:<32}{counts}  {'yes' if left == right else 'NO'}")


def _end(different: list[str], runs: list[RunInfo], *, seconds: float) -> None:
    work = Counter(run.tags.get(_WORKER_TAG) for run in runs if run.status == "SUCCESS")
    idle = [name for name in WORKERS if work[f"{name}@local"] == 0]
    if different or idle:
        faults = [f"differs: {', '.join(different)}"] if different else []
        faults += [f"worker {name} ran nothing" for name in idle]
        click.echo(f"NOT THE SAME after {seconds:.0f} s: {'; '.join(faults)}")
        sys.exit(1)
    shares = " and ".join(str(work[f"{name}@local"]) for name in WORKERS)
    click.echo(
        f"THE SAME: every dataset equals one machine's; workers ran {shares} runs; {seconds:.0f} s"
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    main()
