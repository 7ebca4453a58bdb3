"""The plan of a simulation and what it would need without trouble, on small examples."""

from datetime import UTC, date, datetime, timedelta

from news_platform_tests.year.ideal import (
    collecting_runs,
    followed_groups,
    groups,
    ideal_runs,
)
from news_platform_tests.year.plan import Arrival, Trouble, YearOptions, YearPlan

DAY = date(2025, 1, 1)
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
CALM = YearOptions(days=3, backfill_days=0, trouble=Trouble(failing_share=0.0))


def _arrivals(*hours: float) -> list[Arrival]:
    return [Arrival(NOON + timedelta(hours=hour), DAY, n) for n, hour in enumerate(hours)]


def _start(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def test_a_growing_day_is_collected_every_four_hours() -> None:
    assert collecting_runs(_arrivals(0)) == 1
    assert collecting_runs(_arrivals(0, 1, 2, 3.9)) == 1
    assert collecting_runs(_arrivals(0, 1, 5, 6)) == 2
    assert collecting_runs(_arrivals(0, 4, 8, 11.9)) == 3
    assert collecting_runs(_arrivals(0, 48, 49)) == 2, "late ones, too"
    assert collecting_runs(_arrivals(0, 48, 55)) == 3


def test_a_day_is_followed_once_settled_once_with_all_late_warcs_and_when_published_again() -> None:
    later = NOON + timedelta(hours=10)
    assert followed_groups(_arrivals(0, 3, 7), later) == 1
    assert followed_groups(_arrivals(0, 9), later) == 1, "no later day was listed yet"
    assert followed_groups(_arrivals(0, 9, 13.9), later) == 1, "not quiet for five hours"
    assert followed_groups(_arrivals(0, 9, 14.1), later) == 2
    assert followed_groups(_arrivals(0, 9, 14.1, 40, 80), later) == 2, "all late ones together"
    assert followed_groups(_arrivals(0, 30), None) == 1, "the last day of all"
    again = Arrival(NOON + timedelta(days=4), DAY, 0, version=1)
    assert followed_groups([*_arrivals(0, 9, 14.1), again], later) == 3


def test_the_ideal_is_one_run_per_group_and_follower_and_per_day_of_the_backfill() -> None:
    plan = YearPlan(YearOptions(days=3, backfill_days=2, trouble=CALM.trouble))
    late = [one for one in plan.arrivals if one.at - _start(one.day) > timedelta(hours=32)]
    days = 3 + len({one.day for one in late})
    ideal = ideal_runs(plan)
    assert {ideal[asset] for asset in ideal if asset != "raw_news"} == {days + 2}
    assert len(ideal) == 4
    # 18 WARCs in about 25 hours.
    assert 3 * 6 + 2 <= ideal["raw_news"] <= 3 * 7 + 2 + len(late)


def test_outages_and_ticks_do_not_change_the_ideal() -> None:
    trouble = Trouble(outages=(("crawl", 20, 24), ("root", 50, 1)))
    troubled = YearPlan(YearOptions(days=3, backfill_days=0, step_minutes=180, trouble=trouble))
    assert ideal_runs(troubled) == ideal_runs(YearPlan(CALM))


def test_a_day_settles_five_hours_after_a_tick_saw_its_last_warc_in_time() -> None:
    plan = YearPlan(CALM)
    *days, last = plan.days
    for day in days:
        found = groups(plan)[day]
        seen = [one.at for one in plan.arrivals if one.day == day]
        settled = found[0].settled_at
        in_time = [one for one in seen if one <= settled]
        assert plan.is_tick(settled)
        assert timedelta(hours=5) <= settled - max(in_time) < timedelta(hours=6)
        assert len(found) == 1 + bool(len(in_time) < len(seen))
    (group,) = groups(plan)[last]
    assert group.settled_at == _start(last) + timedelta(days=1, hours=CALM.late_hours)


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    again, other = YearPlan(CALM), YearPlan(YearOptions(days=3, seed=2, backfill_days=0))
    assert YearPlan(CALM).arrivals == again.arrivals
    assert [one.at for one in other.arrivals] != [one.at for one in again.arrivals]
    one = again.arrivals[0]
    assert again.body(one) == YearPlan(CALM).body(one)


def test_a_longer_plan_begins_like_a_shorter_one() -> None:
    trouble = Trouble(republished_days=(1,), kill_days=(0, 1))
    short, long = (
        YearPlan(YearOptions(days=days, backfill_days=2, trouble=trouble)) for days in (9, 12)
    )
    until = short.start + timedelta(days=8)
    assert short.arrived(until) == long.arrived(until)
    assert sum(one.version for one in short.arrived(until)) == 1
    assert short.kills == long.kills


def test_trouble_comes_as_planned() -> None:
    trouble = Trouble(outages=(("crawl", 12, 8),), republished_days=(1,), broken_day=0)
    plan = YearPlan(YearOptions(days=3, backfill_days=0, trouble=trouble))
    assert plan.is_down("crawl", NOON) and not plan.is_down("root", NOON)
    assert not plan.is_down("crawl", NOON + timedelta(hours=8))
    (again,) = [one for one in plan.arrivals if one.version]
    (first,) = [one for one in plan.arrivals if one.path == again.path and not one.version]
    assert plan.body(again) != plan.body(first)
    assert plan.broken is not None and plan.broken.day == DAY
    shares = [bool(plan.fails(number)) for number in range(2_000)]
    assert 0.03 < sum(shares) / len(shares) < 0.07
