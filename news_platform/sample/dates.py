"""When the sample world happens: three November days, and the evening from which it is seen."""

from datetime import UTC, date, datetime, time, timedelta

WORLD_NOW = datetime(2025, 11, 3, 20, 0, tzinfo=UTC)
DAYS = (date(2025, 11, 1), date(2025, 11, 2), date(2025, 11, 3))

# The last story must lie in the past of the person who looks at the world.
_LAST_MINUTE_TODAY = 19 * 60 + 20


def opening(day: date) -> datetime:
    """Return the first minute of a day at which anybody publishes."""
    return datetime.combine(day, time(5), tzinfo=UTC)


def publishing_minutes(day: date) -> int:
    """Return for how many minutes after opening stories appear on a day."""
    last = _LAST_MINUTE_TODAY if day == WORLD_NOW.date() else 22 * 60
    return last - 5 * 60


def later(instant: datetime, minutes: int) -> datetime:
    """Return the instant some minutes later, but never in the world's future."""
    return min(instant + timedelta(minutes=minutes), WORLD_NOW - timedelta(minutes=20))
