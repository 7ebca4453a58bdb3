"""Which partitions of an asset differ from their inputs, and what they wait for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

import dagster as dg

from news_platform.ccnews.listing import SettlingOptions, unsettled_days
from news_platform.datasets.dataset import WHOLE, Dataset, PartitionMap
from news_platform.defs.planning import Hold, Limits
from news_platform.defs.sensor_state import SensorState
from news_platform.resources import Resources
from news_platform.storage.units import built_inputs

Platform: TypeAlias = dg.ResourceParam[Resources]
"""The parameter by which assets, sensors, schedules and jobs get all resources."""
Fingerprints = Mapping[str, str]
"""Partition key to the fingerprint of its inputs."""
HoldsOf = Callable[[Resources, Fingerprints, datetime], Mapping[str, Hold]]
"""Return why stale partitions must wait at this moment, although nothing else prevents a run."""

# The fingerprint of an asset that follows the clock or a database and has no inputs to hash.
_DUE = "due"


@dataclass(frozen=True, slots=True)
class Parent:
    """An asset that another one follows.

    `partitions` says which of its partitions one waits for while they are built; None: it follows
    all of them, and takes those that are finished. With `is_behind` it also
    waits a while for a parent that is about to be built. What follows a partition that a blocking
    check found to be damaged waits until it is repaired, since the damage would spread.
    """

    asset: str
    partitions: PartitionMap | None = None
    is_behind: Callable[[Resources], bool] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the sensor of an asset finds at a tick; `stale` is that of `RebuildRule`.

    `observations` are reported once, `listings` are kept for the next tick, and `record` writes
    what must not be lost when the daemon dies. `run_config` is that of the run of a partition.
    """

    stale: Fingerprints
    observations: Sequence[dg.AssetObservation] = ()
    listings: Mapping[str, Any] = field(default_factory=dict)
    record: Callable[[], object] = lambda: None
    run_config: Callable[[str], Mapping[str, Any]] = lambda _key: {}


@dataclass(frozen=True, slots=True)
class RebuildRule:
    """An asset, how to find its partitions that are out of date, and what these wait for.

    `stale` returns the fingerprint that the inputs of each such partition have now. `partitions`
    are those of the asset; `per_run` of them may share a run. `sensor` is the name of the sensor
    that follows, empty for an asset with a schedule. Its runs build `outputs`, which is the asset
    itself if empty. `look` finds what is stale from the state of that sensor, if it depends on it.
    `outdated` counts what another version made, which is not stale by itself. `built` returns the
    partitions that exist, and `keys` those that must exist before anything is built.
    """

    asset: str
    stale: Callable[[Resources], Fingerprints]
    parents: tuple[Parent, ...] = ()
    partitions: dg.PartitionsDefinition[str] | None = None
    per_run: int = 1
    holds: HoldsOf | None = None
    limits: Callable[[Resources], Limits] | None = None
    sensor: str = ""
    outputs: tuple[str, ...] = ()
    look: Callable[[Resources, SensorState], Seen] | None = None
    outdated: Callable[[Resources], int] | None = None
    built: Callable[[Resources], Fingerprints] | None = None
    keys: Callable[[Resources], Sequence[str]] = lambda _resources: ()

    @classmethod
    def when(cls, asset: str, is_due: Callable[[Resources], bool]) -> "RebuildRule":
        """Make an asset without partitions stale while `is_due` returns True."""
        return cls(asset, lambda resources: {WHOLE: _DUE} if is_due(resources) else {})

    def seen(self, resources: Resources, state: SensorState) -> Seen:
        """Return what the sensor would find now, after the ticks that left this state."""
        return self.look(resources, state) if self.look else Seen(self.stale(resources))

    def limits_in(self, resources: Resources) -> Limits:
        """Return the limits of the asset's runs under the settings."""
        return self.limits(resources) if self.limits else Limits(per_run=self.per_run)


def unsettled(dataset: Dataset) -> HoldsOf:
    """Return why a dataset does not follow days of the crawl yet: their WARCs are still arriving.

    Days that it was built from before are followed at once.
    """

    def holds(resources: Resources, stale: Fingerprints, now: datetime) -> Mapping[str, Hold]:
        if not resources.is_live:
            return {}  # a crawl that does not grow has settled
        store, given = resources.data_root.store, resources.settings.ccnews
        waits = unsettled_days(
            store,
            map(date.fromisoformat, stale),
            followed=map(date.fromisoformat, built_inputs(store, dataset)),
            options=SettlingOptions(
                later_days=given.settled_later_days,
                quiet=timedelta(hours=given.settled_hours),
                late=timedelta(hours=given.late_hours),
            ),
            now=now,
        )
        return {str(day): Hold(wait.reason, wait.until.timestamp()) for day, wait in waits.items()}

    return holds
