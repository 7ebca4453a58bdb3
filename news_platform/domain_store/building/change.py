"""Pure: how a bucket differs from what stage 1 has ready."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from news_platform.domain_store.manifest import Manifest, Segment


@dataclass(frozen=True, slots=True)
class Change:
    """Versions of batches to take up, and batches whose present version no longer counts."""

    added: Mapping[str, str]
    dropped: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


def plan_change(manifest: Manifest | None, wanted: Mapping[str, str], *, limit: int) -> Change:
    """Return the next step from a manifest to the wanted versions: at most `limit` additions."""
    taken = manifest.taken if manifest else {}
    changed = sorted(batch for batch in wanted if taken.get(batch) != wanted[batch])
    added = {batch: wanted[batch] for batch in changed[:limit]}
    gone = taken.keys() - wanted.keys()
    return Change(added, frozenset(gone | (added.keys() & taken.keys())))


def without_batches(manifest: Manifest | None, dropped: frozenset[str]) -> tuple[Segment, ...]:
    """Return the segments that still hold something when these batches are dropped."""
    segments = manifest.segments if manifest else ()
    reduced = (
        replace(part, dropped=tuple(sorted({*part.dropped, *(dropped & part.batches.keys())})))
        for part in segments
    )
    return tuple(segment for segment in reduced if segment.live)
