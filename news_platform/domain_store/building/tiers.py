"""Pure: choose the segments to merge when batches are added.

Segments are kept like the digits of a counter: with a fan of 8 there are at most 7 that hold about
one batch, 7 of about 8, 7 of about 64. The batch that would make an eighth carries: all are merged
into one segment of the next size, over as many sizes as the carry goes, in one copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from news_platform.domain_store.manifest import Segment


@dataclass(frozen=True, slots=True)
class Merge:
    """The segments that become part of the new one, and those that are kept."""

    absorbed: tuple[Segment, ...]
    kept: tuple[Segment, ...]


def tier(batches: int, fan: int) -> int:
    """Return the size class of a segment with this number of batches."""
    size = 0
    while batches >= fan:
        batches, size = batches // fan, size + 1
    return size


def plan_merge(segments: Sequence[Segment], new_batches: int, *, fan: int) -> Merge:
    """Choose the segments to merge with `new_batches`; there may be none.

    A segment of which at least half the batches were dropped is always rewritten.
    """
    # These bytes are mostly dropped batches: rewriting gives their space back.
    absorbed = [segment for segment in segments if 2 * len(segment.live) <= len(segment.batches)]
    kept = [segment for segment in segments if segment not in absorbed]
    total = new_batches + sum(len(segment.live) for segment in absorbed)
    size = tier(total, fan) if total else 0
    while kept:
        same = [segment for segment in kept if tier(len(segment.live), fan) == size]
        if len(same) + (total > 0) < fan:
            break
        absorbed += same
        kept = [segment for segment in kept if segment not in same]
        total += sum(len(segment.live) for segment in same)
        # The merged segment may itself complete a set of `fan` segments of the next size.
        size = max(size + 1, tier(total, fan))
    return Merge(tuple(absorbed), tuple(kept))
