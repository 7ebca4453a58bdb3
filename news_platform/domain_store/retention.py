"""Delete what the domain store no longer needs: staged batches that it holds, and old generations.

A staged batch goes only after its bytes were read back from the store. Its marker stays, with
`expired_at` in it, so nothing is staged again; `store repair` then names what it cannot rebuild.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.domain_store.commit import (
    find_unneeded,
    gc_bucket,
    read_bucket_count,
    read_current,
)
from news_platform.domain_store.layout import STORE_FILE, staged_path
from news_platform.domain_store.manifest import Manifest, Segment
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.reading.batches import iter_batch_pieces, read_manifests
from news_platform.domain_store.reading.fragments import PIECE_BYTES
from news_platform.domain_store.staging.stage import EXPIRED_AT, Staged, read_staged
from news_platform.errors import Conflict, StorageError
from news_platform.storage.commit.markers import amend_report
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.retention import Expiry, expiry_of
from news_platform.storage.units import wanted_inputs


@dataclass(frozen=True, slots=True)
class Stage1Plan:
    """The staged files to delete, by batch, and the batches that are old enough but stay."""

    staged: Staged
    manifests: Mapping[int, Manifest]
    files: Mapping[str, Sequence[ObjectInfo]]
    waiting: Mapping[str, str]

    @property
    def expiry(self) -> Expiry:
        """Return what the plan deletes."""
        return replace(expiry_of(STAGED, self.files), waiting=self.waiting)


def plan_stage_1(store: ObjectStore, *, keep_days: int, now: datetime) -> Stage1Plan | None:
    """Find the batches that the store took over at least `keep_days` ago; None without a store."""
    if not store.exists(STORE_FILE):
        return None
    staged = read_staged(store, read_bucket_count(store))
    manifests = read_manifests(store)
    newest = (now - timedelta(days=keep_days)).timestamp()
    files: dict[str, Sequence[ObjectInfo]] = {}
    waiting: dict[str, str] = {}
    for batch, found in _staged_files(store, staged).items():
        if staged.is_expired(batch):  # a process died before it had deleted all of them
            files[batch] = found
        elif missing := _missing_buckets(staged, manifests, batch):
            waiting[batch] = f"bucket {missing[0]} of the store does not hold it yet"
        elif _taken_at(staged, manifests, batch) <= newest:
            files[batch] = found
    return Stage1Plan(staged, manifests, files, waiting)


def stored_days(store: ObjectStore, days: Collection[str]) -> frozenset[str]:
    """Return those of the days of which the store holds all collected WARCs."""
    if not store.exists(STORE_FILE):
        return frozenset()
    staged, manifests = read_staged(store, read_bucket_count(store)), read_manifests(store)
    wanted = wanted_inputs(store, DOMAIN_BUCKETS)
    return frozenset(
        day
        for day in days
        if day in wanted
        and staged.inputs.get(day) == wanted[day]
        and not _missing_buckets(staged, manifests, day)
    )


def expire_stage_1(store: ObjectStore, plan: Stage1Plan, *, now: datetime) -> Expiry:
    """Delete the staged files of the plan, batch by batch, once the store has them byte by byte.

    First the marker says that the batch is expired, then its files go: if this is interrupted, the
    next call deletes the rest.
    """
    done, failed = dict(plan.files), {}
    for batch, found in plan.files.items():
        try:
            if not plan.staged.is_expired(batch):
                _require_copy(store, plan, batch)
                marker = plan.staged.markers[batch]
                amend_report(store, marker, {EXPIRED_AT: now.isoformat(timespec="seconds")})
        except (StorageError, Conflict) as error:
            failed[batch] = str(error)
            del done[batch]
            continue
        store.delete(info.path for info in found)
    return replace(expiry_of(STAGED, done), waiting=plan.waiting, failed=failed)


def _staged_files(store: ObjectStore, staged: Staged) -> dict[str, list[ObjectInfo]]:
    """Return the files of the current version of each batch; others belong to a staging run."""
    found: dict[str, list[ObjectInfo]] = {}
    for info in store.list(STAGED):
        bucket, batch = info.path.split("/")[1:3]
        if batch in staged.markers and f"/part-{staged.name(batch, int(bucket))}-" in info.path:
            found.setdefault(batch, []).append(info)
    return found


def _missing_buckets(
    staged: Staged, manifests: Mapping[int, Manifest], batch: str
) -> Sequence[int]:
    inputs = staged.inputs[batch]
    return [
        bucket
        for bucket in staged.filled_buckets(batch)
        if bucket not in manifests or manifests[bucket].batch_inputs.get(batch) != inputs
    ]


def _taken_at(staged: Staged, manifests: Mapping[int, Manifest], batch: str) -> int:
    """Return the Unix second at which the last bucket took the batch over."""
    filled = staged.filled_buckets(batch)
    held = (_segment_of(manifests[bucket], batch) for bucket in filled)
    return max((segment.batches[batch].taken_at for segment in held), default=0)


def _segment_of(manifest: Manifest, batch: str) -> Segment:
    found = [segment for segment in manifest.segments if batch in segment.live]
    if not found:
        message = f"bucket {manifest.bucket} of the store has no records of batch {batch!r}"
        raise StorageError(f"{message}: run `store verify`", thing=batch)
    return found[0]


def _require_copy(store: ObjectStore, plan: Stage1Plan, batch: str) -> None:
    """Raise StorageError unless the store holds every byte of the staged batch."""
    for bucket in plan.staged.filled_buckets(batch):
        name = plan.staged.name(batch, bucket)
        numbers = range(plan.staged.files(batch, bucket))
        paths = [staged_path(bucket, batch, name=name, number=number) for number in numbers]
        # Builds copy gzip members as they are, in the same order.
        if _file_digest(store, paths) != _batch_digest(store, plan.manifests[bucket], batch):
            raise StorageError(
                f"bucket {bucket} of the store differs from the staged batch {batch!r}: "
                "run `store verify`",
                thing=batch,
            )


def _file_digest(store: ObjectStore, paths: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with store.stream(path) as stream:
            for piece in iter(lambda: stream.read(PIECE_BYTES), b""):
                digest.update(piece)
    return digest.hexdigest()


def _batch_digest(store: ObjectStore, manifest: Manifest, batch: str) -> str:
    digest = hashlib.sha256()
    for pieces in iter_batch_pieces(store, manifest, batch):
        for piece in pieces:
            digest.update(piece)
    return digest.hexdigest()


def plan_generations(store: ObjectStore, *, options: BuildOptions, now: datetime) -> Expiry:
    """Find the files of generations that were replaced longer ago than the grace period."""
    found = {
        str(bucket): find_unneeded(
            store, read_current(store, bucket), bucket=bucket, before=now - options.grace
        )
        for bucket in read_manifests(store)
    }
    return expiry_of(STORE, {bucket: infos for bucket, infos in found.items() if infos})


def expire_generations(store: ObjectStore, *, options: BuildOptions, now: datetime) -> Expiry:
    """Delete the files of old generations."""
    reports = [
        gc_bucket(store, bucket, options=options, now=now) for bucket in read_manifests(store)
    ]
    counts = {str(report.bucket): report.files for report in reports if report.files}
    return Expiry(STORE, counts, sum(report.bytes for report in reports))
