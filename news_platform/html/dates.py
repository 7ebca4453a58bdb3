"""Parse a date into an aware UTC datetime; text that is not clearly a date gives None."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

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
# A clock after a date, as in "1. April 2025, 15:25" or "April 1, 2025 at 3:25 pm".
_CLOCK = r"(?:\D{1,6}(?P<hour>\d{1,2}):(?P<minute>\d{2})(?:\s?(?P<half>[ap])\.?m\b)?)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\d)"
# How dates are shown, most certain first: 2020年3月4日, 2020-03-04, 3 March 2020, March 3, 2020,
# 3.3.2020, 3.3.20, 3/3/2020.
_SHOWN = tuple(
    re.compile(pattern + _CLOCK, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}\s?[年년]\s?(?P<month>\d{{1,2}})\s?[月월]\s?(?P<day>\d{{1,2}})\s?[日일]",
        rf"(?<![\d/.-]){_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})(?!\d)",
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th|er|º|ª)?(?:\s|-)*(?:of |de |d’|d')?"
        rf"(?P<name>[^\W\d_]{{3,12}})\.?,?(?:\s|-)*(?:de |del )?{_YEAR}",
        rf"(?<!\w)(?P<name>[^\W\d_]{{3,12}})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}",
        rf"(?<![\d.])(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}",
        r"(?<![^\s(|,])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<short>[0-3]\d)(?![\w.])",
        rf"(?<![\d/.-])(?P<first>\d{{1,2}})(?P<mark>[/-])(?P<second>\d{{1,2}})(?P=mark){_YEAR}",
    )
)
# Months by their first letters, in the languages of Europe, Turkish and Indonesian.
_MONTHS = {
    1: "jan jän ene gen sty led янв січ oca ocak ιαν yan tammi ianuarie siječ",
    2: "feb fév fev lut úno фев лют şub φεβ helmi veljač",
    3: "mar mär mrt marz bře мар бер mart μαρ μάρ maalis ožuj maret",
    4: "apr avr abr kwi dub апр кві nis απρ huhti travan",
    5: "may mai mag maj kvě мая май тра mayıs μαΐ μαι touko svib mei",
    6: "jun juin giu cze čvn červn červen июн чер haz ιουν kesä lip",
    7: "jul juil lug lipc lipi čvc července июл лип tem ιουλ heinä srp",
    8: "aug août aoû ago sie srpn авг сер ağu αυγ elo kolovoz agu",
    9: "sep set wrz zář сен вер eyl σεπ syys ruj",
    10: "oct okt ott out paź říj окт жов eki οκτ loka",
    11: "nov lis ноя лис kas νοε νοέ marras studen",
    12: "dec dez déc dic gru pro дек гру ara δεκ joulu prosin des",
}
_MONTH_BY_START = {start: month for month, starts in _MONTHS.items() for start in starts.split()}
_MAX_START = max(map(len, _MONTH_BY_START))
DayOrder = Literal["day first", "month first", "unknown"]


@dataclass(frozen=True, slots=True)
class StatedDate:
    """A date as it was stated: a moment in UTC, and whether its time and zone are known.

    A date without a time is midnight, a time without a zone counts as UTC.
    """

    at: datetime
    has_time: bool = False
    has_zone: bool = False


def parse_stated_date(written: str) -> StatedDate | None:
    """Return the date of an attribute or a JSON value: ISO 8601 or a mail date; None otherwise."""
    moment = parse_date(written)
    if moment is None:
        return None
    found = _ISO.match(written.strip())
    if found:
        return StatedDate(moment, found[4] is not None, found[7] is not None)
    return StatedDate(moment, ":" in written, ":" in written)


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


def find_shown_date(shown: str, order: DayOrder = "unknown") -> StatedDate | None:
    """Return the first date that a visible text shows.

    `order` says how the page's language writes 3/4/2020; unknown gives None for such a date.
    """
    for pattern in _SHOWN:
        for found in pattern.finditer(shown):
            if (date := _shown(found.groupdict(), order)) is not None:
                return date
    return None


def _shown(parts: dict[str, str | None], order: DayOrder) -> StatedDate | None:
    month, day = _month_and_day(parts, order)
    year = int(parts.get("year") or f"20{parts['short']}")
    hour, minute = int(parts["hour"] or 0), int(parts["minute"] or 0)
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"].lower() == "p" else 0)
    try:
        moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    if year < _EARLIEST_YEAR:
        return None
    return StatedDate(moment, has_time=parts["hour"] is not None)


def _month_and_day(parts: dict[str, str | None], order: DayOrder) -> tuple[int, int]:
    """Return month and day; 0 for a month that is not clear."""
    if (name := parts.get("name")) is not None:
        return _month(name), int(parts["day"] or 0)
    if (written := parts.get("first")) is None:
        return int(parts["month"] or 0), int(parts["day"] or 0)
    first, second = int(written), int(parts["second"] or 0)
    if first > 12 or (order == "day first" and second <= 12):
        return second, first
    if second > 12 or order == "month first" or first == second:
        return first, second
    return 0, 0


def _month(name: str) -> int:
    """Return the number of a month by its name, or 0."""
    begun = name.lower()
    # "juin" and "juillet" share three letters with "jun" and "jul": the longer match wins.
    starts = (begun[:size] for size in range(_MAX_START, 2, -1))
    return next((_MONTH_BY_START[start] for start in starts if start in _MONTH_BY_START), 0)
