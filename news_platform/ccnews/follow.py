"""Which days lack a WARC that the crawl lists: the listing against the ledger, as sets.

Only days from the first followed one on, and days that somebody collected, are looked at: all older
history is missing until it is backfilled, and must not be asked for by itself. An older month that
was found complete rests and is looked at again in turn, so that a tick over ten years of history
costs about as much as one over a year.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from news_platform.ccnews.listing import (
    Listing,
    day_fingerprint,
    fetch_listing,
    month_of,
    next_month,
    previous_month,
)
from news_platform.storage.commit.collected import collected_names_of_month
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import ObjectStore

# Older months looked at in one tick: those not yet found complete, and resting ones in turn.
_UNSETTLED_A_TICK = 12
_RESTING_A_TICK = 4


@dataclass(frozen=True, slots=True)
class FollowState:
    """What one tick leaves to the next; months are told by the ISO form of their first day.

    `since` is the first followed day; `settled` maps an older month that was found complete to what
    it was then; `seen` maps the recent months to the ETag last told.
    """

    since: str | None = None
    turn: int = 0
    settled: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FollowReport:
    """What one tick saw: `stale` days with their listing's fingerprint, newest first.

    `news` are the recent listings that have changed since the last tick.
    """

    stale: Mapping[str, str]
    news: tuple[Listing, ...]
    memory: FollowState


@dataclass(frozen=True, slots=True)
class FollowScope:
    """The days in question: from `since` on or collected before, `max_warcs` of each at most."""

    since: str
    materialized: frozenset[str]
    max_warcs: int | None

    def holds(self, day: date) -> bool:
        """Tell whether a day is looked at."""
        return day.isoformat() >= self.since or day.isoformat() in self.materialized

    def older_months(self, before: date) -> list[date]:
        """Return the months before this one that have such a day, newest first."""
        start = month_of(date.fromisoformat(self.since))
        months = {month_of(date.fromisoformat(day)) for day in self.materialized}
        while start < before:
            months.add(start)
            start = next_month(start)
        return sorted((month for month in months if month < before), reverse=True)


def check_listings(
    crawl: ObjectStore,
    root: ObjectStore,
    *,
    today: date,
    memory: FollowState,
    materialized: Iterable[str],
    max_warcs: int | None = None,
) -> FollowReport:
    """Compare the listing with the ledger for the days in question."""
    recent = _recent_listings(crawl, root, today=today)
    since = memory.since or _newest_day(recent)
    if since is None:
        return FollowReport({}, (), memory)
    scope = FollowScope(since, frozenset(materialized), max_warcs)
    stale = {
        day: value for listing in recent for day, value in _stale_days(root, listing, scope).items()
    }
    settled = dict(memory.settled)
    oldest_recent = previous_month(today)
    for month in _due(scope.older_months(oldest_recent), settled, turn=memory.turn):
        stale |= _look_at_older(crawl, root, month, scope=scope, settled=settled)
    return FollowReport(
        stale=dict(sorted(stale.items(), reverse=True)),
        news=tuple(one for one in recent if memory.seen.get(_key(one.month)) != one.etag),
        memory=FollowState(
            since=since,
            turn=memory.turn + 1,
            settled=settled,
            seen={_key(listing.month): listing.etag for listing in recent},
        ),
    )


def _recent_listings(crawl: ObjectStore, root: ObjectStore, *, today: date) -> list[Listing]:
    months = (previous_month(today), month_of(today))
    found = (fetch_listing(crawl, root, month=month) for month in months)
    return [listing for listing in found if listing]


def _newest_day(listings: Sequence[Listing]) -> str | None:
    return max((day.isoformat() for one in listings for day in one.days()), default=None)


def _due(older: Sequence[date], settled: Mapping[str, str], *, turn: int) -> list[date]:
    """Choose the older months of this tick."""
    resting = [month for month in older if _key(month) in settled]
    unsettled = [month for month in older if _key(month) not in settled]
    start = turn * _RESTING_A_TICK % len(resting) if resting else 0
    return unsettled[:_UNSETTLED_A_TICK] + resting[start : start + _RESTING_A_TICK]


def _look_at_older(
    crawl: ObjectStore,
    root: ObjectStore,
    month: date,
    *,
    scope: FollowScope,
    settled: dict[str, str],
) -> Mapping[str, str]:
    """Return the stale days of an older month; note it as settled when there is none."""
    listing = fetch_listing(crawl, root, month=month)
    days = sorted(day for day in listing.days() if scope.holds(day)) if listing else []
    token = fingerprint([listing.etag if listing else "", *map(str, days)])
    if listing is None or settled.get(_key(month)) == token:
        settled[_key(month)] = token
        return {}
    stale = _stale_days(root, listing, scope)
    settled.pop(_key(month), None)
    if not stale:
        settled[_key(month)] = token
    return stale


def _stale_days(root: ObjectStore, listing: Listing, scope: FollowScope) -> Mapping[str, str]:
    """Return the days in question that lack a listed WARC."""
    collected = collected_names_of_month(root, month=listing.month)
    stale: dict[str, str] = {}
    for day, warcs in listing.days().items():
        if scope.holds(day):
            held = sum(warc.name in collected for warc in warcs)
            wanted = len(warcs) if scope.max_warcs is None else min(len(warcs), scope.max_warcs)
            if held < wanted:
                stale[day.isoformat()] = day_fingerprint(warcs)
    return stale


def _key(month: date) -> str:
    return month.isoformat()
