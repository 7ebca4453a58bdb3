"""Find the days of raw_news to delete: old ones whose rows the domain store holds.

A day is released after its rows were read back from the store. Its WARCs are recorded as expired
first, then their files go. `captures` and `feed_candidates` stay.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial

from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import raw_news_day_prefix
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import expire_collected, read_collected
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values
from news_platform.storage.retention import ExpiringUnit

_FOLDER = "news/raw"
_NOT_STORED = (
    "the domain store does not hold it: run `news-platform store build`, or raise "
    "NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS"
)


def expiring_days(
    store: ObjectStore,
    *,
    keep_days: int,
    now: datetime,
    stored_days: Callable[[Collection[str]], Collection[str]],
    rows_by_warc: Callable[[str], Mapping[str, int]],
) -> dict[str, ExpiringUnit]:
    """Return the days older than `keep_days` that have files.

    `stored_days` returns those of the given days that the domain store holds, `rows_by_warc` reads
    a day of it and counts the rows of each WARC.
    """
    newest = now.date() - timedelta(days=keep_days + 1)
    found = {str(day): _day_files(store, day) for day in _days_with_files(store) if day <= newest}
    fresh = [key for key, (markers, files) in found.items() if markers and files]
    held = stored_days(fresh) if fresh else ()

    def release(key: str, markers: Sequence[Collected]) -> None:
        if markers:
            _require_rows(markers, rows_by_warc(key))
            expire_collected(store, markers, expired_at=now.isoformat(timespec="seconds"))

    return {
        key: ExpiringUnit(
            files,
            refused=_NOT_STORED if markers and key not in held else "",
            release=partial(release, key, markers),
        )
        for key, (markers, files) in found.items()
        if files
    }


def _day_files(store: ObjectStore, day: date) -> tuple[list[Collected], list[ObjectInfo]]:
    """Return the WARCs of a day that are not recorded as expired, and all files of expired ones."""
    # Files that no marker names belong to a WARC that is being collected.
    markers = read_collected(store, [day])
    named = {path for one in markers for path in replace(one, expired_at="").news_paths().values()}
    files = [info for info in store.list(raw_news_day_prefix(day)) if info.path in named]
    return [one for one in markers if one.news_paths()], files


def _require_rows(markers: Sequence[Collected], held: Mapping[str, int]) -> None:
    """Raise StorageError if the store holds too few rows of a WARC."""
    for one in markers:
        if held.get(one.warc, 0) != one.rows:
            found = f"{held.get(one.warc, 0)} of {one.rows} rows of {one.warc!r}"
            message = f"the domain store holds {found}: run `store verify`"
            raise StorageError(message, thing=one.warc)


def _days_with_files(store: ObjectStore) -> Iterator[date]:
    """Yield the days that have a folder; three levels of folders instead of a million files."""
    for year in store.list_folders(_FOLDER):
        for month in store.list_folders(year):
            for folder in store.list_folders(month):
                values = path_values(f"{folder}/")
                yield date(int(values["year"]), int(values["month"]), int(values["day"]))
