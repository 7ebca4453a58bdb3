"""Backfill days of all crawl assets while sensors run and much goes wrong; write what happened.

    python -m news_platform_tests.year.month FOLDER DAYS

One file is damaged, one run is canceled, the version of an asset is raised in the middle, and the
daemon is killed at one call of a tick after the other: at each it loses what it has not stored.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg

from news_platform.ccnews.pipeline import RebuildMode, collect_day
from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.defs.checks import BLOCKING, Reporter, evaluate_all, red_partitions
from news_platform.defs.retry_requests import request_retry
from news_platform.resources import collect_options
from news_platform_tests.year.daemon import SimulatedDaemon, frozen, write_home
from news_platform_tests.year.launcher import HOSTED
from news_platform_tests.year.plan import Trouble, YearOptions
from news_platform_tests.year.simulated import FOLDER_VARIABLE, Place

_STEP = timedelta(minutes=30)
_MOST_STEPS = 600
# What a daemon stores in a tick and in the rounds after it, in this order and often.
_CALLS = (
    *("create_tick", "update_tick", "add_instigator_state", "update_instigator_state"),
    *("create_run", "submit_run", "launch_run", "add_dynamic_partitions", "update_backfill"),
)


class Killed(BaseException):
    """The daemon is dead: nothing that it still does reaches the storage."""


class Kills:
    """Kills the daemon at the n-th call that stores something, each time one call later."""

    def __init__(self) -> None:
        self.done = 0
        self._left: int | None = None
        for name in _CALLS:
            setattr(dg.DagsterInstance, name, self._guarded(getattr(dg.DagsterInstance, name)))

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(instance: dg.DagsterInstance, *args: Any, **given: Any) -> Any:
            if self._left is not None:
                self._left -= 1
                if self._left < 0:
                    raise Killed(call.__name__)
            return call(instance, *args, **given)

        return guarded

    @contextmanager
    def at_next_call(self) -> Iterator[None]:
        """Kill what is done in this block; the next block gets one call further."""
        self._left = self.done
        try:
            yield
        except Killed:
            self.done += 1
        finally:
            self._left = None


def main(folder: str, days: int) -> None:
    """Run until nothing is left to do, and write figures.json."""
    os.environ[FOLDER_VARIABLE] = folder
    place = Place(Path(folder))
    place.write_options(
        YearOptions(
            days=1,
            warcs=1,
            backfill_days=days,
            backfill_warcs=1,
            step_minutes=30,
            trouble=Trouble(failing_share=0.0),
        )
    )
    write_home(place)
    with frozen(place.plan.start), dg.DagsterInstance.from_config(str(place.home)) as instance:
        month = Month(place, instance)
        month.run()
    (place.folder / "figures.json").write_text(json.dumps(month.figures(), indent=1))


class Month:
    """The simulation: what an operator, a disk and a release do between the steps of the daemon."""

    def __init__(self, place: Place, instance: dg.DagsterInstance) -> None:
        from news_platform_tests.year import month_definitions

        self.place, self.instance, self.world = place, instance, month_definitions
        self.now = place.plan.start + timedelta(days=2)
        self.kills = Kills()
        self.canceled = self.retried = self.repaired = self.raised = ""

    def run(self) -> None:
        """Step until nothing is stale, queued or running any more."""
        self.place.deliver(self.now, since=None)
        for number in range(_MOST_STEPS):
            self.now += _STEP
            with frozen(self.now), self._daemon() as daemon:
                if number == 0:
                    daemon.begin_backfill(self.now, *self.world.ASSETS)
                if number % 2:  # every other step is a whole one, so that it gets on
                    with self.kills.at_next_call():
                        daemon.step(self.now, is_tick=True)
                else:
                    daemon.step(self.now, is_tick=True)
                if self._is_over(daemon):
                    return
                self._meddle()
        raise AssertionError(f"not over after {_MOST_STEPS} steps: {self._stale()}")

    def _daemon(self) -> SimulatedDaemon:
        return SimulatedDaemon(
            self.place, self.instance, self.world.defs, module=self.world.__name__
        )

    def _stale(self) -> dict[str, list[str]]:
        found = {rule.asset: sorted(rule.stale(self.world.RESOURCES)) for rule in self.world.RULES}
        return {asset: keys for asset, keys in found.items() if keys}

    def _is_over(self, daemon: SimulatedDaemon) -> bool:
        has_happened = self.canceled and self.retried and self.repaired and self.raised
        return bool(has_happened and daemon.is_idle and not self._stale())

    def _meddle(self) -> None:
        built = self._builds()
        if not self.canceled:
            self._cancel_a_run_of_a_sensor()
        elif not self.raised and len(built["search_index"]) > 1:
            object.__setattr__(SEARCH_INDEX, "version", f"{SEARCH_INDEX.version}-next")
            self.raised = self.now.isoformat()
        elif self.raised and not HOSTED and not self.repaired:
            self._repair()
        elif self.repaired and not self.retried:
            asset, key = self.canceled.split()
            request_retry(self.world.RESOURCES.data_root.store, asset, key, now=self.now)
            self.retried = self.now.isoformat()

    def _cancel_a_run_of_a_sensor(self) -> None:
        waiting = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING])
        for run in self.instance.get_runs(waiting):
            if "news_platform/request" in run.tags and "dagster/partition" in run.tags:
                HOSTED.pop(run.run_id, None)
                self.instance.report_run_canceled(run)
                asset = run.tags["news_platform/request"]
                self.canceled = f"{asset} {run.tags['dagster/partition']}"
                return

    def _repair(self) -> None:
        """Follow docs/runbook.md, A corrupt day: collect it again, and evaluate its checks."""
        resources, key = self.world.RESOURCES, self.world.DAMAGED
        collect_day(
            date.fromisoformat(key),
            crawl=resources.crawl.sources,
            root=resources.data_root.store,
            options=collect_options(resources.settings.ccnews),
            now=self.now,
            attempt="operator",
            redo=RebuildMode.all,
        )
        evaluate_all(
            BLOCKING["raw_news"],
            resources,
            Reporter(self.instance, str(uuid4())),
            is_time_left=lambda: True,
            log=lambda _text: None,
        )
        self.repaired = self.now.isoformat()

    def _builds(self) -> dict[str, list[tuple[str, float]]]:
        """Return the partition and the time of every materialization, by asset."""
        found: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for asset in self.world.ASSETS:
            records = self.instance.fetch_materializations(dg.AssetKey(asset), limit=5_000).records
            for record in reversed(records):
                found[asset].append((str(record.partition_key), record.timestamp))
        return found

    def figures(self) -> dict[str, object]:
        """Return everything that the test judges."""
        checks = BLOCKING["raw_news"]
        red = {key for keys in red_partitions(self.instance, checks).values() for key in keys}
        return {
            "days": [str(day) for day in self.place.plan.history],
            "damaged": self.world.DAMAGED,
            "builds": self._builds(),
            "red": sorted(red),
            "stale": self._stale(),
            "kills": self.kills.done,
            "canceled": self.canceled,
            "times": {
                name: datetime.fromisoformat(text).timestamp()
                for name, text in (("repaired", self.repaired), ("raised", self.raised))
            },
        }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
