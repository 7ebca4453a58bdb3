"""The state of every asset: what is behind, running, waiting or stopped, and why.

It is the plan that each sensor would make now, read without changing anything.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorType, SensorInstigatorData

from news_platform.composition.home import find_home, home_problem
from news_platform.composition.pausing import pause_text
from news_platform.datasets.corpus import DELTA_TABLES
from news_platform.defs.planning import PartitionPlan, Plan, State
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.runs import Work
from news_platform.defs.sensor_state import load_state
from news_platform.defs.sensors import plan_of
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.delta import DeltaEngine

_SHOWN = (State.BEHIND, State.RUNNING, State.WAITING, State.RETRYING, State.STOPPED)


@dataclass(frozen=True, slots=True)
class AssetStatus:
    """The stale partitions of an asset; `error` says why they could not be found.

    `outdated` counts what another version made: nothing builds it again by itself. `oldest` is
    stale for `lag_seconds`, longer than all others; `attempts` are the most failures in a row.
    """

    asset: str
    text: str
    partitions: Mapping[str, PartitionPlan]
    error: str = ""
    outdated: int = 0
    oldest: str = ""
    lag_seconds: float = 0.0
    attempts: int = 0

    @classmethod
    def of(cls, plan: Plan, *, outdated: int) -> "AssetStatus":
        """Return the state that a plan describes: what it would request is behind until it does."""
        behind = {
            key: replace(one, state=State.BEHIND) if one.state is State.REQUESTED else one
            for key, one in sorted(plan.partitions.items())
        }
        more = f"; {outdated} outdated" if outdated else ""
        since = plan.state.stale_since
        oldest = min(since, key=lambda key: since[key], default="")
        failed = [one.number for one in plan.tick.attempts.values() if one.error]
        return cls(
            plan.tick.asset,
            f"{replace(plan, partitions=behind).text()}{more}",
            behind,
            outdated=outdated,
            oldest=oldest,
            lag_seconds=max(0.0, plan.tick.now - since[oldest]) if oldest else 0.0,
            attempts=max(failed, default=0),
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many partitions are in each state."""
        found = Counter(one.state for one in self.partitions.values())
        return {str(state): found[state] for state in _SHOWN}

    def document(self) -> Mapping[str, object]:
        """Return it as `news-platform status --json` and the server's API show it."""
        attempts = [one.at for one in self.partitions.values() if one.at is not None]
        return {
            "asset": self.asset,
            "stale": len(self.partitions),
            **self.counts,
            "outdated": self.outdated,
            "next_attempt": _moment(min(attempts, default=None)),
            "text": self.text,
            "error": self.error,
            "partitions": [
                {
                    "partition": key,
                    "state": str(one.state),
                    "reason": one.reason,
                    "next_attempt": _moment(one.at),
                }
                for key, one in self.partitions.items()
            ],
        }


def _moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """The state of all assets of a root; with a `home_problem`, attempts are not known."""

    root: str
    is_paused: bool
    pause: str
    home_problem: str
    assets: tuple[AssetStatus, ...]

    def document(self) -> dict[str, object]:
        """Return it as `news-platform status --json` and the server's API show it."""
        return {
            "root": self.root,
            "paused": self.is_paused,
            "pause": self.pause,
            "dagster": not self.home_problem,
            "assets": [one.document() for one in self.assets],
        }


def platform_status(order: Iterable[RebuildRule], resources: Resources) -> PlatformStatus:
    """Return the state of these assets, with the runs of Dagster's home if there is one."""
    store = resources.data_root.store
    with open_instance(resources.settings) as instance:
        assets = tuple(iter_statuses(order, resources, instance))
    pause = pause_text(store, resources.settings)
    problem = home_problem(resources.settings)
    return PlatformStatus(store.url, bool(pause), pause, problem, assets)


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance | None]:
    """Open the instance of DAGSTER_HOME or of the root's own home; None if it cannot be opened."""
    home = find_home(settings)
    if home is None or home_problem(settings):
        yield None
        return
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


def iter_statuses(
    order: Iterable[RebuildRule], resources: Resources, instance: dg.DagsterInstance | None
) -> Iterator[AssetStatus]:
    """Yield the status of every asset; without an instance runs and attempts are not known."""
    cursors = read_cursors(instance) if instance else {}
    work = Work.read(instance) if instance else Work()
    for rule in order:
        cursor = cursors.get(rule.sensor)
        state = load_state(cursor)
        try:
            for table in DELTA_TABLES:
                if table.name == rule.asset:
                    DeltaEngine(resources.data_root.store, table).require_readable()
            stale = rule.seen(resources, state).stale if cursor else rule.stale(resources)
            plan = plan_of(rule, resources, stale=stale, state=state, work=work, instance=instance)
            outdated = rule.outdated(resources) if rule.outdated else 0
            yield AssetStatus.of(plan, outdated=outdated)
        except NewsPlatformError as error:
            text = " ".join(str(error).split())
            yield AssetStatus(rule.asset, f"unknown: {text}", {}, error=text)


def read_cursors(instance: dg.DagsterInstance) -> Mapping[str, str | None]:
    """Return the cursor of every sensor by its name."""
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    return {
        state.name: state.instigator_data.cursor
        for state in states
        if isinstance(state.instigator_data, SensorInstigatorData)
    }
