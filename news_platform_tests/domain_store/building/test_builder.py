"""The difference between a bucket and the staged batches, and which segments are merged."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.domain_store.building.builder import (
    MAX_DROPPED,
    plan_batch_change,
    plan_merge,
    without_batches,
)
from news_platform.domain_store.manifest import BatchEntry, DataFile, Manifest, Segment
from news_platform_tests.domain_store.test_manifest import MANIFEST

VERSIONS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("12"), max_size=8)


def _manifest(taken: dict[str, str]) -> Manifest:
    batches = {name: BatchEntry(version, 0) for name, version in taken.items()}
    return replace(MANIFEST, segments=(Segment("s", 7, (), "s", batches),))


def test_a_changed_batch_beyond_the_limit_keeps_its_old_version_for_now() -> None:
    change = plan_batch_change(_manifest({"a": "1", "b": "1"}), {"a": "2", "b": "2"}, limit=1)
    assert change.added == {"a": "2"}
    assert change.dropped == {"a"}


@settings(deadline=None)
@given(VERSIONS, VERSIONS, st.integers(1, 4))
def test_steps_lead_from_any_state_to_any_other(
    taken: dict[str, str], wanted: dict[str, str], limit: int
) -> None:
    steps = 0
    while change := plan_batch_change(_manifest(taken), wanted, limit=limit):
        kept = {name: taken[name] for name in taken if name not in change.dropped}
        assert not kept.keys() & change.added.keys()
        taken = {**kept, **change.added}
        steps += 1
        assert steps <= 10
    assert taken == wanted


def test_segments_forget_dropped_batches_and_vanish_when_empty() -> None:
    held = replace(
        MANIFEST,
        segments=(
            replace(_segment("one", ["a", "b"]), dropped=("b",)),
            _segment("two", ["c", "d"]),
        ),
    )
    (left,) = without_batches(held, frozenset({"a", "c", "zzz"}))
    assert left.name == "two"
    assert left.dropped == ("c",)
    assert without_batches(None, frozenset()) == ()


def _segment(name: str, batches: list[str]) -> Segment:
    files = (DataFile(f"{name}.jsonl.gz", len(batches)),)
    return Segment(name, 0, files, name, {batch: BatchEntry("inputs", 0) for batch in batches})


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


def test_a_large_segment_with_many_dropped_batches_is_rewritten() -> None:
    names = [str(number) for number in range(10 * MAX_DROPPED)]
    segment = replace(_segment("a", names), dropped=tuple(names[:MAX_DROPPED]))
    assert plan_merge([segment], 1, fan=8).absorbed == (segment,)
    assert plan_merge([replace(segment, dropped=segment.dropped[1:])], 1, fan=8).absorbed == ()


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
