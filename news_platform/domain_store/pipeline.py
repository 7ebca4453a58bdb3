"""Merge the staged batches into their buckets: build, repair and compact the domain store.

Staging (`staging/stage.py`) writes each batch, sorted by domain, to one folder per bucket. This
module compares the staged batches with each bucket's manifest and builds the next generation.
Readers see either the old or the new generation, never a mix.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import ROOT as DATASET
from news_platform.domain_store.building.builder import (
    Builder,
    Merge,
    building_removal,
    plan_batch_change,
    plan_merge,
    require_allowed,
    without_batches,
)
from news_platform.domain_store.building.verify import Damage, find_damage
from news_platform.domain_store.data_files import open_uploads, scratch_errors
from news_platform.domain_store.layout import BuildOptions, range_buckets, range_keys
from news_platform.domain_store.manifest import (
    Current,
    Manifest,
    Segment,
    check_bucket_count,
    claim_bucket_count,
    gc_bucket,
    read_batches,
    read_current,
    refresh_view,
)
from news_platform.domain_store.staging.engine import require_clean
from news_platform.domain_store.staging.rows import StagingInput, day_input
from news_platform.domain_store.staging.stage import Staged, read_staged, stage_input
from news_platform.errors import Conflict, StorageError
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.units import built_inputs
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import TakedownTarget

# Other writers, or batches staged again, can interrupt a build this often before it is an error.
ATTEMPTS = 20
# Batches that a message names; the rest is counted.
_SHOWN_BATCHES = 5
# The cure for a damaged file whose staged files are expired.
STAGE_AGAIN = (
    "stage these days again (materialize domain_buckets) as long as raw_news has them, "
    "or restore the files of the store"
)
LOG = logging.getLogger(__name__)


class StagedFilesGone(StorageError):
    """Staged files of these batches were deleted, although no bucket holds them yet."""

    def __init__(self, batches: tuple[str, ...]) -> None:
        super().__init__(
            f"the staged files of {shown_batches(batches)} are gone, but their markers are there: "
            "stage them again (materialize domain_buckets, or repeat `store build --batch`)",
            thing=batches[0],
        )
        self.batches = batches


@dataclass(frozen=True, slots=True)
class BucketReport:
    """What a build did to one bucket, and the bucket's manifest afterwards."""

    bucket: int
    batches_added: int
    batches_removed: int
    bytes_written: int
    manifest: Manifest | None
    # Batches in damaged segments whose staged files are expired.
    not_rebuilt: tuple[str, ...] = ()
    # Bytes of the added batches as they were staged; `bytes_written` also has what was merged.
    bytes_added: int = 0


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The report of each bucket, and the batches that were staged."""

    staged: Staged
    buckets: tuple[BucketReport, ...]

    def total(self, name: str) -> int:
        """Return the sum of a field of `BucketReport` over all buckets."""
        return sum(int(getattr(report, name)) for report in self.buckets)

    @property
    def not_rebuilt(self) -> dict[str, list[int]]:
        """Return the buckets in which each batch is damaged and cannot be rebuilt."""
        found: dict[str, list[int]] = {}
        for report in self.buckets:
            for batch in report.not_rebuilt:
                found.setdefault(batch, []).append(report.bucket)
        return dict(sorted(found.items()))


def build_buckets(
    buckets: Iterable[int], *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Apply the batches that were staged, changed or removed since the last build."""
    return _each_bucket(_build, buckets, store=store, options=options, now=now)


def build_range(
    key: str, *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Build one range of buckets and write its marker; repair the range when nothing changed."""
    numbers = range_buckets(key, options.buckets)
    report = _build_staging_again(numbers, store=store, options=options, now=now)
    # Somebody asked for a range that is up to date, perhaps because a check found files missing.
    if not report.total("batches_added") + report.total("batches_removed"):
        report = repair_buckets(numbers, store=store, options=options, now=now)
    totals = {name: report.total(name) for name in ("batches_added", "bytes_written")}
    inputs = report.staged.range_fingerprint(key)
    write_marker(store, DATASET, key, inputs=inputs, report=totals)
    return report


def _build_staging_again(
    buckets: Sequence[int], *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Build buckets; collected days whose staged files somebody deleted are staged again first."""
    again: set[str] = set()
    while True:
        try:
            return build_buckets(buckets, store=store, options=options, now=now)
        except StagedFilesGone as gone:
            found = {batch: _collected_input(store, batch) for batch in gone.batches}
            if not again.isdisjoint(found) or not all(found.values()):
                raise
            LOG.warning("staging %s again: their files are gone", shown_batches(gone.batches))
            for batch, rows in found.items():
                stage_input(rows, store=store, batch=batch, options=options)
            again |= found.keys()


def _collected_input(store: ObjectStore, batch: str) -> StagingInput | None:
    """Return the rows of a day; None for a named crawl, whose files only its owner knows."""
    return day_input(store, batch) if batch in built_inputs(store, DOMAIN_BUCKETS) else None


def repair_buckets(
    buckets: Iterable[int], *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Rebuild, from the staged files, the segments that have lost a file.

    A damaged segment with a batch whose staged files are expired stays as it is: what is left of it
    can still be read. The report names such batches.
    """
    return _each_bucket(_repair, buckets, store=store, options=options, now=now)


def compact_buckets(
    buckets: Iterable[int],
    *,
    store: ObjectStore,
    options: BuildOptions,
    now: datetime,
    staged: Staged | None = None,
) -> BuildReport:
    """Merge all segments of each bucket into one; single batches can still be replaced."""
    return _each_bucket(_compact, buckets, staged, store=store, options=options, now=now)


def compact_store(
    store: ObjectStore, *, options: BuildOptions, now: datetime
) -> Iterator[tuple[int, int]]:
    """Compact the store; yield, per range, the bytes written and the files deleted.

    Files go that were replaced longer ago than the grace period.
    """
    staged = read_staged(store, options.buckets)
    # Range by range, because the batches of all buckets would not fit into memory.
    for key in range_keys(options.buckets):
        numbers = range_buckets(key, options.buckets)
        report = compact_buckets(numbers, store=store, options=options, now=now, staged=staged)
        files = sum(gc_bucket(store, bucket, options=options, now=now) for bucket in numbers)
        yield report.total("bytes_written"), files


Step = Callable[[Builder, int, Current, Staged], BucketReport | None]


def _each_bucket(
    step: Step,
    buckets: Iterable[int],
    staged: Staged | None = None,
    *,
    store: ObjectStore,
    options: BuildOptions,
    now: datetime,
) -> BuildReport:
    numbers = list(buckets)
    claimed = claim_bucket_count(store, options.buckets)
    # On an object store each read is a round trip, and a range has 16 buckets.
    with ThreadPoolExecutor(options.uploads) as pool:
        read = partial(_read_current, store, is_repair=step is not _compact)
        currents = list(pool.map(read, numbers))
    for current in currents:
        check_bucket_count(current.manifest, claimed)
    # List after reading the manifests: a batch in a manifest but not in the list was removed.
    staged = staged or read_staged(store, claimed)
    if step is not _compact:
        manifests = [current.manifest for current in currents]
        require_allowed(building_removal(store, manifests, staged), options)
    with scratch_errors(options.scratch), open_uploads(store, options.uploads) as uploads:
        takedowns = Takedowns.read(store, now=now, use="removal")
        builder = Builder(store, uploads, claimed, options, now, takedowns)
        reports = [
            _run_until_done(step, builder, bucket=bucket, current=current, staged=staged)
            for bucket, current in zip(numbers, currents, strict=True)
        ]
    return BuildReport(staged, tuple(reports))


def _read_current(
    store: ObjectStore, bucket: int, *, known: Manifest | None = None, is_repair: bool = False
) -> Current:
    current = read_current(store, bucket)
    if current.manifest is None:
        return current
    return replace(
        current, manifest=read_batches(store, current.manifest, known=known, is_repair=is_repair)
    )


def _run_until_done(
    step: Step, builder: Builder, *, bucket: int, current: Current, staged: Staged
) -> BucketReport:
    """Repeat a step until nothing is left to do; start over when another writer committed first."""
    done = BucketReport(bucket, 0, 0, 0, None)
    failure: StorageError | None = None
    for _ in range(ATTEMPTS):
        try:
            while (report := step(builder, bucket, current, staged)) is not None:
                done = _sum(done, report)
                current = _read_current(builder.store, bucket, known=report.manifest)
            if current.manifest is not None:
                refresh_view(builder.store, current.manifest)
            lost: tuple[str, ...] = ()
            if step is _repair and current.manifest is not None:
                lost = _not_rebuilt(builder.store, current.manifest, staged)
            return _sum(done, BucketReport(bucket, 0, 0, 0, current.manifest, lost))
        except (Conflict, NotFound) as error:
            failure = error
            LOG.info("bucket %d changed during its build, starting over: %s", bucket, error)
            current = _read_current(builder.store, bucket, is_repair=step is not _compact)
            staged = read_staged(builder.store, builder.buckets)
            _require_no_lost_batch(current, staged, bucket)
            latest = Takedowns.read(builder.store, now=builder.now, use="removal")
            builder = replace(builder, takedowns=latest)
            if step is _build and isinstance(error, NotFound):
                # Either a batch was staged again, or a file of the store itself is missing.
                step = _repair
    raise Conflict(f"cannot build bucket {bucket}, tried {ATTEMPTS} times: {failure}") from failure


def _build(builder: Builder, bucket: int, current: Current, staged: Staged) -> BucketReport | None:
    return _apply_changes(builder, bucket, current, staged, intact=current.manifest)


def _repair(builder: Builder, bucket: int, current: Current, staged: Staged) -> BucketReport | None:
    manifest = current.manifest
    if manifest is None:
        return _apply_changes(builder, bucket, current, staged, intact=None)
    damage = find_damage(builder.store, manifest)
    stuck = stuck_segments(manifest, damage, staged)
    if damage.is_indexed:
        held = replace(manifest, segments=(*damage.intact, *stuck))
        return _apply_changes(builder, bucket, current, staged, intact=held, stuck=stuck)
    if not any(has_expired(segment, staged) for segment in manifest.segments):
        nothing = replace(manifest, segments=())
        return _apply_changes(builder, bucket, current, staged, intact=nothing)
    if stuck:
        lost = _expired_batches(stuck, staged)
        raise StorageError(
            f"cannot repair bucket {bucket}: its index is missing, and so are files of "
            f"{shown_batches(lost)}, whose staged files are expired; {STAGE_AGAIN}",
            thing=manifest.index.path,
        )
    # Staged files are expired, but the segments are whole: a new index is made from their entries.
    merge = Merge(damage.intact, ())
    manifest, written = builder.write_generation(bucket, current, merge, staged=staged)
    return BucketReport(bucket, len(manifest.batch_inputs), 0, written, manifest)


def has_expired(segment: Segment, staged: Staged) -> bool:
    """Return whether the staged files of a batch of the segment were deleted."""
    return bool(_expired_batches([segment], staged))


def stuck_segments(manifest: Manifest, damage: Damage, staged: Staged) -> tuple[Segment, ...]:
    """Return the damaged segments that cannot be rebuilt because staged files are expired."""
    damaged = (segment for segment in manifest.segments if segment not in damage.intact)
    return tuple(segment for segment in damaged if has_expired(segment, staged))


def _not_rebuilt(store: ObjectStore, manifest: Manifest, staged: Staged) -> tuple[str, ...]:
    stuck = stuck_segments(manifest, find_damage(store, manifest), staged)
    return tuple(_expired_batches(stuck, staged))


def _expired_batches(segments: Iterable[Segment], staged: Staged) -> list[str]:
    live = {batch for segment in segments for batch in segment.live}
    return sorted(batch for batch in live if batch in staged.markers and staged.is_expired(batch))


def _apply_changes(
    builder: Builder,
    bucket: int,
    current: Current,
    staged: Staged,
    *,
    intact: Manifest | None,
    stuck: tuple[Segment, ...] = (),
) -> BucketReport | None:
    """Build the next generation towards the staged batches; return None when there is no change.

    `intact` is the current manifest without damaged segments, but with those that are `stuck`:
    these are kept as they are.
    """
    change = plan_batch_change(intact, staged.inputs, limit=builder.options.batches_per_merge)
    if not change:
        return None
    _require_staged_files(change.added, staged, bucket)
    # A takedown may have come after the batch was staged, and its removal not have reached it.
    for batch in change.added if builder.takedowns else ():
        require_clean(builder.store, staged, batch, bucket, TakedownTarget(builder.takedowns))
    held = without_batches(intact, change.dropped)
    names = {segment.name for segment in stuck}
    whole = [segment for segment in held if segment.name not in names]
    merge = plan_merge(whole, len(change.added), fan=builder.options.fan)
    merge = replace(merge, kept=(*merge.kept, *(part for part in held if part.name in names)))
    manifest, written = builder.write_generation(
        bucket, current, merge, staged=staged, added=change.added
    )
    LOG.info("bucket %d: generation %d, %d bytes", bucket, manifest.generation, written)
    size = sum(staged.size_bytes(batch, bucket) for batch in change.added)
    counts = len(change.added), len(change.dropped), written
    return BucketReport(bucket, *counts, manifest, bytes_added=size)


def _require_no_lost_batch(current: Current, staged: Staged, bucket: int) -> None:
    """Raise StagedFilesGone when a batch to add has a marker, but no files."""
    change = plan_batch_change(current.manifest, staged.inputs, limit=len(staged.inputs))
    if gone := _lost_batches(staged, change.added, bucket):
        raise StagedFilesGone(gone)


def _require_staged_files(added: Iterable[str], staged: Staged, bucket: int) -> None:
    """Raise StorageError when a batch to add has no staged files any more."""
    gone = [batch for batch in added if staged.files(batch, bucket) and staged.is_expired(batch)]
    if gone:
        raise StorageError(
            f"cannot rebuild {shown_batches(gone)} in bucket {bucket}: their staged files are "
            f"expired; {STAGE_AGAIN}",
            thing=gone[0],
        )


def shown_batches(batches: Sequence[str]) -> str:
    """Return the first batches by name and the number of the others."""
    named = ", ".join(repr(batch) for batch in batches[:_SHOWN_BATCHES])
    more = len(batches) - _SHOWN_BATCHES
    return f"batches {named}" + (f" and {more} more" if more > 0 else "")


def _compact(
    builder: Builder, bucket: int, current: Current, staged: Staged
) -> BucketReport | None:
    manifest = current.manifest
    # One segment without dropped batches is compact.
    if manifest is None or (
        len(manifest.segments) < 2 and not any(segment.dropped for segment in manifest.segments)
    ):
        return None
    merge = Merge(manifest.segments, ())
    manifest, written = builder.write_generation(bucket, current, merge, staged=staged)
    return BucketReport(bucket, 0, 0, written, manifest)


def _sum(one: BucketReport, other: BucketReport) -> BucketReport:
    return BucketReport(
        one.bucket,
        one.batches_added + other.batches_added,
        one.batches_removed + other.batches_removed,
        one.bytes_written + other.bytes_written,
        other.manifest or one.manifest,
        other.not_rebuilt or one.not_rebuilt,
        one.bytes_added + other.bytes_added,
    )


def _lost_batches(staged: Staged, batches: Iterable[str], bucket: int) -> tuple[str, ...]:
    """Return those of the batches whose staged files in a bucket are gone, but not expired."""

    def is_lost(batch: str) -> bool:
        paths = staged.paths(batch, bucket)
        return bool(paths) and not staged.is_expired(batch) and not staged.store.exists(paths[0])

    return tuple(batch for batch in batches if is_lost(batch))
