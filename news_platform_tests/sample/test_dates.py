"""The calendar of the world: nothing happens in its future."""

from datetime import UTC, date, timedelta

import pytest

from news_platform.sample.dates import DAYS, WORLD_NOW, later, opening, publishing_minutes


@pytest.mark.parametrize("day", DAYS)
def test_a_day_opens_at_five_and_closes_before_midnight(day: date) -> None:
    start = opening(day)
    end = start + timedelta(minutes=publishing_minutes(day))
    assert (start.hour, start.tzinfo) == (5, UTC)
    assert end.date() == day


def test_the_last_day_closes_before_now() -> None:
    today = DAYS[-1]
    closing = opening(today) + timedelta(minutes=publishing_minutes(today))
    assert timedelta() < WORLD_NOW - closing < timedelta(hours=1)


def test_later_is_later_but_never_in_the_future() -> None:
    morning = opening(DAYS[0])
    assert later(morning, 90) == morning + timedelta(minutes=90)
    assert morning < later(morning, 100_000) < WORLD_NOW
