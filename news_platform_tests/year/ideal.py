"""What a simulation would need without trouble: runs per asset, and when WARCs must be followed.

The ideal number of runs is that of the issue which asked for the simulation, and counts no ticks,
no outages and no order of sensors: raw_news every 4 hours per growing day, and of each follower one
run per settled day, range group and late group. When a day settles is what its rules in the
documentation say. Nothing here is taken from the code that follows the crawl.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from news_platform_tests.year.plan import Arrival, YearPlan

_COLLECT = timedelta(hours=4)
_QUIET = timedelta(hours=5)
# After so long, all of a day that is not late is uploaded, and a later day is listed.
_UPLOADED = timedelta(hours=3)
# The 32 buckets of a simulation are 2 ranges of 16, and one run builds up to 4 ranges.
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


def followed_by(plan: YearPlan, one: Arrival) -> datetime:
    """Return when a WARC must have been followed at the latest, outages apart.

    A day is followed after five quiet hours, and a late WARC with it or with the late ones of its
    span. One that was published again is found by a look at half past two.
    """
    if one.version:
        look = _next_night(one.at)
        while plan.is_down("crawl", plan.next_tick(look)) or plan.is_down("root", look):
            look += timedelta(days=1)
        return look + 3 * plan.tick
    end = datetime.combine(one.day + timedelta(days=1), time(), UTC)
    late = timedelta(hours=plan.options.late_hours)
    # No later day is listed after the last one, which settles by itself.
    last = is_after = end + (late if one.day == plan.days[-1] else _UPLOADED)
    for other in plan.arrivals:
        if other.day == one.day and not other.version and other.at <= last + _QUIET:
            last = max(last, other.at)
    settled = last + _QUIET
    if one.at <= is_after:
        return settled
    with_late_ones = end + late * ((one.at - end) // late + 1)
    return max(settled, with_late_ones) if one.at <= last else with_late_ones


def _next_night(moment: datetime) -> datetime:
    night = datetime.combine(moment.date(), time(2, 30), UTC)
    return night if night > moment else night + timedelta(days=1)


def _by_day(plan: YearPlan) -> Mapping[date, list[Arrival]]:
    days: dict[date, list[Arrival]] = {}
    for one in plan.arrivals:
        days.setdefault(one.day, []).append(one)
    return days
