"""The plan of a simulation and what it would need without trouble, on small examples."""

from datetime import UTC, date, datetime, timedelta

from news_platform_tests.year.ideal import collecting_runs, groups, ideal_runs
from news_platform_tests.year.plan import Arrival, Trouble, YearOptions, YearPlan

DAY = date(2025, 1, 1)
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
CALM = YearOptions(days=3, backfill_days=0, trouble=Trouble(failing_share=0.0))


def _arrivals(*hours: float) -> list[Arrival]:
    return [Arrival(NOON + timedelta(hours=hour), DAY, n) for n, hour in enumerate(hours)]


def test_a_growing_day_is_collected_every_four_hours() -> None:
    assert collecting_runs(_arrivals(0)) == 1
    assert collecting_runs(_arrivals(0, 1, 2, 3)) == 2, "the first, and all others together"
    assert collecting_runs(_arrivals(0, 1, 5, 6)) == 3
    assert collecting_runs(_arrivals(0, 48)) == 2


def test_a_day_settles_five_hours_after_its_last_warc_and_late_ones_form_groups() -> None:
    for day, found in groups(YearPlan(CALM)).items():
        assert found[0].settled_at >= datetime(day.year, day.month, day.day, 23, tzinfo=UTC)
        assert [one.settled_at for one in found] == sorted(one.settled_at for one in found)
    ideal = ideal_runs(YearPlan(CALM))
    assert ideal["domain_buckets"] == sum(map(len, groups(YearPlan(CALM)).values())) >= 3
    assert ideal["raw_news"] >= 3 * 6


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
