"""What a simulation would need without trouble: runs per asset, and when each day settles.

Written from the rules of the documentation, not from the code that follows the crawl.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from news_platform_tests.year.plan import Arrival, YearPlan

_COLLECT = timedelta(hours=4)
_QUIET = timedelta(hours=5)


@dataclass(frozen=True, slots=True)
class DayGroup:
    """WARCs of a day that are followed together, and from when on."""

    day: date
    settled_at: datetime


def collecting_runs(arrivals: Sequence[Arrival]) -> int:
    """Return how many runs collect the WARCs of one day, at most one every four hours."""
    runs, last = 0, None
    for one in sorted(arrivals, key=lambda one: one.at):
        if last is None or one.at > last:
            runs += 1
            last = one.at if last is None else max(one.at, last + _COLLECT)
    return runs


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
            *(DayGroup(day, _redone(plan, one)) for one in by_day[day] if one.version),
        ]
        for day in plan.days
    }


def _redone(plan: YearPlan, one: Arrival) -> datetime:
    """Return when a WARC is collected again: a look at half past two finds it, a tick requests it.

    Its day is followed at once.
    """
    night = datetime.combine(one.at.date(), time(2, 30), UTC)
    look = night if night > one.at else night + timedelta(days=1)
    found = _tick_after(plan, look) + timedelta(minutes=30)
    return _tick_after(plan, _tick_after(plan, found) + timedelta(minutes=30))


def _tick_after(plan: YearPlan, moment: datetime) -> datetime:
    """Return the first tick from a moment on at which the crawl and the root answer."""
    tick = moment if plan.is_tick(moment) else plan.next_tick(moment)
    while plan.is_down("crawl", tick) or plan.is_down("root", tick):
        tick += plan.tick
    return tick


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
    settled = seen[0] + _QUIET
    for moment in seen:
        due = max(settled, is_after)
        if moment > due or (moment == due and not grows_on_tie):
            break
        settled = moment + _QUIET
    settled = max(settled, is_after)
    yield DayGroup(day, settled)
    together = {
        end + late * (int((one - end) / late) + 1)
        for one in seen
        if one > settled or (one == settled and not grows_on_tie)
    }
    for moment in sorted(together):
        yield DayGroup(day, moment)


def ideal_runs(plan: YearPlan) -> Mapping[str, int]:
    """Return the runs that each asset needs: also one of each per day of the backfill."""
    collecting = sum(
        collecting_runs(found) for day, found in _by_day(plan).items() if day in plan.days
    )
    followed = sum(map(len, groups(plan).values())) + len(plan.history)
    return {
        "raw_news": collecting + len(plan.history),
        **dict.fromkeys(("domain_buckets", "domain_store", "domain_catalog"), followed),
    }


def _by_day(plan: YearPlan) -> Mapping[date, list[Arrival]]:
    days: dict[date, list[Arrival]] = {}
    for one in plan.arrivals:
        days.setdefault(one.day, []).append(one)
    return days
