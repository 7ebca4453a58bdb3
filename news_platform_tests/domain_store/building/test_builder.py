"""The difference between a bucket and the staged batches."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.domain_store.building.builder import plan_batch_change, without_batches
from news_platform.domain_store.manifest import BatchEntry, Manifest, Segment
from news_platform_tests.domain_store.test_manifest import MANIFEST

VERSIONS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("12"), max_size=8)


def _manifest(taken: dict[str, str]) -> Manifest:
    batches = {name: BatchEntry(version, 0) for name, version in taken.items()}
    return replace(MANIFEST, segments=(Segment("s", 7, (), batches),), empty={})


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
            Segment(
                "one", 7, (), {"a": BatchEntry("1", 0), "b": BatchEntry("1", 0)}, dropped=("b",)
            ),
            Segment("two", 7, (), {"c": BatchEntry("1", 0), "d": BatchEntry("1", 0)}),
        ),
    )
    (left,) = without_batches(held, frozenset({"a", "c", "zzz"}))
    assert left.name == "two"
    assert left.dropped == ("c",)
    assert without_batches(None, frozenset()) == ()
