"""The state of every asset: what is behind, running, waiting or stopped, and why.

It is the plan that each sensor would make now, read without changing anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorType, SensorInstigatorData

from news_platform.defs.planning import Plan, State, Verdict
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.sensors import memory_in, plan_of
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.commit.root import is_paused

_SHOWN = (State.BEHIND, State.RUNNING, State.WAITING, State.RETRYING, State.STOPPED)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition that differs from its inputs: its state, the reason, and its next attempt."""

    partition: str
    state: str
    reason: str
    next_attempt: str | None


@dataclass(frozen=True, slots=True)
class AssetStatus:
    """The stale partitions of an asset; `error` says why they could not be found.

    `outdated` counts what another version made: nothing builds it again by itself.
    """

    asset: str
    text: str
    partitions: tuple[PartitionStatus, ...] = ()
    error: str = ""
    outdated: int = 0

    def count(self, state: State) -> int:
        """Return how many partitions are in a state."""
        return sum(one.state == state for one in self.partitions)

    @property
    def next_attempt(self) -> str | None:
        """Return the earliest time at which something is tried again."""
        return min((one.next_attempt for one in self.partitions if one.next_attempt), default=None)


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """The state of all assets of a root; without runs, attempts are not known."""

    root: str
    is_paused: bool
    has_runs: bool
    assets: tuple[AssetStatus, ...]

    def document(self) -> dict[str, object]:
        """Return it as `news-platform status --json` and the server's API show it."""
        return {
            "root": self.root,
            "paused": self.is_paused,
            "dagster": self.has_runs,
            "assets": [_document(one) for one in self.assets],
        }


def platform_status(order: Iterable[RebuildRule], resources: Resources) -> PlatformStatus:
    """Return the state of these assets, with the runs of DAGSTER_HOME if it is set."""
    store = resources.data_root.store
    with open_instance(resources.settings) as instance:
        assets = tuple(iter_statuses(order, resources, instance))
    return PlatformStatus(store.url, is_paused(store), instance is not None, assets)


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance | None]:
    """Open the instance of DAGSTER_HOME; None if there is none."""
    if settings.dagster_home is None or not Path(settings.dagster_home).is_dir():
        yield None
        return
    with dg.DagsterInstance.from_config(settings.dagster_home) as instance:
        yield instance


def _document(one: AssetStatus) -> Mapping[str, object]:
    counts = {str(state): one.count(state) for state in _SHOWN}
    return {
        "asset": one.asset,
        "stale": len(one.partitions),
        **counts,
        "outdated": one.outdated,
        "next_attempt": one.next_attempt,
        "text": one.text,
        "error": one.error,
        "partitions": [asdict(partition) for partition in one.partitions],
    }


def iter_statuses(
    order: Iterable[RebuildRule], resources: Resources, instance: dg.DagsterInstance | None
) -> Iterator[AssetStatus]:
    """Yield the status of every asset; without an instance runs and attempts are not known."""
    cursors = read_cursors(instance) if instance else {}
    for rule in order:
        try:
            outdated = rule.outdated(resources) if rule.outdated else 0
            yield _status(asset_plan(rule, resources, cursors, instance), outdated)
        except NewsPlatformError as error:
            text = " ".join(str(error).split())
            yield AssetStatus(rule.asset, f"unknown: {text}", error=text)


def asset_plan(
    rule: RebuildRule,
    resources: Resources,
    cursors: Mapping[str, str | None],
    instance: dg.DagsterInstance | None,
) -> Plan:
    """Return the plan that the asset's sensor would make now."""
    cursor = cursors.get(rule.sensor)
    look = rule.stale_after
    stale = look(resources, cursor) if look and cursor else rule.stale(resources)
    return plan_of(rule, resources, stale=stale, memory=memory_in(cursor), instance=instance)


def read_cursors(instance: dg.DagsterInstance) -> Mapping[str, str | None]:
    """Return the cursor of every sensor by its name."""
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    return {
        state.name: state.instigator_data.cursor
        for state in states
        if isinstance(state.instigator_data, SensorInstigatorData)
    }


def _status(plan: Plan, outdated: int) -> AssetStatus:
    partitions = tuple(_partition(key, plan.verdicts[key]) for key in sorted(plan.verdicts))
    text = plan.text().replace(State.REQUESTED, State.BEHIND)
    more = f"; {outdated} outdated" if outdated else ""
    return AssetStatus(plan.asset, f"{text}{more}", partitions, outdated=outdated)


def _partition(key: str, verdict: Verdict) -> PartitionStatus:
    # What the sensor would request now is behind until it does.
    state = State.BEHIND if verdict.state is State.REQUESTED else verdict.state
    at = None if verdict.at is None else datetime.fromtimestamp(verdict.at, UTC).isoformat()
    return PartitionStatus(key, str(state), verdict.reason, at)
