"""The plan of a simulation and what it would need without trouble, on small examples."""

from datetime import UTC, date, datetime, timedelta

from news_platform_tests.year.ideal import (
    collecting_runs,
    followed_groups,
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
