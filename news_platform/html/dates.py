"""A date as text in, an aware UTC datetime out; text that is not clearly a date gives None."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# 2025-11-03, 2025-11-03T10:20, ...T10:20:30.123+0100, ...Z, with a space for the T.
_ISO = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})"
    r"(?:[T\s]\s*(\d{1,2}):?(\d{2})(?::?(\d{2}))?(?:[.,]\d+)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?",
    re.IGNORECASE,
)
_PLAIN_ISO = re.compile(
    r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:[01][1-9]|10|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\+00:00"
)
# Placeholders such as 0001-01-01 are not publication dates.
_EARLIEST_YEAR = 1990
# The standard library parses `GMT+9` as GMT.
_ODD_ZONE = re.compile(r"(?:GMT|UTC)[+-]\d")
# 28.04.2023 or 1. April 2025, 15:25; a date with slashes is ambiguous and not accepted.
_SHOWN = re.compile(
    r"(\d{1,2})\.?\s*(?:(\d{1,2})\.|([^\W\d]{3,10})\.?,?)\s*(\d{4})(?:\D{1,6}(\d{1,2}):(\d{2}))?"
)
_SHOWN_MONTH_FIRST = re.compile(
    r"([^\W\d]{3,10})\.?\s+(\d{1,2}),?\s+(\d{4})(?:\D{1,6}(\d{1,2}):(\d{2}))?"
)
# Months in English, German, French, Spanish, Italian and Portuguese, by their first letters.
_MONTHS = {
    1: ("jan", "jän", "ene", "gen"),
    2: ("feb", "fév", "fev"),
    3: ("mar", "mär"),
    4: ("apr", "avr", "abr"),
    5: ("may", "mai", "mag"),
    6: ("jun", "juin", "giu"),
    7: ("jul", "juil", "lug"),
    8: ("aug", "aoû", "ago"),
    9: ("sep", "set"),
    10: ("oct", "okt", "ott", "out"),
    11: ("nov",),
    12: ("dec", "dez", "déc", "dic"),
}


def parse_date(written: str) -> datetime | None:
    """Return the moment in UTC; a date without zone is UTC, without time it is midnight."""
    text = written.strip()
    moment = _iso(text) or _rfc822(text)
    return moment if moment and moment.year >= _EARLIEST_YEAR else None


def _iso(text: str) -> datetime | None:
    if _PLAIN_ISO.fullmatch(text):
        return datetime.fromisoformat(text)  # the most common form, and ten times as fast
    found = _ISO.match(text)
    if not found:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    clock = f"{int(hour or 0):02}:{minute or '00'}:{second or '00'}"
    try:
        moment = datetime.fromisoformat(f"{year}-{month}-{day}T{clock}{_offset(zone)}")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> str:
    if not zone or zone.upper() in ("Z", "UTC", "GMT"):
        return "+00:00"
    return zone if ":" in zone or len(zone) == 3 else f"{zone[:3]}:{zone[3:]}"


def _rfc822(text: str) -> datetime | None:
    moment = None if _ODD_ZONE.search(text) else parse_rfc822_date(text)
    try:
        return moment.astimezone(UTC) if moment else None
    except OverflowError:
        return None


def parse_rfc822_date(written: str) -> datetime | None:
    """Return the moment of an HTTP or mail date in its stated zone, else UTC; None if invalid."""
    try:
        moment = parsedate_to_datetime(written)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def iso_as_stated(written: str) -> str | None:
    """Return a date in ISO 8601 as ISO 8601, in the zone it states; None for any other text."""
    try:
        return datetime.fromisoformat(written).isoformat()
    except ValueError:
        return None


def parse_shown_date(shown: str) -> datetime | None:
    """Return the day (and time) in a short visible text; None if it is ambiguous."""
    if found := _SHOWN.search(shown):
        day, number, name, year, *clock = found.groups()
        month = int(number) if number else _month(name)
    elif found := _SHOWN_MONTH_FIRST.search(shown):
        name, day, year, *clock = found.groups()
        month = _month(name)
    else:
        return parse_date(shown)
    hour, minute = (int(part or 0) for part in clock)
    try:
        return datetime(int(year), month, int(day), hour, minute, tzinfo=UTC)
    except ValueError:
        return None


def _month(name: str) -> int:
    """Return the number of a month by its name, or 0."""
    begun = name.lower()
    # "juin" and "juillet" share three letters with "jun" and "jul": the longer match wins.
    matches = [(len(m), n) for n, ms in _MONTHS.items() for m in ms if begun.startswith(m)]
    return max(matches, default=(0, 0))[1]
