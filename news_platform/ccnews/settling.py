"""Decide when a day of the crawl is settled: nothing more is expected soon, so it is followed.

A day's WARCs appear one by one during the day and hours after it, and a few come days late. Those
who build on whole days would do their work again for each of them. A record beside the copy of the
listing says when each day last grew; the rest of this module is pure.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from news_platform.ccnews.listing import Listing, month_of, next_month, read_copy
from news_platform.datasets.raw_news import Warc, warc_time
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import collected_names
from news_platform.storage.objects.store import ObjectStore

# The run that collects the last WARCs of a day gets this long before others go without them.
_COLLECTING = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class SettlingOptions:
    """When a day is settled.

    At least `later_days` later days are listed and the day has not grown for `quiet`. WARCs that
    come after the day was followed are added together, at multiples of `late` after its end; at
    once if it is zero.
    """

    later_days: int = 1
    quiet: timedelta = timedelta(hours=5)
    late: timedelta = timedelta(hours=72)


@dataclass(frozen=True, slots=True)
class DayArrivals:
    """How many WARCs a day lists, and when that number last grew."""

    warcs: int
    grown_at: datetime


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Why a day is not settled, and until when it is not."""

    reason: str
    until: datetime


def grown(
    known: Mapping[date, DayArrivals] | None, listing: Listing, *, now: datetime
) -> Mapping[date, DayArrivals]:
    """Return the arrivals of a month after its listing was read again.

    `known` is None when the month was never recorded. Its WARCs then count as arrived at the times
    in their names, so that a new installation does not wait for days that ended long ago.
    """
    days: dict[date, DayArrivals] = {}
    for day, warcs in listing.days().items():
        before = (known or {}).get(day)
        if before is not None and len(warcs) <= before.warcs:
            days[day] = before
        else:
            days[day] = DayArrivals(len(warcs), _named(warcs, now) if known is None else now)
    return days


def settles_at(
    day: date,
    arrivals: DayArrivals,
    *,
    newest_listed: date,
    is_followed: bool,
    options: SettlingOptions,
) -> datetime:
    """Return when a day is settled if nothing more comes.

    `is_followed` says that the day was built on before, so that what has come since is late. A day
    after which the crawl lists no other is settled `late` after its end.
    """
    end = datetime.combine(day + timedelta(days=1), time(), UTC)
    if not is_followed:
        quiet_at = arrivals.grown_at + options.quiet
        is_last = newest_listed < day + timedelta(days=options.later_days)
        return max(quiet_at, end + options.late) if is_last else quiet_at
    if not options.late:
        return arrivals.grown_at
    passed = max(0.0, (arrivals.grown_at - end) / options.late)
    return end + options.late * (int(passed) + 1)


def record_arrivals(root: ObjectStore, listings: Iterable[Listing], *, now: datetime) -> None:
    """Record which days of these listings have grown."""
    for listing in listings:
        known = read_arrivals(root, listing.month)
        days = grown(known, listing, now=now)
        if days != known:
            document = {
                day.isoformat(): [one.warcs, one.grown_at.isoformat()]
                for day, one in sorted(days.items())
            }
            root.put(_path(listing.month), json.dumps(document).encode())


def read_arrivals(root: ObjectStore, month: date) -> Mapping[date, DayArrivals] | None:
    """Return the recorded arrivals of a month; None when nothing was recorded."""
    path = _path(month)
    if not root.exists(path):
        return None
    try:
        document = json.loads(root.read(path))
        return {
            date.fromisoformat(day): DayArrivals(int(warcs), datetime.fromisoformat(moment))
            for day, (warcs, moment) in document.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise StorageError(
            f"cannot parse {path!r} as the arrivals of a month: delete it", thing=path
        ) from error


def unsettled_days(
    root: ObjectStore,
    days: Iterable[date],
    *,
    followed: Iterable[date],
    options: SettlingOptions,
    now: datetime,
) -> Mapping[date, Unsettled]:
    """Return the days that are not settled; days that nothing is recorded of are settled.

    `followed` are the days that were built on before.
    """
    wanted, followed = sorted(days), frozenset(followed)
    months = {month_of(day) for day in wanted}
    recorded: dict[date, DayArrivals] = {}
    for month in sorted(months | {next_month(month) for month in months}):
        recorded |= read_arrivals(root, month) or {}
    newest = max(recorded, default=date.min)
    unsettled: dict[date, Unsettled] = {}
    for day in (day for day in wanted if day in recorded):
        moment = settles_at(
            day,
            recorded[day],
            newest_listed=newest,
            is_followed=day in followed,
            options=options,
        )
        if now < moment:
            unsettled[day] = Unsettled(_reason(day, newest, day in followed), moment)
        elif now < moment + _COLLECTING and (lacking := _lacking(root, day)):
            reason = f"raw_news lacks {lacking} WARCs of the day"
            unsettled[day] = Unsettled(reason, moment + _COLLECTING)
    return unsettled


def _reason(day: date, newest_listed: date, is_followed: bool) -> str:
    if is_followed:
        return "late WARCs are added together"
    return "the day has just grown" if newest_listed > day else "no later day is listed"


def _lacking(root: ObjectStore, day: date) -> int:
    listing = read_copy(root, month=month_of(day))
    listed = listing.days().get(day, ()) if listing else ()
    return len({warc.name for warc in listed} - collected_names(root, day=day))


def _named(warcs: Iterable[Warc], now: datetime) -> datetime:
    times = (warc_time(warc.name) for warc in warcs)
    return min(now, max((moment for moment in times if moment), default=now))


def _path(month: date) -> str:
    return f"news/warc_paths/{month:%Y-%m}.arrivals.json"
