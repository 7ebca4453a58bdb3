"""Collect the news crawl into raw_news: a day, or WARCs by name, in parallel worker processes.

Start here. `collect_day` compares the crawl's listing with the markers of the WARCs that are
collected already; `collect_warcs` checks the disks and runs one task per WARC (`pool`, `worker`).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime

from news_platform.ccnews.listing import first_answering, listed_warcs
from news_platform.ccnews.options import EXTRACTOR_VERSION, CollectOptions
from news_platform.ccnews.pool import (
    CollectFailure,
    CollectListener,
    CollectTask,
    StoreAddress,
    estimate,
    require_free_space,
    run_tasks,
    scratch_folder,
)
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import raw_news_day_prefix
from news_platform.datasets.warc_paths import Warc
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import collected_names, read_collected
from news_platform.storage.objects.store import ObjectStore

_SILENT = CollectListener()


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The WARCs of a day: those listed, and those to collect now."""

    day: date
    listed: tuple[Warc, ...]
    missing: tuple[Warc, ...]


@dataclass(frozen=True, slots=True)
class WarcSource:
    """A WARC to collect: its path in the first of the sources that can be read."""

    path: str
    sources: tuple[ObjectStore, ...]

    @property
    def warc_name(self) -> str:
        """Return the WARC's file name."""
        return self.path.rpartition("/")[2]

    def size_bytes(self) -> int | None:
        """Return the size that the first answering source states; None if no source answers.

        Errors are ignored here: reading the WARC will report them.
        """
        for source in self.sources:
            with suppress(StorageError):
                return source.head(self.path).size_bytes
        return None


@dataclass(frozen=True, slots=True)
class CollectReport:
    """The outcome of a run, in the order of the WARCs; `listed` counts the WARCs of the day."""

    collected: tuple[Collected, ...]
    failed: tuple[CollectFailure, ...]
    listed: int = 0


def collect_day(
    day: date,
    *,
    crawl: tuple[ObjectStore, ...],
    root: ObjectStore,
    options: CollectOptions,
    now: datetime,
    attempt: str,
    listener: CollectListener = _SILENT,
) -> CollectReport:
    """Collect the WARCs that the crawl lists for a day and that have no marker yet.

    `crawl` holds the same files in several places; a later one is read when an earlier one fails.
    """
    source = first_answering(crawl, month=day)
    plan = plan_day(day, crawl=source, root=root, max_warcs=options.max_warcs)
    report = collect_warcs(
        [WarcSource(warc.path, crawl) for warc in plan.missing],
        root=root,
        options=options,
        now=now,
        attempt=attempt,
        listener=listener,
    )
    return replace(report, listed=len(plan.listed))


def collect_warcs(
    warcs: Sequence[WarcSource],
    *,
    root: ObjectStore,
    options: CollectOptions,
    now: datetime,
    attempt: str,
    listener: CollectListener = _SILENT,
) -> CollectReport:
    """Collect these WARCs; raise StorageError at once when the disks cannot hold the output.

    `attempt` is an id of this run, which the markers keep.
    """
    if not warcs:
        return CollectReport((), ())
    sizes = [warc.size_bytes() for warc in warcs]
    cost = estimate(sizes, workers=options.workers)
    with scratch_folder() as scratch:
        require_free_space(cost, scratch=scratch, root=root)
        listener.start(cost)
        tasks = [
            CollectTask(
                path=warc.path,
                size_bytes=size,
                sources=tuple(map(_address, warc.sources)),
                root=_address(root),
                scratch=str(scratch),
                options=options,
                attempt=attempt,
                now=now,
                skip={},
            )
            for warc, size in zip(warcs, sizes, strict=True)
        ]
        return _report(run_tasks(tasks, options=options, listener=listener))


def plan_day(
    day: date, *, crawl: ObjectStore, root: ObjectStore, max_warcs: int | None = None
) -> DayPlan:
    """Compare the listing of a day with its markers; `max_warcs` caps the WARCs of the day.

    A WARC whose marker names a file that is gone counts as not collected.
    """
    listed = listed_warcs(crawl, root, day=day)
    collected = collected_names(root, day=day) - damaged_warcs(root, day=day)
    # A cap counts what is collected already, so that a second run of the day adds nothing.
    room = None if max_warcs is None else max(0, max_warcs - len(collected))
    missing = tuple(warc for warc in listed if warc.name not in collected)
    return DayPlan(day, listed, missing[:room])


def damaged_warcs(root: ObjectStore, *, day: date) -> frozenset[str]:
    """Return the names of the WARCs of a day whose marker names a file that is gone."""
    # One LIST covers the many files of raw_news; the two side files of a WARC are checked singly.
    present = {info.path for info in root.list(raw_news_day_prefix(day))}
    return frozenset(
        marker.warc
        for marker in read_collected(root, [day])
        if not all(path in present or root.exists(path) for path in marker.paths())
    )


def outdated(markers: Iterable[Collected], *, older_than: str | None = None) -> list[Collected]:
    """Return the markers of extractors older than this version, by default the current one."""
    # Compared as numbers: "1.10" is newer than "1.9".
    limit = version_key(older_than or EXTRACTOR_VERSION)
    return [marker for marker in markers if version_key(marker.extractor_version) < limit]


def version_key(version: str) -> tuple[int, ...]:
    """Return a sort key of a version; parts that are not numbers count as 0."""
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))


def _address(store: ObjectStore) -> StoreAddress:
    return StoreAddress(store.url, store.options)


def _report(outcomes: Sequence[Collected | CollectFailure]) -> CollectReport:
    return CollectReport(
        tuple(outcome for outcome in outcomes if isinstance(outcome, Collected)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, CollectFailure)),
    )
