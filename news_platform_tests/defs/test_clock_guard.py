"""A jump of the machine's clock is noticed by its uptime, and accepted after a day."""

from news_platform.defs.domain_automation import ClockGuard, clock_jump_seconds

HOUR, DAY = 3_600.0, 86_400.0


def test_a_clock_that_runs_with_the_uptime_has_not_jumped() -> None:
    guard = ClockGuard(1e9, 0.0)
    assert guard.jump_seconds(wall=1e9 + 40 * DAY + 60, uptime=40 * DAY) == 0
    assert clock_jump_seconds() == 0


def test_a_jump_is_reported_until_the_clock_is_right_again() -> None:
    guard = ClockGuard(1e9, 0.0)
    assert guard.jump_seconds(wall=1e9 + 8 * DAY, uptime=HOUR) == 8 * DAY - HOUR
    assert guard.jump_seconds(wall=1e9 - 8 * DAY, uptime=2 * HOUR) == -8 * DAY - 2 * HOUR
    assert guard.jump_seconds(wall=1e9 + 3 * HOUR, uptime=3 * HOUR) == 0


def test_a_jump_that_lasts_for_a_day_was_a_correction() -> None:
    guard = ClockGuard(1e9, 0.0)
    assert guard.jump_seconds(wall=1e9 + 9 * DAY, uptime=0) != 0
    assert guard.jump_seconds(wall=1e9 + 10 * DAY, uptime=DAY) == 0
    assert guard.jump_seconds(wall=1e9 + 11 * DAY, uptime=2 * DAY) == 0
    assert guard.jump_seconds(wall=1e9 + 31 * DAY, uptime=2 * DAY) == 20 * DAY
