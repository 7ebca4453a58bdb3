"""Compute when to poll a feed again and how healthy it is, from its entries and failures."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from news_platform.rss.feed_settings import parse_settings
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns

_HOUR = 3600
_DAY = 24 * _HOUR
# Spreads feeds that were registered together over a fifth of the interval.
_JITTER = 0.1
# Enough entries to see how often a feed publishes now.
_RECENT_ENTRIES = 20


@dataclass(frozen=True, slots=True)
class PollOptions:
    """How often feeds are polled and how much is taken from one response."""

    # New articles of one poll that are taken; further ones become skipped rows.
    max_items_per_feed: int = 2_000
    min_interval_seconds: int = 3 * _HOUR
    max_interval_seconds: int = 6 * _HOUR
    # The shortest interval of a feed that turned over between two polls.
    turnover_interval_seconds: int = _HOUR // 4
    # Dead feeds are still polled, this rarely, because some come back.
    probe_interval_seconds: int = 7 * _DAY
    errors_until_dead: int = 10
    # If a poller dies, its feeds are due again after this; a poll must end before.
    lease_seconds: int = 3600
    concurrency: int = 64
    max_body_bytes: int = 5 * 1024 * 1024
    # Feeds per write transaction.
    batch_size: int = 200
    parsers: int = 1
    polls_kept_days: int = 30
    # Neither polled nor added.
    takedowns: Takedowns = NO_TAKEDOWNS


def feed_options(options: PollOptions, own_settings: str) -> PollOptions:
    """Return the options for a feed with settings of its own; raise InputError if these are bad."""
    own = parse_settings(own_settings)
    if own.max_items:
        options = replace(options, max_items_per_feed=own.max_items)
    if own.interval_seconds:
        seconds = own.interval_seconds
        options = replace(
            options,
            min_interval_seconds=seconds,
            max_interval_seconds=seconds,
            turnover_interval_seconds=seconds,
        )
    return options


def interval_seconds(
    dates: Iterable[datetime],
    *,
    now: datetime,
    previous: int,
    found_new: bool,
    options: PollOptions,
) -> int:
    """Return the wait until the next poll, within the bounds of the options.

    After new entries it is half the usual gap between them; otherwise 1.5 times the previous wait.
    """
    if found_new:
        gap = usual_gap_seconds(dates, now=now) or options.min_interval_seconds
        wanted = gap / 2
    else:
        wanted = max(previous, options.min_interval_seconds) * 1.5
    return int(min(max(wanted, options.min_interval_seconds), options.max_interval_seconds))


def turnover_interval_seconds(
    dates: Iterable[datetime], *, previous: int, turned_over: bool, options: PollOptions
) -> int:
    """Return the wait for a feed that may miss items: half of the time that its entries span.

    If it has just turned over, the wait is also at most half of the previous one.
    """
    known = list(dates)
    wanted = float(previous) / 2 if turned_over else float(previous)
    if len(known) > 1:
        wanted = min(wanted, (max(known) - min(known)).total_seconds() / 2)
    return int(max(wanted, options.turnover_interval_seconds))


def jittered(seconds: int, *, key: str) -> int:
    """Return the interval changed by up to 10 %, always the same for the same key."""
    draw = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**32
    return int(seconds * (1 - _JITTER + 2 * _JITTER * draw))


def failure_wait_seconds(errors_in_row: int, *, options: PollOptions) -> int:
    """Return the wait after a failure: it doubles each time, up to the probe of dead feeds."""
    if errors_in_row >= options.errors_until_dead:
        return options.probe_interval_seconds
    # 2**16 intervals are longer than any probe interval.
    wait = options.min_interval_seconds * 2 ** min(errors_in_row - 1, 16)
    return int(min(wait, options.probe_interval_seconds))


def days_without_update(last_entry: datetime | None, *, now: datetime) -> int:
    """Return the full days since the newest entry; 0 if there is none or it is in the future."""
    return max((now - last_entry).days, 0) if last_entry else 0


def health_score(
    *,
    errors_in_row: int,
    no_updates_days: int,
    may_miss_items: bool = False,
    skipped_items: int = 0,
    has_no_links: bool = False,
) -> int:
    """Return 0 to 100: minus 10 per failure in a row, minus 2 per silent day (at most 60).

    A feed that may miss items loses 20, one with items beyond the limit 20, and one without any
    link 50.
    """
    lost = 10 * errors_in_row + min(2 * no_updates_days, 60)
    lost += 20 * may_miss_items + 20 * bool(skipped_items) + 50 * has_no_links
    return max(100 - lost, 0)


def newest(dates: Iterable[datetime | None], *, now: datetime) -> datetime | None:
    """Return the newest date that is at most one day in the future."""
    limit = now + timedelta(days=1)
    return max((date for date in dates if date is not None and date <= limit), default=None)


def usual_gap_seconds(dates: Iterable[datetime], *, now: datetime) -> float | None:
    """Return the median gap between the newest entries; None with fewer than two dates."""
    latest = sorted((date for date in dates if date <= now), reverse=True)
    latest = latest[:_RECENT_ENTRIES]
    gaps = [(a - b).total_seconds() for a, b in pairwise(latest)]
    return median(gaps) if gaps else None
