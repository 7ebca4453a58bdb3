"""A day as text, date or datetime in, a date out."""

from datetime import UTC, date, datetime

from news_platform.errors import InputError


def as_day(given: str | date, *, name: str = "day") -> date:
    """Return the day; a datetime gives its day in UTC.

    Raise InputError, naming the value `name`, if the text is not a date.
    """
    if isinstance(given, datetime):
        return (given.astimezone(UTC) if given.tzinfo else given).date()
    try:
        return date.fromisoformat(given) if isinstance(given, str) else given
    except ValueError as error:
        message = f"invalid {name} {given!r}: expected YYYY-MM-DD"
        raise InputError(message, thing=str(given)) from error
