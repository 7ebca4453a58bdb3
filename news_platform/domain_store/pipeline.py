"""Stage 2: brings buckets to the batches that stage 1 has ready; a reader sees before or after."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from news_platform.datasets.domain_store import ROOT as DATASET
from news_platform.domain_store.building.builder import (
    Builder,
    GenerationPlan,
    NewBatch,
    plan_batch_change,
    without_batches,
)
from news_platform.domain_store.building.tiers import Merge, plan_merge
from news_platform.domain_store.building.uploads import open_uploads, scratch_errors
from news_platform.domain_store.building.verify import without_damaged_segments
from news_platform.domain_store.commit import (
    Current,
    check_bucket_count,
    claim_bucket_count,
    read_current,
    refresh_view,
)
from news_platform.domain_store.layout import range_buckets
from news_platform.domain_store.manifest import Manifest
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.staging.stage import Staged, read_staged
from news_platform.errors import Conflict, StorageError
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import NotFound, ObjectStore

# Another writer, or stage 1 replacing a batch, can only win so often before something is wrong.
ATTEMPTS = 20
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BucketReport:
    """What was done to one bucket and what it now holds."""

    bucket: int
    batches_added: int
    batches_removed: int
    bytes_written: int
    manifest: Manifest | None


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What was done, bucket by bucket, and the fingerprint of the batches it stands on."""

    inputs: str
    buckets: tuple[BucketReport, ...]

    def total(self, name: str) -> int:
        """Return the sum over all buckets of what was done."""
        return sum(int(getattr(report, name)) for report in self.buckets)


def build_buckets(
    buckets: Iterable[int], *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Take up what stage 1 added, changed or removed since these buckets were last built."""
    return _each_bucket(_build, buckets, store=store, options=options, now=now)


def build_range(
    key: str, *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Build one range of buckets, and mark what it now stands on.

    Where nothing is new, somebody asked for a range that was built before: lost files are replaced.
    """
    numbers = range_buckets(key, options.buckets)
    report = build_buckets(numbers, store=store, options=options, now=now)
    if not report.total("batches_added") + report.total("batches_removed"):
        report = repair_buckets(numbers, store=store, options=options, now=now)
    figures = {name: report.total(name) for name in ("batches_added", "bytes_written")}
    write_marker(store, DATASET, key, inputs=report.inputs, report=figures)
    return report


def repair_buckets(
    buckets: Iterable[int], *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Take up again, from stage 1, the batches of segments that have lost a file."""
    return _each_bucket(_repair, buckets, store=store, options=options, now=now)


def compact_buckets(
    buckets: Iterable[int], *, store: ObjectStore, options: BuildOptions, now: datetime
) -> BuildReport:
    """Merge all segments of each bucket into one; batches stay replaceable."""
    return _each_bucket(_compact, buckets, store=store, options=options, now=now)


Step = Callable[[Builder, int, Current, Staged], BucketReport | None]


def _each_bucket(
    step: Step,
    buckets: Iterable[int],
    *,
    store: ObjectStore,
    options: BuildOptions,
    now: datetime,
) -> BuildReport:
    numbers = list(buckets)
    claimed = claim_bucket_count(store, options.buckets)
    with ThreadPoolExecutor(options.uploads) as pool:
        currents = list(pool.map(lambda bucket: read_current(store, bucket), numbers))
    for current in currents:
        check_bucket_count(current.manifest, claimed)
    # Listed after the manifests were read: what a manifest knows and the list lacks was removed.
    staged = read_staged(store, claimed)
    with scratch_errors(options.scratch), open_uploads(store, options.uploads) as uploads:
        builder = Builder(store, uploads, claimed, options, now)
        reports = [
            _run_until_done(step, builder, bucket=bucket, current=current, staged=staged)
            for bucket, current in zip(numbers, currents, strict=True)
        ]
    return BuildReport(staged.fingerprint, tuple(reports))


def _run_until_done(
    step: Step, builder: Builder, *, bucket: int, current: Current, staged: Staged
) -> BucketReport:
    """Repeat a step until there is nothing left to do; begin anew when somebody was faster."""
    done = BucketReport(bucket, 0, 0, 0, None)
    lost: StorageError | None = None
    for _ in range(ATTEMPTS):
        try:
            while (report := step(builder, bucket, current, staged)) is not None:
                done = _sum(done, report)
                current = read_current(builder.store, bucket)
            if current.manifest is not None:
                refresh_view(builder.store, current.manifest)
            return _sum(done, BucketReport(bucket, 0, 0, 0, current.manifest))
        except (Conflict, NotFound) as error:
            lost = error
            LOG.info("bucket %d changed under its builder, beginning anew: %s", bucket, error)
            current = read_current(builder.store, bucket)
            staged = read_staged(builder.store, builder.buckets)
            if step is _build and isinstance(error, NotFound):
                step = _repair  # stage 1 may have replaced a batch, or a file of ours is lost
    raise Conflict(f"cannot build bucket {bucket}, tried {ATTEMPTS} times: {lost}") from lost


def _build(builder: Builder, bucket: int, current: Current, staged: Staged) -> BucketReport | None:
    return _apply_changes(builder, bucket, current, staged, sound=current.manifest)


def _repair(builder: Builder, bucket: int, current: Current, staged: Staged) -> BucketReport | None:
    sound = without_damaged_segments(builder.store, current.manifest) if current.manifest else None
    return _apply_changes(builder, bucket, current, staged, sound=sound)


def _apply_changes(
    builder: Builder, bucket: int, current: Current, staged: Staged, *, sound: Manifest | None
) -> BucketReport | None:
    """Go one step from what is sound of the present generation to what stage 1 has ready."""
    change = plan_batch_change(sound, staged.versions, limit=builder.options.batches_per_merge)
    if not change:
        return None
    fresh = tuple(
        NewBatch(batch, inputs, staged.name(batch), staged.files(batch, bucket))
        for batch, inputs in change.added.items()
    )
    held = without_batches(sound, change.dropped)
    merge = plan_merge(held, sum(f.files > 0 for f in fresh), fan=builder.options.fan)
    old = sound.empty if sound else {}
    empty = {batch: name for batch, name in old.items() if batch not in change.dropped}
    empty |= {f.batch: f.inputs for f in fresh if not f.files}
    manifest, written = builder.write_generation(
        bucket, current, GenerationPlan(fresh, merge, empty)
    )
    LOG.info("bucket %d: generation %d, %d bytes", bucket, manifest.generation, written)
    return BucketReport(bucket, len(fresh), len(change.dropped), written, manifest)


def _compact(
    builder: Builder, bucket: int, current: Current, staged: Staged
) -> BucketReport | None:
    manifest = current.manifest
    if manifest is None or not _is_scattered(manifest):
        return None
    plan = GenerationPlan((), Merge(manifest.segments, ()), manifest.empty)
    manifest, written = builder.write_generation(bucket, current, plan)
    return BucketReport(bucket, 0, 0, written, manifest)


def _is_scattered(manifest: Manifest) -> bool:
    return len(manifest.segments) > 1 or any(segment.dropped for segment in manifest.segments)


def _sum(one: BucketReport, other: BucketReport) -> BucketReport:
    return BucketReport(
        one.bucket,
        one.batches_added + other.batches_added,
        one.batches_removed + other.batches_removed,
        one.bytes_written + other.bytes_written,
        other.manifest or one.manifest,
    )
