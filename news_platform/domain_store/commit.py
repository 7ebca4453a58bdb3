"""The one place where a bucket changes: a new manifest, then CURRENT by compare-and-set.

CURRENT is a copy of the newest manifest, so one read opens a bucket. File names are derived from
the manifest they are added to; once anybody has committed on top of it, no name of that time can
ever be committed again. That is what makes deletion safe: delete only after a commit of your own.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from news_platform.domain_store.layout import (
    STORE_FILE,
    bucket_folders,
    current_path,
    manifest_path,
    validated_bucket_count,
    view_path,
)
from news_platform.domain_store.manifest import Manifest, parse_manifest
from news_platform.domain_store.options import BuildOptions
from news_platform.errors import ConfigError, Conflict, InputError, StorageError
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore

# Of the whole store; each manifest carries its own.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Current:
    """The newest generation of a bucket as it was read; no manifest when there is none yet."""

    manifest: Manifest | None
    etag: str | None

    @property
    def generation(self) -> int:
        """Return the number of the generation; 0 before the first."""
        return self.manifest.generation if self.manifest else 0

    def file_name(self, *purpose: str) -> str:
        """Return the 12 hex digits for files that are added to this generation and no other."""
        # A number is used once and an index is named after its content and its own base.
        base = f"base {self.generation} {self.manifest.index.path if self.manifest else ''}"
        return fingerprint([base, *purpose])[:12]


def claim_bucket_count(store: ObjectStore, buckets: int) -> int:
    """Return the number of buckets of a store, new or old; raise ConfigError when it is another."""
    body = json.dumps({"format": FORMAT, "buckets": validated_bucket_count(buckets)}).encode()
    if store.find(STORE_FILE) is None and store.put_if_absent(STORE_FILE, body):
        return buckets
    found = read_bucket_count(store)
    if found != buckets:
        raise ConfigError(
            f"{store.uri(STORE_FILE)!r} has {found} buckets, not {buckets}: "
            "a store keeps the number it was begun with",
            thing=store.url,
        )
    return found


def resolve_bucket_count(store: ObjectStore, buckets: int) -> int:
    """Return the number of buckets of an existing store, else the one that a new one will get."""
    return read_bucket_count(store) if store.exists(STORE_FILE) else validated_bucket_count(buckets)


def read_bucket_count(store: ObjectStore) -> int:
    """Return the number of buckets; raise NotFound when there is no store."""
    try:
        document = json.loads(store.read(STORE_FILE))
        if document["format"] != FORMAT:
            raise InputError(f"format {document['format']!r}, expected {FORMAT}")
        return validated_bucket_count(int(document["buckets"]))
    except NotFound as error:
        message = f"no domain store at {store.url!r}: `news-platform store build` begins one"
        raise NotFound(message, thing=store.url) from error
    except (ValueError, KeyError, TypeError, InputError) as error:
        path = store.uri(STORE_FILE)
        message = f"{path!r} does not describe a domain store: {error}"
        raise StorageError(message, thing=path) from error


def check_bucket_count(manifest: Manifest | None, buckets: int) -> Manifest | None:
    """Return the manifest; raise StorageError when its bucket is one of another number."""
    if manifest is not None and manifest.buckets != buckets:
        raise StorageError(
            f"bucket {manifest.bucket} is one of {manifest.buckets}, but {STORE_FILE!r} says "
            f"{buckets}: write the old number back",
            thing=STORE_FILE,
        )
    return manifest


def read_current(store: ObjectStore, bucket: int) -> Current:
    """Read the newest generation of a bucket."""
    path = current_path(bucket)
    try:
        body, info = store.read_with_info(path)
    except NotFound:
        return Current(None, None)
    return Current(parse_manifest(body, store.uri(path)), info.etag)


def commit(store: ObjectStore, base: Current, change: Callable[[int], Manifest]) -> Manifest:
    """Make the next generation current; raise Conflict when somebody else was faster.

    `change` gets the generation's number. Numbers of attempts that died are skipped.
    """
    for generation in count(base.generation + 1):
        manifest = change(generation)
        body = manifest.to_json()
        if store.put_if_absent(manifest_path(manifest.bucket, generation), body):
            store.compare_and_set(current_path(manifest.bucket), body, etag=base.etag)
            return manifest
    raise AssertionError("unreachable")


def refresh_view(store: ObjectStore, manifest: Manifest) -> None:
    """Put the index where people look for it; the newest one wins over a slower writer's."""
    while True:
        store.put(view_path(manifest.bucket), store.read(manifest.index.path))
        newest = read_current(store, manifest.bucket).manifest
        if newest is None or newest.generation <= manifest.generation:
            return
        manifest = newest


def retired_files(old: Manifest | None, needed: set[str], *, at: int) -> dict[str, int]:
    """Return since when each file that `old` knew is no longer needed."""
    if old is None:
        return {}
    gone = {path: at for path in (old.paths | {manifest_path(old.bucket, old.generation)})}
    return {path: since for path, since in {**gone, **old.retired}.items() if path not in needed}


def without_expired(manifest: Manifest, *, before: int) -> tuple[Manifest, list[str]]:
    """Return the manifest without the files that were retired `before`, and those files."""
    expired = sorted(path for path, since in manifest.retired.items() if since < before)
    kept = {path: since for path, since in manifest.retired.items() if since >= before}
    return replace(manifest, retired=kept), expired


@dataclass(frozen=True, slots=True)
class GcReport:
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


def gc_bucket(store: ObjectStore, bucket: int, *, options: BuildOptions, now: datetime) -> GcReport:
    """Delete what has been unneeded for longer than the grace period.

    Only after a commit of its own: then no slower writer can make these very files current.
    """
    current = read_current(store, bucket)
    before = now - options.grace
    orphans = find_orphans(store, current, bucket=bucket, before=before)
    if current.manifest is None:
        return GcReport(bucket, 0, 0)
    kept, expired = without_expired(current.manifest, before=int(before.timestamp()))
    if not orphans and not expired:
        return GcReport(bucket, 0, 0)
    try:
        _commit_again(store, current, kept, at=int(now.timestamp()))
    except Conflict:
        return GcReport(bucket, 0, 0)
    store.delete([*expired, *(info.path for info in orphans)])
    size = sum(info.size_bytes for info in orphans)
    return GcReport(bucket, len(orphans) + len(expired), size)


def _commit_again(store: ObjectStore, base: Current, manifest: Manifest, *, at: int) -> None:
    """Commit the same content as a new generation."""
    retired = {**manifest.retired, manifest_path(manifest.bucket, manifest.generation): at}
    commit(store, base, lambda n: replace(manifest, generation=n, retired=retired))
