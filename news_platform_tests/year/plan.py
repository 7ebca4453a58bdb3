"""What happens in a simulated year, from a seed: arrivals, outages, kills and other trouble.

Pure: the same options give the same plan, so a simulation that was killed goes on where it was.
"""

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property

from news_platform_tests.ccnews.archive import Record, article, gzipped, http

_LATE_SHARE = 0.03
# Uploads come hours after the time in a WARC's name.
_UPLOAD = (timedelta(hours=1), timedelta(hours=3))
_TOWNS = 48
# After the last day its late WARCs come, and are followed together at most twice as long after it.
_DRAIN_HOURS = 12


@dataclass(frozen=True, slots=True)
class Arrival:
    """One WARC that the crawl publishes at a moment; `version` 1 is published over version 0."""

    at: datetime
    day: date
    number: int
    version: int = 0

    @property
    def name(self) -> str:
        """Return the WARC's file name."""
        return f"CC-NEWS-{_named_at(self.day, self.number):%Y%m%d%H%M%S}-{self.number:05d}.warc.gz"

    @property
    def path(self) -> str:
        """Return the WARC's path in the crawl."""
        return f"crawl-data/CC-NEWS/{self.day:%Y}/{self.day:%m}/{self.name}"

    @property
    def month(self) -> date:
        """Return the first day of the month whose listing names the WARC."""
        return self.day.replace(day=1)


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which the crawl or the root does not answer."""

    thing: str
    start: datetime
    hours: float

    @property
    def end(self) -> datetime:
        """Return when it is over."""
        return self.start + timedelta(hours=self.hours)


@dataclass(frozen=True, slots=True)
class Trouble:
    """How much goes wrong; hours of outages and days count from the start of the simulation."""

    failing_share: float = 0.05
    # (thing, hour, hours)
    outages: tuple[tuple[str, float, float], ...] = ()
    kill_days: tuple[int, ...] = ()
    republished_days: tuple[int, ...] = ()
    republished_after: float = 4
    broken_day: int | None = None


@dataclass(frozen=True, slots=True)
class YearOptions:
    """The size of a simulation and its trouble; `backfill_on` is the day on which it begins."""

    days: int
    seed: int = 1
    warcs: int = 18
    start: date = date(2025, 1, 1)
    backfill_days: int = 90
    backfill_on: int = 30
    backfill_warcs: int = 18
    # How late a WARC comes at most, and how often late ones are followed together.
    late_hours: int = 72
    step_minutes: int = 60
    trouble: Trouble = field(default_factory=Trouble)


@dataclass(frozen=True)
class YearPlan:
    """Everything that will happen."""

    options: YearOptions

    @property
    def start(self) -> datetime:
        """Return the first moment."""
        return datetime.combine(self.options.start, time(), UTC)

    @property
    def end(self) -> datetime:
        """Return the moment after which nothing more can happen."""
        late = timedelta(hours=2 * self.options.late_hours + _DRAIN_HOURS)
        return self.start + timedelta(days=self.options.days) + late

    @property
    def tick(self) -> timedelta:
        """Return the time between two ticks of the sensors."""
        return timedelta(minutes=self.options.step_minutes)

    def is_tick(self, now: datetime) -> bool:
        """Return whether the sensors tick at this moment."""
        return (now - self.start) % self.tick == timedelta()

    def next_tick(self, now: datetime, *, count: int = 1) -> datetime:
        """Return the first tick after a moment whose number is a multiple of `count`."""
        every = self.tick * count
        return now + every - (now - self.start) % every

    @cached_property
    def days(self) -> Sequence[date]:
        """Return the days that the crawl publishes in the simulation."""
        return [self.options.start + timedelta(days=n) for n in range(self.options.days)]

    @cached_property
    def history(self) -> Sequence[date]:
        """Return the days before the simulation, which the backfill collects."""
        count = self.options.backfill_days
        return [self.options.start - timedelta(days=n) for n in range(count, 0, -1)]

    @cached_property
    def arrivals(self) -> Sequence[Arrival]:
        """Return all WARCs in the order of their arrival."""
        rng = random.Random(self.options.seed)
        found = [*self._history(), *(one for day in self.days for one in self._day(day, rng))]
        trouble = self.options.trouble
        for number in trouble.republished_days:
            # Drawn apart, so that a longer plan begins like a shorter one.
            own = random.Random(f"republished {number} {self.options.seed}")
            old = own.choice([one for one in found if one.day == self.days[number]])
            found.append(
                Arrival(
                    old.at + timedelta(days=trouble.republished_after),
                    old.day,
                    old.number,
                    version=1,
                )
            )
        return sorted(found, key=lambda one: (one.at, one.path))

    def arrived(self, now: datetime) -> Sequence[Arrival]:
        """Return the WARCs that have come until a moment."""
        return self.arrivals[: bisect_right(self.arrivals, now, key=lambda one: one.at)]

    def _history(self) -> Iterator[Arrival]:
        for day in self.history:
            for number in range(self.options.backfill_warcs):
                yield Arrival(_named_at(day, number), day, number)

    def _day(self, day: date, rng: random.Random) -> Iterator[Arrival]:
        for number in range(self.options.warcs):
            upload = _UPLOAD[0] + (_UPLOAD[1] - _UPLOAD[0]) * rng.random()
            is_late = rng.random() < _LATE_SHARE
            late = timedelta(hours=self.options.late_hours * rng.random() * is_late)
            yield Arrival(_named_at(day, number) + upload + late, day, number)

    @cached_property
    def broken(self) -> Arrival | None:
        """Return the WARC that is broken for good."""
        if (number := self.options.trouble.broken_day) is None:
            return None
        return next(one for one in self.arrivals if one.day == self.days[number])

    @cached_property
    def outages(self) -> Sequence[Outage]:
        """Return the times in which something does not answer."""
        return [
            Outage(thing, self.start + timedelta(hours=hour), hours)
            for thing, hour, hours in self.options.trouble.outages
        ]

    def is_down(self, thing: str, now: datetime) -> bool:
        """Return whether the crawl or the root does not answer now."""
        return any(one.thing == thing and one.start <= now < one.end for one in self.outages)

    @cached_property
    def kills(self) -> Sequence[datetime]:
        """Return when the process is killed."""
        rng = random.Random(f"kills {self.options.seed}")
        days = (self.start + timedelta(days=day) for day in self.options.trouble.kill_days)
        return [day + timedelta(hours=rng.uniform(4, 24)) for day in days]

    def fails(self, run_number: int) -> str:
        """Return how the n-th run fails: its worker is lost, or a store hiccups; "" if it runs."""
        rng = random.Random(f"run {run_number} of {self.options.seed}")
        if rng.random() >= self.options.trouble.failing_share:
            return ""
        return rng.choice(["lost", "crawl", "root"])

    def body(self, one: Arrival) -> bytes:
        """Return the bytes of a WARC; those of the broken one end in the middle of a record."""
        whole = gzipped(_records(one))
        is_broken = self.broken is not None and one.path == self.broken.path
        return whole[:-40] if is_broken else whole


def _records(one: Arrival) -> list[Record]:
    """Return a page of this WARC alone, and one that a neighbour has nearly word for word."""
    rng = random.Random(f"{one.name} {one.version}")
    town, other = rng.randrange(_TOWNS), rng.randrange(_TOWNS)
    own = article(f"Council {rng.randrange(10**6)} met in town {town} at {one.name}.")
    agency = article(f"The agency reports from the capital on {one.day}, item {one.number // 2}.")
    return [
        Record(http(own), uri=f"https://town{town}.example/{one.name}/{one.version}"),
        Record(http(agency), uri=f"https://town{other}.example/agency/{one.name}"),
        Record(http("{}", mime="application/json"), uri=f"https://api{town}.example/x"),
    ]


def _named_at(day: date, number: int) -> datetime:
    return datetime.combine(day, time(), UTC) + timedelta(minutes=80 * number)
