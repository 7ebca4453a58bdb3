"""Delete the raw_news files of old days whose rows the domain store holds.

The WARCs are recorded as expired first, then their files go: an interrupted run leaves files that
the next one deletes. `captures` and `feed_candidates` stay.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Protocol, TypeVar

from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import raw_news_day_prefix
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.expired import expired_warc, record_expired
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values
from news_platform.storage.retention import Expiry, expiry_of, last_expired_day

DATASET = "raw_news"
_FOLDER = "news/raw"
_NOT_STORED = (
    "the domain store does not hold it: run `news-platform store build`, or raise "
    "NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS"
)


class Expiring(Protocol):
    """A day to expire: the WARCs that are not recorded as expired yet, and its files."""

    @property
    def fresh(self) -> tuple[Collected, ...]:
        """Return the WARCs that are not recorded yet."""
        ...

    @property
    def files(self) -> Sequence[ObjectInfo]:
        """Return the files to delete or to rewrite."""
        ...


_Day = TypeVar("_Day", bound=Expiring)


@dataclass(frozen=True, slots=True)
class ExpiringDay:
    """A day to delete: the WARCs that are not recorded as expired yet, and all files that go."""

    fresh: tuple[Collected, ...]
    files: Sequence[ObjectInfo]


@dataclass(frozen=True, slots=True)
class RawNewsPlan:
    """The days to delete, and those of them that the domain store does not hold."""

    days: Mapping[str, ExpiringDay]
    refused: Collection[str]

    @property
    def expiry(self) -> Expiry:
        """Return what the plan deletes."""
        files = {key: day.files for key, day in self.days.items() if key not in self.refused}
        return replace(
            expiry_of(DATASET, files), refused=dict.fromkeys(sorted(self.refused), _NOT_STORED)
        )


def plan_raw_news(
    store: ObjectStore,
    *,
    keep_days: int,
    now: datetime,
    stored_days: Callable[[Collection[str]], Collection[str]],
) -> RawNewsPlan:
    """Find the days older than `keep_days`; `stored_days` returns those that the store holds."""
    newest = last_expired_day(now.date(), keep_days)
    return RawNewsPlan(*old_days(store, _expiring, newest=newest, stored_days=stored_days))


def old_days(
    store: ObjectStore,
    expiring: Callable[[ObjectStore, date], _Day],
    *,
    newest: date,
    stored_days: Callable[[Collection[str]], Collection[str]],
) -> tuple[Mapping[str, _Day], frozenset[str]]:
    """Return the days up to `newest` with files that `expiring` finds, and those to refuse.

    Refused are days with WARCs to record that are not among the `stored_days`.
    """
    found = {str(day): expiring(store, day) for day in _days_with_files(store) if day <= newest}
    days = {key: day for key, day in found.items() if day.files}
    fresh = [key for key, day in days.items() if day.fresh]
    return days, frozenset(fresh) - frozenset(stored_days(fresh) if fresh else ())


def expire_raw_news(
    store: ObjectStore,
    plan: RawNewsPlan,
    *,
    now: datetime,
    rows_by_warc: Callable[[str], Mapping[str, int]],
) -> Expiry:
    """Delete the days of the plan, each after all of its rows were read back from the store.

    `rows_by_warc` reads a day of the store and counts its rows. Days that are refused stay.
    """
    expired_at = now.isoformat(timespec="seconds")

    def expire(day: ExpiringDay) -> None:
        record_expired(store, [expired_warc(one, expired_at=expired_at) for one in day.fresh])
        store.delete(info.path for info in day.files)

    failed = expire_verified(plan.days, plan.refused, expire, rows_by_warc=rows_by_warc)
    done = {key: day for key, day in plan.days.items() if key not in failed}
    return replace(RawNewsPlan(done, plan.refused).expiry, failed=failed)


def expire_verified(
    days: Mapping[str, _Day],
    refused: Collection[str],
    expire: Callable[[_Day], None],
    *,
    rows_by_warc: Callable[[str], Mapping[str, int]],
) -> Mapping[str, str]:
    """Expire each day that is not refused and of which the store holds all rows.

    Return the days of which it does not, with the reason.
    """
    failed = {}
    for key, day in days.items():
        if key in refused:
            continue
        if problem := _row_problem(day.fresh, rows_by_warc(key) if day.fresh else {}):
            failed[key] = problem
        else:
            expire(day)
    return failed


def _row_problem(fresh: Sequence[Collected], held: Mapping[str, int]) -> str:
    """Return which WARC the store holds too few rows of, by the rows `held`; "" if it has all."""
    wrong = [one for one in fresh if held.get(one.warc, 0) != one.rows]
    if not wrong:
        return ""
    first = wrong[0]
    found = f"{held.get(first.warc, 0)} of {first.rows} rows of {first.warc!r}"
    return f"the domain store holds {found}: run `store verify`"


def _days_with_files(store: ObjectStore) -> Iterator[date]:
    """Yield the days that have a folder; three levels of folders instead of a million files."""
    for year in store.list_folders(_FOLDER):
        for month in store.list_folders(year):
            for folder in store.list_folders(month):
                values = path_values(f"{folder}/")
                yield date(int(values["year"]), int(values["month"]), int(values["day"]))


def _expiring(store: ObjectStore, day: date) -> ExpiringDay:
    # Files that no marker names belong to a WARC that is being collected.
    markers = read_collected(store, [day])
    named = {
        path for one in markers for path in replace(one, is_expired=False).news_paths().values()
    }
    files = [info for info in store.list(raw_news_day_prefix(day)) if info.path in named]
    return ExpiringDay(tuple(one for one in markers if one.news_paths()), files)
