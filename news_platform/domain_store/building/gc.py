"""Finds and deletes files of a bucket that no generation needs any more."""

from dataclasses import dataclass, replace
from datetime import datetime

from news_platform.domain_store.commit import Current, commit, read_current, without_expired
from news_platform.domain_store.layout import bucket_folders, current_path, manifest_path
from news_platform.domain_store.manifest import Manifest
from news_platform.domain_store.options import BuildOptions
from news_platform.errors import Conflict
from news_platform.storage.objects.store import ObjectInfo, ObjectStore


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What was deleted from one bucket."""

    bucket: int
    files: int
    bytes: int


def find_orphans(
    store: ObjectStore, current: Current, *, bucket: int, before: datetime
) -> list[ObjectInfo]:
    """Return files that neither this generation nor its grace period knows, last written `before`.

    They are what writers left that died, or lost a race, before they could commit.
    """
    known = {current_path(bucket)}
    if current.manifest is not None:
        manifest = current.manifest
        known |= manifest.paths | manifest.retired.keys()
        known.add(manifest_path(bucket, manifest.generation))
    found = (info for folder in bucket_folders(bucket) for info in store.list(folder))
    return [info for info in found if info.path not in known and info.modified_at < before]


def sweep_bucket(
    store: ObjectStore, bucket: int, *, options: BuildOptions, now: datetime
) -> SweepReport:
    """Delete what has been unneeded for longer than the grace period.

    Only after a commit of its own: then no slower writer can make these very files current.
    """
    current = read_current(store, bucket)
    before = now - options.grace
    orphans = find_orphans(store, current, bucket=bucket, before=before)
    if current.manifest is None:
        return SweepReport(bucket, 0, 0)
    kept, expired = without_expired(current.manifest, before=int(before.timestamp()))
    if not orphans and not expired:
        return SweepReport(bucket, 0, 0)
    try:
        _commit_again(store, current, kept, at=int(now.timestamp()))
    except Conflict:
        return SweepReport(bucket, 0, 0)
    store.delete([*expired, *(info.path for info in orphans)])
    size = sum(info.size_bytes for info in orphans)
    return SweepReport(bucket, len(orphans) + len(expired), size)


def _commit_again(store: ObjectStore, base: Current, manifest: Manifest, *, at: int) -> None:
    """Commit the same content as a new generation."""
    retired = {**manifest.retired, manifest_path(manifest.bucket, manifest.generation): at}
    commit(store, base, lambda n: replace(manifest, generation=n, retired=retired))
