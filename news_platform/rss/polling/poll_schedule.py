"""When to ask a feed again and how healthy it is: pure arithmetic on what the last answers told."""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from news_platform.rss.options import PollOptions

_JITTER = 0.1


def interval_seconds(
    dates: Iterable[datetime],
    *,
    now: datetime,
    previous: int,
    found_new: bool,
    options: PollOptions,
) -> int:
    """Return how long to wait: half the feed's own rhythm; longer each time nothing is new."""
    if found_new:
        gap = _rhythm_seconds(dates, now=now) or options.min_interval_seconds
        wanted = gap / 2
    else:
        wanted = max(previous, options.min_interval_seconds) * 1.5
    return int(min(max(wanted, options.min_interval_seconds), options.max_interval_seconds))


def jittered(seconds: int, *, key: str) -> int:
    """Return the interval moved by up to a tenth, always the same for the same key."""
    draw = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**32
    return int(seconds * (1 - _JITTER + 2 * _JITTER * draw))


def failure_wait_seconds(errors_in_row: int, *, options: PollOptions) -> int:
    """Return how long to wait after failures: longer each time, a slow probe once dead."""
    if errors_in_row >= options.errors_until_dead:
        return options.probe_interval_seconds
    wait = options.min_interval_seconds * 2 ** min(errors_in_row - 1, 16)
    return int(min(wait, options.probe_interval_seconds))


def days_without_update(last_entry: datetime | None, *, now: datetime) -> int:
    """Return whole days since the newest entry, 0 when there is none or it lies ahead."""
    return max((now - last_entry).days, 0) if last_entry else 0


def health_score(*, errors_in_row: int, no_updates_days: int) -> int:
    """Return 0 to 100: 10 less a failure in a row, 2 less a silent day (at most 60)."""
    return max(100 - 10 * errors_in_row - min(2 * no_updates_days, 60), 0)


def newest(dates: Iterable[datetime | None], *, now: datetime) -> datetime | None:
    """Return the newest date that does not lie ahead of us by more than a day."""
    limit = now + timedelta(days=1)
    return max((date for date in dates if date is not None and date <= limit), default=None)


def _rhythm_seconds(dates: Iterable[datetime], *, now: datetime) -> float | None:
    """Return the median gap between the newest entries."""
    latest = sorted((date for date in dates if date <= now), reverse=True)[:20]
    gaps = [(a - b).total_seconds() for a, b in pairwise(latest)]
    return median(gaps) if gaps else None
