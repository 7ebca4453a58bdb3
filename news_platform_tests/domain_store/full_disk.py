"""Builds a store on a disk that is full at a chosen moment; run by test_full_disk.py.

Prints one line a try: what was being done, how many bytes were left, and what became of it.
"""

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from news_platform.domain_store.building.verify import verify_bucket
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_buckets, compact_buckets
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.domain_store.pages import NOW, news_rows

DAYS = ("2025-11-01", "2025-11-02", "2025-11-03")
HOSTS = ["org.a", "org.b"] * 4
OPTIONS = BuildOptions(buckets=1, memory_bytes=1 << 20, uploads=1)
# From nothing at all to more than any step needs.
LEFT_BYTES = (0, 240_000, 880_000)


def _stage(store: ObjectStore, options: BuildOptions, day: str) -> None:
    noise = random.Random(day)
    trees = [noise.randbytes(30_000).hex() for _ in HOSTS]
    rows = news_rows(HOSTS, day=day, trees=trees)
    # A row at a time, so that stage 1 spills its runs.
    stage_batch(rows.iter_slices(1), store=store, batch=day, inputs=f"in {day}", options=options)


def _build(store: ObjectStore, options: BuildOptions) -> None:
    build_buckets([0], store=store, options=options, now=NOW)


def _compact(store: ObjectStore, options: BuildOptions) -> None:
    compact_buckets([0], store=store, options=options, now=NOW)


def _days_seen(store: ObjectStore) -> str:
    """Return the days that a reader finds, each proven whole, and what verify says."""
    rows = [row for domain in ("a.org", "b.org") for row in DomainStore(store).records(domain)]
    days = [f"{row['year']}-{row['month']}-{row['day']}" for row in rows]
    counts = {day: days.count(day) for day in sorted(set(days))}
    whole = all(count == len(HOSTS) for count in counts.values())
    problems = verify_bucket(store, 0).problems
    return f"{len(counts)} days" if whole and not problems else f"BROKEN {counts} {problems}"


def _fill(disk: Path, left_bytes: int) -> Path:
    filler = disk / "filler"
    status = os.statvfs(disk)
    filler.write_bytes(b"\0" * max(0, status.f_bavail * status.f_frsize - left_bytes))
    return filler


def _tries(disk: Path, scratch: Path, step: Callable[[ObjectStore], None]) -> Iterator[str]:
    """Run a step with less and less disk space, check the store, free space and run it again."""
    before = scratch / "before"
    root = next(path for path in (disk / "root", scratch / "root") if path.exists())
    shutil.copytree(root, before)
    for left_bytes in LEFT_BYTES:
        store = open_store(str(root))
        filler = _fill(disk, left_bytes)
        try:
            step(store)
            told = "done"
        except StorageError as error:
            told = "full" if "the disk is full" in str(error) else f"TOLD {error}"
        during = _days_seen(store)
        filler.unlink()
        step(store)
        yield f"{left_bytes} {told}: {during}, then {_days_seen(store)}"
        shutil.rmtree(root)
        shutil.copytree(before, root)
    shutil.rmtree(before)


def main(disk: Path, scratch: Path, *, is_root_full: bool) -> None:
    """Fill the disk of the root, or that of the scratch folder."""
    root = (disk if is_root_full else scratch) / "root"
    options = replace(OPTIONS, scratch=str(scratch if is_root_full else disk))
    store = open_store(str(root))
    for day in DAYS[:2]:
        _stage(store, options, day)
        _build(store, options)
    steps = {
        "stage": partial(_stage, options=options, day=DAYS[2]),
        "build": partial(_build, options=options),
        "compact": partial(_compact, options=options),
    }
    if not is_root_full:
        del steps["build"], steps["compact"]  # they write nothing to the scratch folder
    for name, step in steps.items():
        for line in _tries(disk, scratch, step):
            print(name, line)  # noqa: T201 - read by the test
        step(store)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), is_root_full=sys.argv[3] == "root")
