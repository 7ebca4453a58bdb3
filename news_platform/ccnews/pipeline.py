"""Collect the news crawl into raw_news: a day, or WARCs by name, in parallel worker processes.

Start here. `collect_day` compares the crawl's listing with the markers of the WARCs that are
collected already; `collect_warcs` checks the disks and runs one task per WARC (`pool`, `worker`).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum

from news_platform.ccnews.listing import first_answering, indexed_names, listed_warcs
from news_platform.ccnews.maintenance import (
    BrokenNote,
    forget_broken,
    forget_republished,
    has_changed,
    list_republished,
    note_failure,
    read_broken,
)
from news_platform.ccnews.pool import (
    CollectFailure,
    CollectListener,
    CollectOptions,
    CollectTask,
    StoreAddress,
    estimate,
    require_free_space,
    run_tasks,
    scratch_folder,
)
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import Warc, raw_news_day_prefix
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import (
    CollectedUnit,
    collected_names,
    list_collected,
    list_collected_day,
    mark_wanted,
    read_collected,
    unmark_wanted,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

_SILENT = CollectListener()


class RebuildMode(StrEnum):
    """Which WARCs of a day to collect.

    missing: those that are not collected, or not as their source is now. outdated: also those that
    another version of the extractor or other options gave. all: every listed one.
    """

    # In lower case, because Dagster's launchpad shows and takes the names.
    missing = "missing"
    outdated = "outdated"
    all = "all"


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The WARCs of a day: those listed, and those of them to collect now."""

    day: date
    listed: tuple[Warc, ...]
    missing: tuple[Warc, ...]
    again: tuple[Warc, ...] = ()

    @property
    def todo(self) -> tuple[Warc, ...]:
        """Return what to collect, in the order of the listing."""
        return tuple(sorted({*self.missing, *self.again}))


@dataclass(frozen=True, slots=True)
class WarcSource:
    """A WARC to collect: its path in the first of the sources that can be read."""

    path: str
    sources: tuple[ObjectStore, ...]

    @property
    def warc_name(self) -> str:
        """Return the WARC's file name."""
        return self.path.rpartition("/")[2]

    def info(self) -> ObjectInfo | None:
        """Return what the first answering source states; None if no source answers."""
        found = self._found()
        return found[1] if found else None

    def is_source_of(self, marker: Collected) -> bool:
        """Return whether a marker was made from the bytes that are here now."""
        found = self._found()
        return found is not None and not has_changed(found[0], self.path, found[1], marker)

    def _found(self) -> tuple[ObjectStore, ObjectInfo] | None:
        # Errors are ignored here: reading the WARC will report them.
        for source in self.sources:
            with suppress(StorageError):
                return source, source.head(self.path)
        return None


@dataclass(frozen=True, slots=True)
class CollectReport:
    """The outcome of a run, in the order of the WARCs.

    `listed` counts the WARCs of the day, `redone` those that had been collected before.
    """

    collected: tuple[Collected, ...]
    failed: tuple[CollectFailure, ...]
    listed: int = 0
    redone: int = 0


def collect_day(
    day: date,
    *,
    crawl: tuple[ObjectStore, ...],
    root: ObjectStore,
    options: CollectOptions,
    now: datetime,
    attempt: str,
    redo: RebuildMode = RebuildMode.outdated,
    listener: CollectListener = _SILENT,
) -> CollectReport:
    """Collect the WARCs that the crawl lists for a day and that are missing or to be redone.

    `crawl` holds the same files in several places; a later one is read when an earlier one fails.
    """
    # Before anything can fail: from now on the day is followed, whatever becomes of this run.
    mark_wanted(root, day, now=now)
    source = first_answering(crawl, month=day)
    plan = plan_day(day, crawl=source, root=root, options=options, redo=redo)
    report = collect_warcs(
        [WarcSource(warc.path, crawl) for warc in plan.todo],
        root=root,
        options=options,
        now=now,
        attempt=attempt,
        listener=listener,
    )
    if plan.listed and not report.failed:  # its collected markers say from now on that it is wanted
        unmark_wanted(root, day)
    return replace(report, listed=len(plan.listed), redone=len(plan.again))


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
    infos = [warc.info() for warc in warcs]
    broken = read_broken(root)
    sizes = [info.size_bytes if info else None for info in infos]
    cost = estimate(sizes, workers=options.workers, index_only=options.index_only)
    with scratch_folder() as scratch:
        require_free_space(cost, scratch=scratch, root=root)
        listener.start(cost)
        tasks = [
            CollectTask(
                path=warc.path,
                size_bytes=info.size_bytes if info else None,
                sources=tuple(map(_address, warc.sources)),
                root=_address(root),
                scratch=str(scratch),
                options=options,
                attempt=attempt,
                now=now,
                skip={},
                accepts_broken=_accepts(broken.get(warc.warc_name), info, options),
            )
            for warc, info in zip(warcs, infos, strict=True)
        ]
        outcomes = run_tasks(tasks, options=options, listener=listener)
    for outcome, info in zip(outcomes, infos, strict=True):
        _note_outcome(root, outcome, info=info, known=broken.get(outcome.warc))
    return _report(outcomes)


def _accepts(note: BrokenNote | None, info: ObjectInfo | None, options: CollectOptions) -> bool:
    return bool(note and info and note.accepts(info, after=options.accept_after))


def _note_outcome(
    root: ObjectStore,
    outcome: Collected | CollectFailure,
    *,
    info: ObjectInfo | None,
    known: BrokenNote | None,
) -> None:
    """Count the failure of a broken source, or forget what was noted about a sound one."""
    if isinstance(outcome, Collected):
        forget_republished(root, day=outcome.day, warc=outcome.warc)
        if known and outcome.truncated_at is None:
            forget_broken(root, outcome.warc)
    elif outcome.is_broken and info:
        note_failure(root, outcome.warc, info=info, reason=outcome.reason, known=known)


def plan_day(
    day: date,
    *,
    crawl: ObjectStore,
    root: ObjectStore,
    options: CollectOptions,
    redo: RebuildMode = RebuildMode.outdated,
) -> DayPlan:
    """Compare the listing of a day with its markers; `options` may cap the WARCs of the day.

    A WARC whose marker names a file that is gone counts as not collected.
    """
    listed = listed_warcs(crawl, root, day=day)
    units = list_collected_day(root, day)
    republished = list_republished(root).get(day.isoformat(), frozenset())
    collected = {unit.warc for unit in units} - damaged_warcs(root, day=day) - republished
    # A cap counts what is collected already, so that a second run of the day adds nothing.
    room = None if options.max_warcs is None else max(0, options.max_warcs - len(collected))
    # What was collected before and must be read again comes first, or a cap could keep it out.
    known = {unit.warc for unit in units}
    missing = sorted(
        (warc for warc in listed if warc.name not in collected),
        key=lambda warc: warc.name not in known,
    )
    wanted = {
        RebuildMode.missing: frozenset[str](),
        RebuildMode.outdated: outdated_names(units, options),
        RebuildMode.all: frozenset(collected),
    }[redo]
    again = tuple(warc for warc in listed if warc.name in collected & wanted)
    return DayPlan(day, listed, tuple(missing[:room]), again)


def plan_index(day: date, *, crawl: ObjectStore, root: ObjectStore) -> DayPlan:
    """Compare the listing of a day with the runs of captures that are written.

    A WARC that is collected has its run.
    """
    listed = listed_warcs(crawl, root, day=day)
    held = collected_names(root, day=day) | indexed_names(root, str(day))
    return DayPlan(day, listed, tuple(warc for warc in listed if warc.name not in held))


def outdated_days(
    root: ObjectStore, options: CollectOptions, *, newest: int | None = None
) -> Mapping[str, int]:
    """Return how many WARCs of each collected day are outdated, from listings alone.

    `newest` limits this to so many of the newest collected days; days without any are left out.
    """
    days: dict[str, list[CollectedUnit]] = {}
    for unit in list_collected(root):
        days.setdefault(unit.day, []).append(unit)
    chosen = sorted(days, reverse=True)[:newest]
    counts = {day: len(outdated_names(days[day], options)) for day in chosen}
    return {day: count for day, count in counts.items() if count}


def outdated_names(units: Iterable[CollectedUnit], options: CollectOptions) -> frozenset[str]:
    """Return the WARCs that another version of the extractor or other options gave.

    Those whose files are expired do not count: the domain store has their rows as they are.
    """
    return frozenset(
        unit.warc for unit in units if unit.recipe != options.recipe and not unit.is_expired
    )


def damaged_warcs(root: ObjectStore, *, day: date) -> frozenset[str]:
    """Return the names of the WARCs of a day whose marker names a file that is gone."""
    # One LIST covers the many files of raw_news; the two side files of a WARC are checked singly.
    present = {info.path for info in root.list(raw_news_day_prefix(day))}
    return frozenset(
        marker.warc
        for marker in read_collected(root, [day])
        if not all(path in present or root.exists(path) for path in marker.paths())
    )


def outdated(markers: Iterable[Collected], *, older_than: str) -> list[Collected]:
    """Return the markers of extractors older than this version."""
    # Compared as numbers: "1.10" is newer than "1.9".
    limit = version_key(older_than)
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
