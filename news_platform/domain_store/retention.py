"""Find what the domain store no longer needs: staged batches that it holds, and old generations.

A staged batch is released after its bytes were read back from the store. Its marker stays, with
`expired_at` in it, so nothing is staged again; `store repair` then names what it cannot rebuild.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import STAGED_ROOT as STAGED
from news_platform.domain_store.fragments import PIECE_BYTES, iter_batch_fragments, read_manifests
from news_platform.domain_store.layout import STORE_FILE, BuildOptions
from news_platform.domain_store.manifest import (
    Manifest,
    Segment,
    find_unneeded,
    forget_retired,
    read_bucket_count,
    read_current,
)
from news_platform.domain_store.staging.stage import EXPIRED_AT, Staged, read_staged
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import amend_report
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.retention import ExpiringUnit
from news_platform.storage.units import wanted_inputs


def expiring_batches(
    store: ObjectStore, *, keep_days: int, now: datetime
) -> dict[str, ExpiringUnit]:
    """Return the batches that the store took over at least `keep_days` ago, or is to take over."""
    if not store.exists(STORE_FILE):
        return {}
    staged, manifests = read_staged(store, read_bucket_count(store)), read_manifests(store)
    newest = (now - timedelta(days=keep_days)).timestamp()

    def release(batch: str) -> None:
        for bucket in staged.filled_buckets(batch):
            _require_copy(store, staged, manifests[bucket], batch)
        expired_at = now.isoformat(timespec="seconds")
        amend_report(store, staged.markers[batch], {EXPIRED_AT: expired_at})

    units: dict[str, ExpiringUnit] = {}
    for batch, files in _staged_files(store, staged).items():
        if staged.is_expired(batch):  # a process died before it had deleted all of them
            units[batch] = ExpiringUnit(files)
        elif missing := _missing_buckets(staged, manifests, batch):
            waiting = f"bucket {missing[0]} of the store does not hold it yet"
            units[batch] = ExpiringUnit(files, waiting=waiting)
        elif _taken_at(staged, manifests, batch) <= newest:
            units[batch] = ExpiringUnit(files, release=partial(release, batch))
    return units


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
    return max((segment.live[batch].taken_at for segment in held), default=0)


def _segment_of(manifest: Manifest, batch: str) -> Segment:
    found = [segment for segment in manifest.segments if batch in segment.live]
    if not found:
        message = f"bucket {manifest.bucket} of the store has no records of batch {batch!r}"
        raise StorageError(f"{message}: run `store verify`", thing=batch)
    return found[0]


def _require_copy(store: ObjectStore, staged: Staged, manifest: Manifest, batch: str) -> None:
    """Raise StorageError unless a bucket of the store holds every byte of the staged batch."""
    bucket = manifest.bucket
    # Builds copy gzip members as they are, in the same order.
    if _file_digest(store, staged.paths(batch, bucket)) != _batch_digest(store, manifest, batch):
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
    for _, pieces in iter_batch_fragments(store, manifest, batch):
        for piece in pieces:
            digest.update(piece)
    return digest.hexdigest()


def old_generations(
    store: ObjectStore, *, options: BuildOptions, now: datetime
) -> dict[str, ExpiringUnit]:
    """Return the files by bucket that were replaced longer ago than the grace period."""
    units: dict[str, ExpiringUnit] = {}
    for bucket in range(read_bucket_count(store) if store.exists(STORE_FILE) else 0):
        current, before = read_current(store, bucket), now - options.grace
        files = find_unneeded(store, current, bucket=bucket, before=before)
        release = partial(forget_retired, store, current, before=before, now=now)
        if files:
            units[str(bucket)] = ExpiringUnit(files, release=release)
    return units
