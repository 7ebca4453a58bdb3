"""Days, sizes, time spans and names as people write and read them, and cells of spreadsheets."""

import difflib
from collections.abc import Collection
from datetime import UTC, date, datetime

from news_platform.errors import InputError

# By these a spreadsheet knows a formula, which may read files or call an address.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
# Of the values that a message lists.
_SHOWN_NAMES = 12
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


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


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return the cure for an unknown name: the known one that is most like it, or all of them."""
    by_folded = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]!r}?"
    shown = sorted(known)[:_SHOWN_NAMES]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return f"expected one of {', '.join(shown)}{more}" if shown else "there are none yet"


def number_of(count: int, one: str, many: str = "") -> str:
    """Return how many there are: `1 feed`, `1,200 feeds`; `many` is a plural without a plain s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def bytes_text(count: int) -> str:
    """Return the count in the largest unit that leaves a number of at least 1: `12.3 MB`."""
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def age_text(seconds: float) -> str:
    """Return a time span in the largest fitting unit, such as `3 min` or `2 days`."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def spreadsheet_cell(value: object) -> object:
    """Return a value of a CSV file; a text that a spreadsheet would run is quoted by a `'`."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULAS)
    return f"'{value}" if is_formula else value


def plain_cell(text: str) -> str:
    """Return the text of a cell of a CSV file of ours."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(_FORMULAS) else text
