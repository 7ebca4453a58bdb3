"""Which segments are merged."""

from collections import Counter
from dataclasses import replace

from news_platform.domain_store.building.builder import plan_merge
from news_platform.domain_store.manifest import BatchEntry, DataFile, Segment


def _segment(name: str, batches: list[str]) -> Segment:
    files = (DataFile(f"{name}.jsonl.gz", len(batches)),)
    return Segment(name, 0, files, {batch: BatchEntry("inputs", 0) for batch in batches})


def test_the_eighth_of_a_size_merges_them_all() -> None:
    held = [_segment(str(n), [f"day {n}"]) for n in range(7)]
    assert plan_merge(held[1:], 1, fan=8).absorbed == ()
    merge = plan_merge(held, 1, fan=8)
    assert merge.absorbed == tuple(held)
    assert merge.kept == ()


def test_a_carry_runs_through_all_sizes_in_one_merge() -> None:
    small = [_segment(f"s{n}", [f"day {n}"]) for n in range(7)]
    large = [_segment(f"l{n}", [f"old {n}.{m}" for m in range(8)]) for n in range(7)]
    merge = plan_merge([*large, *small], 1, fan=8)
    assert set(map(str, merge.absorbed)) == set(map(str, [*small, *large]))


def test_a_segment_of_which_half_is_dropped_is_rewritten() -> None:
    segment = replace(_segment("a", ["1", "2", "3", "4"]), dropped=("1", "2"))
    assert plan_merge([segment], 1, fan=8).absorbed == (segment,)
    assert plan_merge([replace(segment, dropped=("1",))], 1, fan=8).absorbed == ()


def test_a_full_year_stays_within_twenty_segments_and_five_writes_a_batch() -> None:
    held: list[Segment] = []
    written: Counter[str] = Counter()
    most = 0
    for day in range(400):
        merge = plan_merge(held, 1, fan=8)
        batches = [name for part in merge.absorbed for name in part.live] + [f"day {day}"]
        written.update(batches)
        held = [*merge.kept, _segment(str(day), batches)]
        most = max(most, len(held))
    assert sorted(name for part in held for name in part.live) == sorted(written)
    assert most <= 20
    assert written.total() / 400 < 3
    assert max(written.values()) <= 4
