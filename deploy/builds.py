"""Build stale partitions on a cluster, by the runs that the sensor of an asset would request."""

from collections.abc import Sequence

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from deploy.graphql import Dagster
from news_platform.datasets.dataset import WHOLE
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.runs import RANGE_END_TAG, RANGE_START_TAG, Work
from news_platform.defs.sensor_state import SensorState
from news_platform.defs.sensors import plan_of
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources

# Days that are built side by side may each need the other first.
_ROUNDS = 5


def build_stale(rule: RebuildRule, resources: Resources, dagster: Dagster) -> int:
    """Launch runs of adjacent partitions until nothing is stale; return how many were built.

    A backfill would end the same, but the daemon looks at one every half minute only.
    """
    built: set[str] = set()
    for _ in range(_ROUNDS):
        stale = rule.stale(resources)
        if not stale:
            return len(built)
        if isinstance(rule.partitions, dg.DynamicPartitionsDefinition):
            dagster.add_partitions(str(rule.partitions.name), sorted(stale))
        plan = plan_of(
            rule, resources, stale=stale, state=SensorState(), work=Work(), instance=None
        )
        runs = [dagster.launch(rule.asset, **_tags(one.partitions)) for one in plan.requests]
        dagster.wait_for_runs(runs)
        built.update(key for one in plan.requests for key in one.partitions)
    raise NewsPlatformError(f"{rule.asset} is stale after {_ROUNDS} rounds: {sorted(stale)}")


def _tags(partitions: Sequence[str]) -> dict[str, str]:
    """Return the tags of a run of adjacent partitions."""
    first, last = partitions[0], partitions[-1]
    if first == WHOLE:
        return {}
    if first == last:
        return {PARTITION_NAME_TAG: first}
    return {RANGE_START_TAG: first, RANGE_END_TAG: last}
