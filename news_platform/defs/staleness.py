"""Which partitions of an asset differ from their inputs, for sensors, schedules and the demo."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from news_platform.resources import Resources
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore

Fingerprints = Mapping[str, str]
"""Partition key to the fingerprint of its inputs."""

# The partition key of an asset that has no partitions.
WHOLE = "all"
# The fingerprint of an asset that follows the clock or a database and has no inputs to hash.
_DUE = "due"


@dataclass(frozen=True, slots=True)
class Staleness:
    """An asset, and how to find its partitions that are out of date.

    `stale` returns the fingerprint that the inputs of each such partition have now, newest key
    first.
    """

    asset: str
    stale: Callable[[Resources], Fingerprints]

    @classmethod
    def by_fingerprint(
        cls,
        asset: str,
        wanted: Callable[[ObjectStore], Fingerprints],
        built: Callable[[ObjectStore], Fingerprints],
    ) -> "Staleness":
        """Compare the inputs of each partition now with those that it was built from.

        Both read storage by LIST alone, but for small files of a local root, which each process
        reads once; so a tick over ten years stays within seconds.
        """

        def stale(resources: Resources) -> Fingerprints:
            store = resources.data_root.store
            built_from = built(store)
            return stale_partitions(wanted(store), built_from)

        return cls(asset, stale)

    @classmethod
    def when(cls, asset: str, is_due: Callable[[Resources], bool]) -> "Staleness":
        """Make an asset without partitions stale while `is_due` returns True."""
        return cls(asset, lambda resources: {WHOLE: _DUE} if is_due(resources) else {})
