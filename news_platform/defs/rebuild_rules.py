"""Which partitions of an asset differ from their inputs, and what they wait for."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import dagster as dg

from news_platform.ccnews.listing import SettlingOptions, unsettled_days
from news_platform.defs.planning import Hold, Limits
from news_platform.defs.sensor_state import SensorState
from news_platform.resources import Resources
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore

Fingerprints = Mapping[str, str]
"""Partition key to the fingerprint of its inputs."""
HoldsOf = Callable[[Resources, Fingerprints, datetime], Mapping[str, Hold]]
"""Return why stale partitions must wait at this moment, although nothing else prevents a run."""

# The partition key of an asset that has no partitions.
WHOLE = "all"
# The fingerprint of an asset that follows the clock or a database and has no inputs to hash.
_DUE = "due"


@dataclass(frozen=True, slots=True)
class Parent:
    """An asset that another one follows.

    `triggers(parent's partition, own partition)` says which partitions one waits for while they are
    built; None: it follows all of them, and takes those that are finished. With `is_behind` it also
    waits a while for a parent that is about to be built. `red` returns the parent's partitions that
    a blocking check found to be damaged, each with the reason: what follows them waits until they
    are repaired, since the damage would spread.
    """

    asset: str
    triggers: Callable[[str, str], bool] | None = None
    is_behind: Callable[[Resources], bool] | None = None
    red: Callable[[dg.DagsterInstance], Mapping[str, str]] | None = None


def same_partition(parent: str, own: str) -> bool:
    """Return whether a partition follows the partition of the same key."""
    return parent == own


@dataclass(frozen=True, slots=True)
class RebuildRule:
    """An asset, how to find its partitions that are out of date, and what these wait for.

    `stale` returns the fingerprint that the inputs of each such partition have now. `partitions`
    are those of the asset; `per_run` of them may share a run. `sensor` is the name of the sensor
    that follows, empty for an asset with a schedule. `stale_after` finds what is stale from the
    state of that sensor, if it depends on it. `outdated` counts what another version made, which
    is not stale by itself.
    """

    asset: str
    stale: Callable[[Resources], Fingerprints]
    parents: tuple[Parent, ...] = ()
    partitions: dg.PartitionsDefinition[str] | None = None
    per_run: int = 1
    holds: HoldsOf | None = None
    limits: Callable[[Resources], Limits] | None = None
    sensor: str = ""
    stale_after: Callable[[Resources, SensorState], Fingerprints] | None = None
    outdated: Callable[[Resources], int] | None = None

    @classmethod
    def by_fingerprint(
        cls,
        asset: str,
        wanted: Callable[[ObjectStore], Fingerprints],
        built: Callable[[ObjectStore], Fingerprints],
        **following: Any,
    ) -> "RebuildRule":
        """Compare the inputs of each partition now with those that it was built from.

        Both read storage by LIST alone, but for small files of a local root, which each process
        reads once; so a tick over ten years stays within seconds. `following` are further fields.
        """

        def stale(resources: Resources) -> Fingerprints:
            store = resources.data_root.store
            built_from = built(store)
            return stale_partitions(wanted(store), built_from)

        return cls(asset, stale, **{"sensor": f"follow_{asset}", **following})

    @classmethod
    def when(cls, asset: str, is_due: Callable[[Resources], bool]) -> "RebuildRule":
        """Make an asset without partitions stale while `is_due` returns True."""
        return cls(asset, lambda resources: {WHOLE: _DUE} if is_due(resources) else {})

    def limits_in(self, resources: Resources) -> Limits:
        """Return the limits of the asset's runs under the settings."""
        return self.limits(resources) if self.limits else Limits(per_run=self.per_run)


def unsettled(
    resources: Resources, days: Collection[str], followed: Collection[str], now: datetime
) -> Mapping[str, Hold]:
    """Return why days of the crawl are not followed yet; `followed` were built on before."""
    if not resources.is_live:
        return {}  # a crawl that does not grow has settled
    given = resources.settings.ccnews
    waits = unsettled_days(
        resources.data_root.store,
        map(date.fromisoformat, days),
        followed=map(date.fromisoformat, followed),
        options=SettlingOptions(
            later_days=given.settled_later_days,
            quiet=timedelta(hours=given.settled_hours),
            late=timedelta(hours=given.late_hours),
        ),
        now=now,
    )
    return {str(day): Hold(wait.reason, wait.until.timestamp()) for day, wait in waits.items()}
