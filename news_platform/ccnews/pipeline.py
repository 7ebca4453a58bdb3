"""What a run would do, before it does it: which WARCs of a day are missing, and what they cost.

An estimate is a promise about disk: a run that would not fit is refused before the first byte.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from news_platform.ccnews.listing import listed_warcs
from news_platform.ccnews.page import EXTRACTOR_VERSION, PageOptions
from news_platform.ccnews.pool import (
    CollectReport,
    CrewOptions,
    OnDone,
    OnProgress,
    collect_warcs,
    scratch_folder,
)
from news_platform.ccnews.worker import CollectTask, StoreAddress
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import raw_news_day_prefix
from news_platform.datasets.warc_paths import Warc
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import collected_names, read_collected
from news_platform.storage.objects.store import ObjectStore

# Measured on CC-NEWS of 2025: 18 files a day of this size; used where a size is not told.
_USUAL_WARC_BYTES = 1_070_000_000
# Rows take about as much as the WARC they come from; a tenth more to be safe.
_OUTPUT_SHARE = 1.1
# Compressed bytes that one worker takes in; half of what the benchmark shows on a busy core.
_BYTES_PER_SECOND = 5_000_000


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The WARCs of a day: those listed, and those to collect now."""

    day: date
    listed: tuple[Warc, ...]
    missing: tuple[Warc, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What collecting some WARCs will take."""

    warcs: int
    download_bytes: int
    output_bytes: int
    scratch_bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.warcs} WARCs, {self.download_bytes / 1e9:.2f} GB to read, "
            f"{self.output_bytes / 1e9:.2f} GB to write, about {self.seconds / 60:.0f} min"
        )


def plan_day(
    day: date, *, crawl: ObjectStore, root: ObjectStore, max_warcs: int | None = None
) -> DayPlan:
    """Compare the listing of a day with the ledger; `max_warcs` caps how many are taken now.

    A WARC that has its marker and lost a file counts as not collected.
    """
    listed = listed_warcs(crawl, root, day=day)
    collected = collected_names(root, day=day) - lost_warcs(root, day=day)
    room = None if max_warcs is None else max(0, max_warcs - len(collected))
    missing = tuple(warc for warc in listed if warc.name not in collected)
    return DayPlan(day, listed, missing[:room])


def lost_warcs(root: ObjectStore, *, day: date) -> frozenset[str]:
    """Return the WARCs of a day whose marker names a file that is gone."""
    here = {info.path for info in root.list(raw_news_day_prefix(day))}
    return frozenset(
        marker.warc
        for marker in read_collected(root, [day])
        if not all(path in here or root.exists(path) for path in marker.paths())
    )


def outdated(markers: Iterable[Collected], *, older_than: str | None = None) -> list[Collected]:
    """Return the markers that an extractor older than this version wrote; default: the current."""
    limit = version_key(older_than or EXTRACTOR_VERSION)
    return [marker for marker in markers if version_key(marker.extractor_version) < limit]


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are ordered by; parts that are no numbers count as 0."""
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))


def estimate(sizes: Sequence[int | None], *, workers: int) -> Estimate:
    """Estimate from the WARCs' sizes; None stands for the usual one."""
    known = [_USUAL_WARC_BYTES if size is None else size for size in sizes]
    total, largest = sum(known), max(known, default=0)
    at_once = max(1, min(workers, len(known)))
    return Estimate(
        warcs=len(known),
        download_bytes=total,
        output_bytes=int(total * _OUTPUT_SHARE),
        scratch_bytes=int(largest * at_once * _OUTPUT_SHARE),
        seconds=total / (_BYTES_PER_SECOND * at_once),
    )


def refuse_without_room(
    wanted: Estimate,
    *,
    scratch: Path,
    root: ObjectStore,
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> None:
    """Raise StorageError when the scratch disk or a local root could not hold the outcome."""
    needs = {scratch: wanted.scratch_bytes}
    if root.local_folder is not None:
        folder = _existing(root.local_folder)
        needs[folder] = needs.get(folder, 0) + wanted.output_bytes
    for folder, needed in needs.items():
        if (free := free_bytes(folder)) < needed:
            raise StorageError(
                f"not enough room in {str(folder)!r}: {needed / 1e9:.1f} GB needed, "
                f"{free / 1e9:.1f} GB free; free some, or set a cap on WARCs a day",
                thing=str(folder),
            )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


@dataclass(frozen=True, slots=True)
class WarcSource:
    """A WARC to collect: its path in the first of the sources that gives it."""

    path: str
    sources: tuple[ObjectStore, ...]

    def size_bytes(self) -> int | None:
        """Return the size as the first source that knows it tells; what is wrong shows later."""
        for source in self.sources:
            with suppress(StorageError):
                return source.head(self.path).size_bytes
        return None


@dataclass(frozen=True, slots=True)
class Crew:
    """All that collecting needs besides the WARCs: resources, options, the moment, who listens.

    `on_start` is told once what the whole will cost; the others are called from threads.
    """

    root: ObjectStore
    page: PageOptions
    options: CrewOptions
    now: datetime
    attempt: str
    on_start: Callable[[Estimate], None] = lambda estimate: None
    on_progress: OnProgress = lambda task, progress: None
    on_done: OnDone = lambda outcome: None


def collect_targets(targets: Sequence[WarcSource], crew: Crew) -> CollectReport:
    """Collect these WARCs, if the disks can hold what comes of them."""
    if not targets:
        return CollectReport((), ())
    sizes = [target.size_bytes() for target in targets]
    cost = estimate(sizes, workers=crew.options.workers)
    with scratch_folder() as scratch:
        refuse_without_room(cost, scratch=scratch, root=crew.root)
        crew.on_start(cost)
        tasks = [
            _task(target, crew, size_bytes=size, scratch=scratch)
            for target, size in zip(targets, sizes, strict=True)
        ]
        return collect_warcs(
            tasks, options=crew.options, on_progress=crew.on_progress, on_done=crew.on_done
        )


def _task(target: WarcSource, crew: Crew, *, size_bytes: int | None, scratch: Path) -> CollectTask:
    return CollectTask(
        path=target.path,
        size_bytes=size_bytes,
        sources=tuple(StoreAddress(source.url, source.options) for source in target.sources),
        root=StoreAddress(crew.root.url, crew.root.options),
        scratch=str(scratch),
        options=crew.page,
        attempt=crew.attempt,
        now=crew.now,
        skip={},
    )
