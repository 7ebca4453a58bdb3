"""The crawl and the resources of a simulation: stores that can fail, and Dagster's frozen clock."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from dagster._time import get_current_datetime
from pydantic import TypeAdapter

from news_platform.resources import Clock, Crawl, DataRoot, Resources
from news_platform.setting_sections.platform import CheckSettings
from news_platform.settings import load_settings
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.ccnews.crawl import write_listings
from news_platform_tests.defs.over import resumed
from news_platform_tests.year.plan import YearOptions, YearPlan

FOLDER_VARIABLE = "SIMULATED_YEAR_FOLDER"
_OPTIONS = TypeAdapter(YearOptions)
# What hiccups in the run that is being executed.
HICCUPS: set[str] = set()


class FrozenClock(Clock):
    """The time that Dagster shows."""

    def now(self) -> datetime:
        """Return the simulated moment."""
        return get_current_datetime()


class _Switched:
    """A reader or writer of a store that fails like a lost disk while it is down."""

    def __init__(self, inner: object, is_down: Callable[[], bool]) -> None:
        self._inner, self._is_down = inner, is_down

    def __getattr__(self, name: str) -> Any:
        if self._is_down():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return getattr(self._inner, name)


def switched(store: ObjectStore, is_down: Callable[[], bool]) -> ObjectStore:
    """Return the store behind a switch."""
    backend = store._backend
    reader, writer = (_Switched(one, is_down) for one in (backend.reader, backend.writer))
    # They pass on whatever is called.
    given = replace(backend, reader=cast(Any, reader), writer=cast(Any, writer))
    return ObjectStore(given, store._prefix)


@dataclass(frozen=True)
class SimulatedRoot(DataRoot):
    """A root that does not answer during outages."""

    plan: YearPlan | None = None

    @cached_property
    def store(self) -> ObjectStore:
        """Open the root behind its switch."""
        return switched(DataRoot(self.settings, self.access).store, _is_down(self.plan, "root"))


@dataclass(frozen=True)
class SimulatedCrawl(Crawl):
    """A crawl that does not answer during outages."""

    plan: YearPlan | None = None

    @cached_property
    def store(self) -> ObjectStore:
        """Open the crawl behind its switch."""
        return switched(Crawl(self.data_root).store, _is_down(self.plan, "crawl"))


@dataclass(frozen=True)
class SimulatedResources(Resources):
    """The resources of a simulation."""

    plan: YearPlan | None = None

    @cached_property
    def data_root(self) -> DataRoot:
        """Return the root behind its switch."""
        return SimulatedRoot(self.settings, self.access, self.plan)

    @cached_property
    def crawl(self) -> Crawl:
        """Return the crawl behind its switch."""
        return SimulatedCrawl(self.data_root, self.plan)

    @cached_property
    def clock(self) -> Clock:
        """Return Dagster's clock."""
        return FrozenClock()


def _is_down(plan: YearPlan | None, thing: str) -> Callable[[], bool]:
    if plan is None:
        return lambda: False
    return lambda: thing in HICCUPS or plan.is_down(thing, get_current_datetime())


@dataclass(frozen=True)
class Place:
    """The folder of a simulation: its plan, crawl, root, Dagster home, and how far it is."""

    folder: Path

    @property
    def root(self) -> Path:
        """Return the data root."""
        return self.folder / "root"

    @property
    def crawl(self) -> Path:
        """Return the crawl's folder."""
        return self.folder / "crawl"

    @property
    def home(self) -> Path:
        """Return the Dagster home."""
        return self.folder / "home"

    @property
    def ticks(self) -> Path:
        """Return the log of ticks, which outlives Dagster's own."""
        return self.folder / "ticks.jsonl"

    @property
    def alerts(self) -> Path:
        """Return the log of alerts."""
        return self.folder / "alerts.jsonl"

    def write_options(self, options: YearOptions) -> None:
        """Keep the options: they are all that a simulation needs to go on."""
        resumed(str(self.root))
        (self.folder / "options.json").write_bytes(_OPTIONS.dump_json(options))

    @cached_property
    def plan(self) -> YearPlan:
        """Return the plan of the stored options."""
        return YearPlan(_OPTIONS.validate_json((self.folder / "options.json").read_bytes()))

    def resources(self, *, is_disturbed: bool = True) -> SimulatedResources:
        """Return the resources of the simulation, or of an undisturbed build beside it."""
        root = self.root if is_disturbed else self.folder / "undisturbed"
        settings = load_settings(
            {
                "NEWS_PLATFORM_ROOT": str(root),
                "NEWS_PLATFORM_CRAWL_URL": str(self.crawl),
                "NEWS_PLATFORM_WORKERS": "0",
                "NEWS_PLATFORM_BUCKETS": "32",
                "NEWS_PLATFORM_LATE_HOURS": str(self.plan.options.late_hours),
                "NEWS_PLATFORM_ALERT_WEBHOOK": self._webhook,
            }
        )
        # A fifth of a second of real time: the simulated clock stands still in a run.
        settings = settings.model_copy(update={"checks": CheckSettings(max_hours=0.00005)})
        return SimulatedResources(settings, plan=self.plan if is_disturbed else None)

    def write_webhook(self, port: int) -> None:
        """Keep the address of the webhook that takes alerts."""
        (self.folder / "webhook").write_text(f"http://127.0.0.1:{port}/")

    @property
    def _webhook(self) -> str:
        file = self.folder / "webhook"
        return file.read_text() if file.exists() else ""

    def deliver(self, now: datetime, *, since: datetime | None) -> None:
        """Publish what has arrived since the last step, and the listings that name it."""
        come = self.plan.arrived(now)
        fresh = [one for one in come if since is None or one.at > since]
        for one in fresh:
            file = self.crawl / one.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.plan.body(one))
        for month in {one.month for one in fresh}:
            listed = (one.path for one in come if one.month == month)
            write_listings(self.crawl, list(dict.fromkeys(listed)))
