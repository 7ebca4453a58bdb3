"""Sorting within a memory budget."""

import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from news_platform.domain_store.layout import bucket_of
from news_platform.domain_store.staging.rows import SortedRuns, encode_lines
from news_platform_tests.domain_store.pages import news_rows

BUCKETS = 16


def _sorted(frames: Sequence[pl.DataFrame], memory_bytes: int) -> tuple[SortedRuns, list[bytes]]:
    runs = SortedRuns(memory_bytes)
    for frame in frames:
        runs.add(encode_lines(frame, BUCKETS))
    lines = [line for group in runs.domain_runs() for line in group.lines]
    runs.close()
    return runs, lines


def _frames(seed: int, count: int) -> list[pl.DataFrame]:
    rng = random.Random(seed)
    return [
        news_rows(
            [f"com.d{rng.randrange(30)}" for _ in range(rng.randrange(1, 40))],
            day=f"2025-11-{n + 1:02d}",
        )
        for n in range(count)
    ]


def test_spilled_runs_give_the_same_lines_as_a_sort_in_memory() -> None:
    frames = _frames(1, 20)
    in_memory, expected = _sorted(frames, 1 << 30)
    on_disk, found = _sorted(frames, 60_000)
    assert in_memory.spilled == 0
    assert on_disk.spilled > 3
    assert found == expected


def test_groups_come_by_bucket_and_domain_and_keep_the_order_of_rows() -> None:
    frames = _frames(7, 12)
    runs = SortedRuns(100_000)
    for frame in frames:
        runs.add(encode_lines(frame, BUCKETS))
    groups = list(runs.domain_runs())
    runs.close()
    keys = [(group.bucket, group.domain) for group in groups]
    assert keys == sorted(keys)
    assert all(group.bucket == bucket_of(group.domain, BUCKETS) for group in groups)
    found = [url for group in groups if group.domain == "d3.com" for url in group.facts[0]]
    rows = pl.concat(frames).filter(host="com.d3")
    assert found == rows["uri"].to_list()


def test_spilled_runs_leave_no_files_behind(tmp_path: Path) -> None:
    runs = SortedRuns(10_000, scratch=str(tmp_path))
    for frame in _frames(1, 5):
        runs.add(encode_lines(frame, BUCKETS))
    assert runs.spilled > 0
    assert list(tmp_path.iterdir()) == []
    runs.close()
