"""Retry-After and Cache-Control headers in, seconds to wait out.

Servers write anything here: superscript digits, numbers of 5,000 digits, dates with impossible
offsets. Nothing raises: a value that cannot be read gives None, a longer wait than
`MAX_WAIT_SECONDS` is cut to it.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from news_platform.html.dates import parse_rfc822_date

# The longest wait that a header can cause.
MAX_WAIT_SECONDS = 24 * 3600
# ASCII only: `\d` and `str.isdigit` accept digits that `int` rejects.
_SECONDS = re.compile(r"[0-9]+")
_MAX_AGE = re.compile(r"(?:^|[\s,])(?:s-maxage|max-age)\s*=\s*\"?([0-9]+)", re.IGNORECASE)
# An HTTP date has 29 characters; two of them joined by a proxy still fit.
_LONGEST_DATE = 64


def requested_wait_seconds(headers: Mapping[str, str], *, now: datetime) -> int:
    """Return the longer wait of the two headers (lower-case names), 0 when there is none."""
    retry_after = parse_retry_after(headers.get("retry-after", ""), now=now)
    return max(retry_after or 0, parse_max_age(headers.get("cache-control", "")) or 0)


def parse_retry_after(value: str, *, now: datetime) -> int | None:
    """Return the seconds from `now` that a Retry-After header asks for, 0 for a past date.

    None means that the value cannot be read: empty, negative, fractional, not ASCII, or a date out
    of range. Of several numbers (a repeated header, joined by commas) the largest counts.
    """
    parts = [part.strip() for part in value.split(",")]
    numbers = [_capped(part) for part in parts if _SECONDS.fullmatch(part)]
    return max(numbers) if numbers else _seconds_until(value.strip(), now=now)


def parse_max_age(value: str) -> int | None:
    """Return the first `s-maxage` or `max-age` of a Cache-Control header; None without one."""
    found = _MAX_AGE.search(value)
    return _capped(found[1]) if found else None


def _capped(digits: str) -> int:
    # `int` refuses more than 4,300 digits.
    short = digits.lstrip("0")[:9]
    return min(int(short or 0), MAX_WAIT_SECONDS)


def _seconds_until(date: str, *, now: datetime) -> int | None:
    if len(date) > _LONGEST_DATE:
        return None
    moment = parse_rfc822_date(date)
    if moment is None:
        return None
    return min(max(int((moment - now).total_seconds()), 0), MAX_WAIT_SECONDS)
