"""When to poll a feed again, and how healthy it is."""

from datetime import UTC, datetime, timedelta

import pytest

from news_platform.rss import poll_results
from news_platform.rss.poll_results import PollOptions

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
HOUR = 3600
OPTIONS = PollOptions()


def every(hours: float, *, count: int = 10) -> list[datetime]:
    return [NOW - timedelta(hours=hours * n) for n in range(count)]


@pytest.mark.parametrize(
    ("dates", "previous", "found_new", "hours"),
    [
        pytest.param(every(0.1), 0, True, 3, id="a busy feed: as often as allowed"),
        pytest.param(every(8), 0, True, 4, id="half its rhythm"),
        pytest.param(every(100), 0, True, 6, id="a slow feed: as rarely as allowed"),
        pytest.param([], 0, True, 3, id="no dates"),
        pytest.param([], 3 * HOUR, False, 4.5, id="nothing new: half as long again"),
        pytest.param([], 6 * HOUR, False, 6, id="nothing new for long"),
    ],
)
def test_the_interval_follows_how_often_the_feed_publishes(
    dates: list[datetime], previous: int, found_new: bool, hours: float
) -> None:
    seconds = poll_results.interval_seconds(
        dates, now=NOW, previous=previous, found_new=found_new, options=OPTIONS
    )
    assert seconds == hours * HOUR


def test_jitter_stays_within_a_tenth_and_is_always_the_same() -> None:
    moved = [poll_results.jittered(1_000, key=f"feed {n}") for n in range(100)]
    assert all(900 <= seconds <= 1_100 for seconds in moved)
    assert len(set(moved)) > 50
    assert moved == [poll_results.jittered(1_000, key=f"feed {n}") for n in range(100)]


def test_the_wait_doubles_with_each_failure_up_to_the_probe() -> None:
    waits = [poll_results.failure_wait_seconds(n, options=OPTIONS) for n in (1, 2, 3, 10, 50)]
    assert waits == [3 * HOUR, 6 * HOUR, 12 * HOUR, 168 * HOUR, 168 * HOUR]


@pytest.mark.parametrize(
    ("errors", "days", "score"), [(0, 0, 100), (1, 0, 90), (0, 5, 90), (0, 99, 40), (9, 99, 0)]
)
def test_health_falls_with_failures_and_silence(errors: int, days: int, score: int) -> None:
    assert poll_results.health_score(errors_in_row=errors, no_updates_days=days) == score


def test_future_dates_are_not_the_newest() -> None:
    ahead = NOW + timedelta(days=400)
    assert poll_results.newest_date([NOW, None, ahead], now=NOW) == NOW
    assert poll_results.newest_date([], now=NOW) is None
    assert poll_results.days_without_update(None, now=NOW) == 0
    assert poll_results.days_without_update(NOW - timedelta(days=3, hours=5), now=NOW) == 3
