"""What a simulation would need without trouble: runs per asset, and when each day settles.

The ideal number of runs is that of the issue which asked for the simulation, and counts no ticks,
no outages and no order of sensors: raw_news every 4 hours per growing day, and of each follower one
run per settled day, range group and late group. When a day settles is what its rules in the
documentation say, by what ticks an hour apart can have seen. Nothing here is taken from the code
that follows the crawl.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from news_platform_tests.year.plan import Arrival, YearPlan

_COLLECT = timedelta(hours=4)
_QUIET = timedelta(hours=5)
# The 64 buckets of a simulation are 4 ranges of 16, and one run builds 4 ranges.
_RANGE_GROUPS = 1
_FOLLOWERS = {
    "domain_buckets": 1,
    "domain_store": _RANGE_GROUPS,
    "domain_catalog": 1,
}


def ideal_runs(plan: YearPlan) -> Mapping[str, int]:
    """Return the runs that each asset needs; a day of the backfill is a settled day, too."""
    by_day = _by_day(plan)
    collecting = sum(collecting_runs(by_day[day]) for day in plan.days)
    firsts = {day: by_day[day][0].at for day in plan.days}
    followed = sum(followed_groups(by_day[day], _after(firsts, day)) for day in plan.days)
    history = len(plan.history)
    return {
        "raw_news": collecting + history,
        **{asset: (followed + history) * runs for asset, runs in _FOLLOWERS.items()},
    }


def collecting_runs(arrivals: Sequence[Arrival]) -> int:
    """Return in how many spans of four hours, from its first WARC on, a day grew."""
    first = min(one.at for one in arrivals)
    return len({(one.at - first) // _COLLECT for one in arrivals})


def followed_groups(arrivals: Sequence[Arrival], later_day: datetime | None) -> int:
    """Return how often a day is followed: settled, with all late WARCs, and per re-publication.

    A day is settled when a later day is listed and nothing came for five hours.
    """
    moments = sorted(one.at for one in arrivals if not one.version)
    # The last day of all settles by itself.
    settled = max(moments[0] + _QUIET, later_day or moments[-1])
    for moment in moments:
        if moment > settled:
            return 2 + sum(one.version for one in arrivals)
        settled = max(settled, moment + _QUIET)
    return 1 + sum(one.version for one in arrivals)


def _after(firsts: Mapping[date, datetime], day: date) -> datetime | None:
    """Return when a later day was first listed."""
    return min((moment for other, moment in firsts.items() if other > day), default=None)


@dataclass(frozen=True, slots=True)
class DayGroup:
    """WARCs of a day that are followed together: when the last is seen, and when they must be."""

    day: date
    seen_at: datetime
    settled_at: datetime


def groups(plan: YearPlan, *, grows_on_tie: bool = True) -> Mapping[date, list[DayGroup]]:
    """Return when the WARCs of each day are to be followed, by what a tick can have seen.

    Sensors tick in any order. So a WARC that is seen in the tick in which its day settles either
    makes the day grow (`grows_on_tie`), or comes late because the day has just been followed.
    """
    by_day = _by_day(plan)
    seen = {
        day: sorted(_tick_after(plan, one.at) for one in by_day[day] if not one.version)
        for day in plan.days
    }
    firsts = {day: moments[0] for day, moments in seen.items()}
    late = timedelta(hours=plan.options.late_hours)
    return {
        day: [
            *_day_groups(day, seen[day], firsts, late=late, grows_on_tie=grows_on_tie),
            *(DayGroup(day, at, at) for at in _redone_at(plan, by_day[day])),
        ]
        for day in plan.days
    }


def _redone_at(plan: YearPlan, arrivals: Sequence[Arrival]) -> list[datetime]:
    return [_redone(plan, one) for one in arrivals if one.version]


def _redone(plan: YearPlan, one: Arrival) -> datetime:
    """Return when a WARC is collected again: a look at half past two finds it, a tick requests it.

    Its day is followed at once. A look during an outage finds nothing; the next night's does.
    """
    night = datetime.combine(one.at.date(), time(2, 30), UTC)
    look = night if night > one.at else night + timedelta(days=1)
    while _is_down(plan, plan.next_tick(look)):
        look += timedelta(days=1)
    found = plan.next_tick(look) + timedelta(minutes=30)
    return _tick_after(plan, _tick_after(plan, found) + timedelta(minutes=30))


def _tick_after(plan: YearPlan, moment: datetime) -> datetime:
    """Return the first tick from a moment on at which the crawl and the root answer."""
    tick = moment if plan.is_tick(moment) else plan.next_tick(moment)
    while _is_down(plan, tick):
        tick += plan.tick
    return tick


def _is_down(plan: YearPlan, moment: datetime) -> bool:
    return plan.is_down("crawl", moment) or plan.is_down("root", moment)


def _day_groups(
    day: date,
    seen: Sequence[datetime],
    firsts: Mapping[date, datetime],
    *,
    late: timedelta,
    grows_on_tie: bool,
) -> Iterator[DayGroup]:
    end = datetime.combine(day + timedelta(days=1), time(), UTC)
    later = [moment for other, moment in firsts.items() if other > day]
    is_after = min(later, default=end + late)
    last, settled = seen[0], seen[0] + _QUIET
    for moment in seen:
        due = max(settled, is_after)
        if moment > due or (moment == due and not grows_on_tie):
            break
        last, settled = moment, moment + _QUIET
    settled = max(settled, is_after)
    yield DayGroup(day, last, settled)
    together = {
        end + late * (int((one - end) / late) + 1): one
        for one in seen
        if one > settled or (one == settled and not grows_on_tie)
    }
    for moment, one in sorted(together.items()):
        yield DayGroup(day, one, moment)


def _by_day(plan: YearPlan) -> Mapping[date, list[Arrival]]:
    days: dict[date, list[Arrival]] = {}
    for one in plan.arrivals:
        days.setdefault(one.day, []).append(one)
    return days
