"""Nightly maintenance of the crawl: changed sources, months to combine, files that expire."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from news_platform.ccnews.listing import first_answering, listed_warcs, month_of
from news_platform.ccnews.source_notes import (
    ChangedSource,
    find_changed_sources,
    note_republished,
)
from news_platform.datasets.collected import COLLECTED
from news_platform.datasets.raw_news import DROPPED
from news_platform.storage.commit.collected import newest_collected_days, read_collected
from news_platform.storage.commit.collected_months import combine_month, named_unit
from news_platform.storage.objects.store import ObjectStore

# Of younger months WARCs still arrive and may be redone, one marker each.
_LOOSE_DAYS = 62


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What one night found and did."""

    checked_days: int
    changed: tuple[ChangedSource, ...]
    markers_combined: int
    dropped_files_deleted: int


def maintain_crawl(
    root: ObjectStore,
    *,
    crawl: tuple[ObjectStore, ...],
    now: datetime,
    recheck_days: int,
    dropped_days: int,
) -> MaintenanceReport:
    """Check the newest days' sources, combine old markers, delete expired dropped_responses."""
    days = newest_collected_days(root, count=recheck_days)
    changed = check_sources(root, crawl=crawl, days=days)
    return MaintenanceReport(
        checked_days=len(days),
        changed=tuple(changed),
        markers_combined=combine_old_months(root, today=now.date()),
        dropped_files_deleted=delete_expired_drops(root, now=now, days=dropped_days),
    )


def check_sources(
    root: ObjectStore, *, crawl: tuple[ObjectStore, ...], days: Sequence[date]
) -> list[ChangedSource]:
    """Find the collected WARCs of these days that were published again, and note them."""
    found: list[ChangedSource] = []
    for month, ours in _by_month(days).items():
        source = first_answering(crawl, month=month)
        for day in ours:
            markers = {marker.warc: marker for marker in read_collected(root, [day])}
            listed = listed_warcs(source, root, day=day)
            found += find_changed_sources(source, listed=listed, markers=markers)
    note_republished(root, found)
    return found


def _by_month(days: Iterable[date]) -> Mapping[date, list[date]]:
    months: dict[date, list[date]] = {}
    for day in days:
        months.setdefault(month_of(day), []).append(day)
    return months


def combine_old_months(root: ObjectStore, *, today: date) -> int:
    """Combine the markers of months that ended long ago; return how many were moved."""
    newest = month_of(today - timedelta(days=_LOOSE_DAYS))
    units = (named_unit(info.path) for info in root.list(COLLECTED))
    months = {month_of(date.fromisoformat(unit.day)) for unit in units if unit}
    return sum(combine_month(root, month) for month in sorted(months) if month < newest)


def delete_expired_drops(root: ObjectStore, *, now: datetime, days: int) -> int:
    """Delete the files of dropped_responses that are older than so many days."""
    before = now - timedelta(days=days)
    expired = [info.path for info in root.list(DROPPED) if info.modified_at < before]
    root.delete(expired)
    return len(expired)
