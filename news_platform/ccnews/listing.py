"""Read the crawl's monthly listings of WARCs: which days lack a listed WARC, which are settled.

A listing grows during its month and uploads arrive hours late, so it is compared with the markers
as a set; there is no high-water mark. A copy under the root is reused until the ETag changes.

A day's WARCs appear one by one during the day and hours after it, and a few come days late. Those
who build on whole days would do their work again for each of them, so they wait until a day is
settled: nothing more is expected soon. A record beside the copy of the listing says when each day
last grew.
"""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import quote, unquote

from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.raw_news import (
    Warc,
    last_day,
    listing_path,
    month_of,
    next_month,
    parse_warc_path,
    previous_month,
    warc_time,
)
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.collected import collected_names, list_collected_month
from news_platform.storage.commit.markers import content_tag, fingerprint
from news_platform.storage.objects.store import ObjectStore

# Older months that one tick checks, in turn. A tick over ten years of history then costs about as
# much as one over a single year.
_OLDER_PER_TICK = 12


@dataclass(frozen=True, slots=True)
class Listing:
    """The WARCs of one month; `foreign` counts the lines that do not name a WARC."""

    month: date
    etag: str
    warcs: tuple[Warc, ...]
    foreign: int

    def days(self) -> Mapping[date, tuple[Warc, ...]]:
        """Return the WARCs of each day in the order of their names."""
        days: dict[date, list[Warc]] = {}
        for warc in sorted(self.warcs):
            days.setdefault(warc.day, []).append(warc)
        return {day: tuple(warcs) for day, warcs in days.items()}


def parse_listing(lines: Iterable[str], *, month: date, etag: str) -> Listing:
    """Parse the lines of a listing; a WARC listed twice counts once."""
    # Real listings also contain lines that are not WARCs.
    named = [line for line in lines if line.strip()]
    found = [parse_warc_path(line) for line in named]
    warcs = tuple(sorted({warc for warc in found if warc}))
    return Listing(month, etag, warcs, foreign=sum(warc is None for warc in found))


def fetch_listing(
    crawl: ObjectStore, root: ObjectStore, *, month: date, keep: bool = True
) -> Listing | None:
    """Return the listing of a month, None if there is none; download it only if it changed.

    With `keep=False` no copy is written.
    """
    path = listing_path(month)
    info = crawl.find(path)
    if info is None:
        return None
    copy, tag = read_copy(root, month=month), content_tag(crawl, path, info.etag)
    if copy is not None and copy.etag == tag:
        return copy
    lines = _lines(crawl.read(path, expected_size=info.size_bytes), path)
    if keep:
        root.put(_copy_path(month), json.dumps({"etag": tag, "lines": lines}).encode())
    return parse_listing(lines, month=month, etag=tag)


def first_answering(sources: Sequence[ObjectStore], *, month: date) -> ObjectStore:
    """Return the first source that answers a request for a month's listing, even with "not found".

    The last source is returned unchecked: if it fails too, its own error should be reported.
    """
    for source in sources[:-1]:
        with suppress(StorageError):
            source.find(listing_path(month))
            return source
    return sources[-1]


def read_copy(root: ObjectStore, *, month: date) -> Listing | None:
    """Return the stored copy of a listing; None if there is none."""
    path = _copy_path(month)
    if not root.exists(path):
        return None
    try:
        document = json.loads(root.read(path))
        return parse_listing(document["lines"], month=month, etag=document["etag"])
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(
            f"cannot parse {path!r} as a copy of a listing: delete it", thing=path
        ) from error


def listed_warcs(crawl: ObjectStore, root: ObjectStore, *, day: date) -> tuple[Warc, ...]:
    """Return the WARCs that the crawl lists for a day, also under the months beside its own."""
    found = (fetch_listing(crawl, root, month=month) for month in _months_around(day))
    return _of_day(found, day)


def indexed_names(store: ObjectStore, day: str) -> frozenset[str]:
    """Return the names of the WARCs of a day whose runs were written without pages."""
    # Only the day's own markers are listed: ten years have 65,000.
    infos = store.list(f"markers/{CAPTURES.name}", name_prefix=quote(f"{day}|", safe=""))
    keys = (unquote(info.path.rpartition("/")[2].rpartition("@")[0]) for info in infos)
    return frozenset(key.partition("|")[2] for key in keys)


def _months_around(day: date) -> tuple[date, ...]:
    if day.year in (date.min.year, date.max.year):
        raise InputError(
            f"no crawl has the day {day}: CC-NEWS begins on 2016-08-26", thing=str(day)
        )
    return previous_month(day), month_of(day), next_month(day)


def _of_day(listings: Iterable[Listing | None], day: date) -> tuple[Warc, ...]:
    """Return the WARCs of a day in the order of their names; one that is listed twice once."""
    found = {warc.name: warc for one in listings if one for warc in one.days().get(day, ())}
    return tuple(sorted(found.values()))


def _copy_path(month: date) -> str:
    return f"news/warc_paths/{month:%Y}-{month:%m}.json"


def _lines(body: bytes, path: str) -> list[str]:
    try:
        return gzip.decompress(body).decode("utf-8", "replace").splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"listing {path!r} is not a gzip file: {error}", thing=path) from error


@dataclass(frozen=True, slots=True)
class FollowState:
    """The state that one tick of the sensor passes to the next, stored in its cursor.

    `since` is the first followed day; `turn` counts the ticks; `seen` maps the recent months, by
    the ISO date of their first day, to the ETag that was last reported.
    """

    since: str | None = None
    turn: int = 0
    seen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FollowReport:
    """The result of one tick: `stale` maps days to the fingerprint of their listing, newest first.

    `changed` are the recent listings that have changed since the last tick.
    """

    stale: Mapping[str, str]
    changed: tuple[Listing, ...]
    state: FollowState


@dataclass(frozen=True, slots=True)
class FollowScope:
    """The followed days: all from `since` on, and older days that are wanted or collected.

    All other history is missing until somebody backfills it, and must not be requested. At most
    `max_warcs` of each day are expected. WARCs that were `republished` count as not collected.
    """

    since: str
    last: date
    followed: frozenset[str]
    max_warcs: int | None
    republished: frozenset[str] = frozenset()

    def contains(self, day: date) -> bool:
        """Return whether a day is followed; one that has not come is a mistake in a name."""
        is_followed = day.isoformat() >= self.since or day.isoformat() in self.followed
        return is_followed and day <= self.last

    def older_months(self, before: date) -> list[date]:
        """Return the months before this one that have a followed day, newest first."""
        start = month_of(date.fromisoformat(self.since))
        months = {month_of(date.fromisoformat(day)) for day in self.followed}
        while start < before:
            months.add(start)
            start = next_month(start)
        return sorted((month for month in months if month < before), reverse=True)


def check_listings(
    crawl: ObjectStore,
    root: ObjectStore,
    *,
    today: date,
    state: FollowState,
    followed: Iterable[str],
    max_warcs: int | None = None,
    republished: Iterable[str] = (),
    keep: bool = True,
) -> FollowReport:
    """Compare the listings with the collected markers for the followed days.

    With `keep=False` nothing is written.
    """
    # WARCs of the last days of a month are uploaded in the next one.
    months = (previous_month(today), month_of(today))
    found = (fetch_listing(crawl, root, month=month, keep=keep) for month in months)
    recent = [listing for listing in found if listing]
    # A new installation starts with the newest listed day instead of ten years of history.
    last = last_day(today)
    days = (day for listing in recent for day in listing.days() if day <= last)
    since = state.since or max(map(str, days), default=None)
    if since is None:
        return FollowReport({}, (), state)
    scope = FollowScope(since, last, frozenset(followed), max_warcs, frozenset(republished))
    due = _in_turn(scope.older_months(previous_month(today)), state.turn)
    older = (fetch_listing(crawl, root, month=month, keep=keep) for month in due)
    stale: dict[str, str] = {}
    for listing in (*recent, *filter(None, older)):
        stale |= _stale_days(root, listing, scope)
    return FollowReport(
        stale=dict(sorted(stale.items(), reverse=True)),
        changed=tuple(one for one in recent if state.seen.get(str(one.month)) != one.etag),
        state=FollowState(
            since=since,
            turn=state.turn + 1,
            seen={str(listing.month): listing.etag for listing in recent},
        ),
    )


def _in_turn(months: Sequence[date], turn: int) -> Sequence[date]:
    """Return the months that this tick checks."""
    parts = -(-len(months) // _OLDER_PER_TICK) or 1
    return months[turn % parts :: parts]


def _stale_days(root: ObjectStore, listing: Listing, scope: FollowScope) -> Mapping[str, str]:
    """Return the followed days that lack a listed WARC."""
    days = {day: warcs for day, warcs in listing.days().items() if scope.contains(day)}
    collected = {
        (unit.day, unit.warc)
        for month in {month_of(day) for day in days}
        for unit in list_collected_month(root, month)
        if unit.warc not in scope.republished
    }
    held = Counter(day for day, _ in collected)
    stale: dict[str, str] = {}
    for day, warcs in days.items():
        lacking = sum((day.isoformat(), warc.name) not in collected for warc in warcs)
        # Like the run of the day: what is collected counts, even if it is not listed any more.
        room = lacking if scope.max_warcs is None else scope.max_warcs - held[day.isoformat()]
        if min(lacking, room) > 0:
            stale[day.isoformat()] = fingerprint(warc.name for warc in warcs)
    return stale


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
        elif now < moment + _COLLECTING and (count := _lacking(root, day)):
            unsettled[day] = Unsettled(f"raw_news lacks {count} WARCs", moment + _COLLECTING)
    return unsettled


def _reason(day: date, newest_listed: date, is_followed: bool) -> str:
    if is_followed:
        return "late WARCs are added together"
    return "the day has just grown" if newest_listed > day else "no later day is listed"


def _lacking(root: ObjectStore, day: date) -> int:
    listed = _of_day((read_copy(root, month=month) for month in _months_around(day)), day)
    return len({warc.name for warc in listed} - collected_names(root, day=day))


def _named(warcs: Iterable[Warc], now: datetime) -> datetime:
    times = (warc_time(warc.name) for warc in warcs)
    return min(now, max((moment for moment in times if moment), default=now))


def _path(month: date) -> str:
    return f"news/warc_paths/{month:%Y-%m}.arrivals.json"
