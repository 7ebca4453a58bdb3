"""Which WARC files a month has: read from the crawl, remembered under the root by ETag.

A listing grows during its month and uploads come hours late, so it is compared with the ledger as a
set; there is no high-water mark.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta

from news_platform.datasets.warc_paths import Warc, listing_path, parse_warc_path
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.collected import collected_names_of_month
from news_platform.storage.commit.markers import content_tag, fingerprint
from news_platform.storage.objects.store import ObjectStore

# Older months looked at in one tick: those not yet found complete, and resting ones in turn.
_UNSETTLED_A_TICK = 12
_RESTING_A_TICK = 4


@dataclass(frozen=True, slots=True)
class Listing:
    """The WARC files of one month; `foreign` counts lines that name none."""

    month: date
    etag: str
    warcs: tuple[Warc, ...]
    foreign: int

    def days(self) -> Mapping[date, tuple[Warc, ...]]:
        """Return the WARCs of each day, in the order of their names."""
        days: dict[date, list[Warc]] = {}
        for warc in sorted(self.warcs):
            days.setdefault(warc.day, []).append(warc)
        return {day: tuple(warcs) for day, warcs in days.items()}


def parse_listing(lines: Iterable[str], *, month: date, etag: str) -> Listing:
    """Read the lines of a listing; a WARC listed twice counts once."""
    named = [line for line in lines if line.strip()]
    found = [parse_warc_path(line) for line in named]
    warcs = tuple(sorted({warc for warc in found if warc}))
    return Listing(month, etag, warcs, foreign=sum(warc is None for warc in found))


def fetch_listing(crawl: ObjectStore, root: ObjectStore, *, month: date) -> Listing | None:
    """Return a month's listing, None if there is none; it is read anew only if it has changed."""
    path = listing_path(month)
    info = crawl.find(path)
    if info is None:
        return None
    remembered, tag = read_copy(root, month=month), content_tag(crawl, path, info.etag)
    # Version 0.1.0 remembered a local listing by its ETag, which names the inode.
    if remembered is not None and remembered.etag in (tag, info.etag):
        return remembered
    lines = _lines(crawl.read(path, expected_size=info.size_bytes), path)
    root.put(_copy_path(month), json.dumps({"etag": tag, "lines": lines}).encode())
    return parse_listing(lines, month=month, etag=tag)


def first_answering(sources: Sequence[ObjectStore], *, month: date) -> ObjectStore:
    """Return the first source that answers for a month's listing, be it to say there is none.

    The last one is not asked: if it fails too, its own error is the one to tell.
    """
    for source in sources[:-1]:
        with suppress(StorageError):
            source.find(listing_path(month))
            return source
    return sources[-1]


def read_copy(root: ObjectStore, *, month: date) -> Listing | None:
    """Return the listing as it was last seen; None when it never was."""
    path = _copy_path(month)
    if not root.exists(path):
        return None
    try:
        document = json.loads(root.read(path))
        return parse_listing(document["lines"], month=month, etag=document["etag"])
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(f"not a copy of a listing: {path!r}; remove it", thing=path) from error


def listed_warcs(crawl: ObjectStore, root: ObjectStore, *, day: date) -> tuple[Warc, ...]:
    """Return the WARCs that the crawl lists for a day."""
    listing = fetch_listing(crawl, root, month=day.replace(day=1))
    return listing.days().get(day, ()) if listing else ()


def day_fingerprint(warcs: Iterable[Warc]) -> str:
    """Return what stands for this set of WARCs."""
    return fingerprint(warc.name for warc in warcs)


def month_of(day: date) -> date:
    """Return the first day of the month."""
    return day.replace(day=1)


def next_month(month: date) -> date:
    """Return the first day of the month after."""
    return (month.replace(day=28) + timedelta(days=4)).replace(day=1)


def previous_month(month: date) -> date:
    """Return the first day of the month before."""
    return (month.replace(day=1) - timedelta(days=1)).replace(day=1)


def _copy_path(month: date) -> str:
    return f"news/warc_paths/{month:%Y}-{month:%m}.json"


def _lines(body: bytes, path: str) -> list[str]:
    try:
        return gzip.decompress(body).decode("utf-8", "replace").splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"listing {path!r} is no gzip file: {error}", thing=path) from error


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
