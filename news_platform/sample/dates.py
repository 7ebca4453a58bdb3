"""The dates of the sample world: three days in November and its present moment."""

from datetime import UTC, date, datetime, time, timedelta

WORLD_NOW = datetime(2025, 11, 3, 20, 0, tzinfo=UTC)
DAYS = (date(2025, 11, 1), date(2025, 11, 2), date(2025, 11, 3))

# The last story must be published before the world's present moment.
_LAST_MINUTE_TODAY = 19 * 60 + 20


def opening(day: date) -> datetime:
    """Return the minute of a day at which publishing starts."""
    return datetime.combine(day, time(5), tzinfo=UTC)


def publishing_minutes(day: date) -> int:
    """Return for how many minutes after the start stories are published."""
    last = _LAST_MINUTE_TODAY if day == WORLD_NOW.date() else 22 * 60
    return last - 5 * 60


def later(instant: datetime, minutes: int) -> datetime:
    """Return the instant some minutes later, but not after the world's present moment."""
    return min(instant + timedelta(minutes=minutes), WORLD_NOW - timedelta(minutes=20))
