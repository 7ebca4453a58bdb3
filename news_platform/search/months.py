"""Join the days of an old month into one index, so that a search over a year opens few.

The marker of each of its days then names the index of the month. A day that changes later gets an
index of its own, and readers take the other days from the month, until the month is built again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.search.index import SearchableArticle
from news_platform.search.pipeline import checked_takedowns, iter_articles
from news_platform.search.publish import (
    GRACE,
    IndexReport,
    delete_old_builds,
    delete_unused_builds,
    point_day,
    require_complete,
    upload_index,
)
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    delete_marker,
    fingerprint,
    read_inputs,
    stale_partitions,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.match import Takedowns

MONTHS_DATASET = f"{SEARCH_INDEX.name}_months"
_MONTH_CHARS = len("2025-11")


def month_of(day: str) -> str:
    """Return the month of a day, as `2025-11`."""
    return day[:_MONTH_CHARS]


def wanted_months(store: ObjectStore, *, after_days: int) -> Mapping[str, str]:
    """Return the fingerprint that the index of each old month should be built from.

    A month is old if it ended `after_days` before the newest day; with 0, no month is.
    """
    days = _wanted_days(store)
    if not days or after_days < 1:
        return {}
    limit = date.fromisoformat(max(days)) - timedelta(days=after_days)
    found: dict[str, list[str]] = {}
    for day, inputs in sorted(days.items()):
        if _month_end(month_of(day)) <= limit:
            found.setdefault(month_of(day), []).append(f"{day} {inputs}")
    return {month: fingerprint(parts) for month, parts in found.items()}


def _wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that the index of each day with articles should be built from."""
    wanted = wanted_inputs(store, SEARCH_INDEX)
    return {day: inputs for day, inputs in wanted.items() if inputs != REMOVED}


def join_months(
    store: ObjectStore, *, after_days: int, now: datetime
) -> Iterator[tuple[str, IndexReport | None]]:
    """Build the indexes of old months that are out of date, then delete unused builds."""
    wanted = wanted_months(store, after_days=after_days)
    for month in sorted(stale_partitions(wanted, read_inputs(store, MONTHS_DATASET))):
        yield month, build_month(store, month, now=now)
    delete_unused_builds(store, now=now)


def build_month(
    store: ObjectStore,
    month: str,
    *,
    now: datetime,
    takedowns: Takedowns | None = None,
    keep_old: bool = True,
) -> IndexReport | None:
    """Build the days of a month as one index; return None if the month has no articles any more.

    Without `keep_old` all older builds of the month and its days are deleted at once.
    """
    # Before reading: a day that changes meanwhile leaves the month stale, not wrong.
    wanted = {
        day: one for day, one in sorted(_wanted_days(store).items()) if month_of(day) == month
    }
    if not wanted:
        delete_marker(store, MONTHS_DATASET, month)
        delete_old_builds(store, month, keep=None, before=None)
        return None
    refused, require_same = checked_takedowns(store, takedowns)
    inputs = fingerprint([f"{day} {one}" for day, one in wanted.items()])
    counted: Counter[str] = Counter()
    articles = _counted(store, list(wanted), refused, counted)
    place, report = upload_index(store, month, articles, inputs=inputs, before_commit=require_same)
    for day, one in wanted.items():
        mine = IndexReport(counted[day], report.files, report.size_bytes)
        point_day(store, day, place, inputs=one, report=mine)
    require_complete(store, place, report)
    # Last: without it the month counts as never built, whatever its days say.
    fields = {"articles": report.articles, "files": report.files, "bytes": report.size_bytes}
    write_marker(store, MONTHS_DATASET, month, inputs=inputs, report=fields, scope=place.build)
    before = now - GRACE if keep_old else None
    delete_old_builds(store, month, keep=place.build, before=before)
    for day in wanted:
        delete_old_builds(store, day, keep=None, before=before)
    return report


def _counted(
    store: ObjectStore, days: Sequence[str], refused: Takedowns, counted: Counter[str]
) -> Iterator[SearchableArticle]:
    for day in days:
        for article in iter_articles(store, day, refused):
            counted[day] += 1
            yield article


def _month_end(month: str) -> date:
    """Return the last day of a month."""
    after = date.fromisoformat(f"{month}-01") + timedelta(days=31)
    return after.replace(day=1) - timedelta(days=1)
