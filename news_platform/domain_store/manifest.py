"""The generations of a bucket: their manifests, how one is committed, and what may be deleted.

A manifest names its segments, whose number the tiers bound. The batches of a segment stand in a
file of their own, which builders read and lookups do not: ten years of days are 3,650 batches, and
each build writes the manifest twice.

A commit writes a new manifest, then replaces CURRENT by compare-and-set. CURRENT is a copy of the
newest manifest, so one read opens a bucket. File names are derived from the manifest that the files
are added to. After a commit on top of that manifest, none of these names can be committed any more:
that is why files are deleted only after a commit.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import count
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from news_platform.domain_store.layout import (
    STORE_FILE,
    BuildOptions,
    batches_path,
    bucket_folders,
    current_path,
    entries_path,
    manifest_path,
    records_path,
    validated_bucket_count,
    view_path,
)
from news_platform.errors import (
    ConfigError,
    Conflict,
    InputError,
    StorageError,
    require_format,
)
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore

# The format numbers of a manifest and of `store.json`.
MANIFEST_FORMAT = 1
STORE_FORMAT = 1


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a segment."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One version of a batch: the fingerprint of its inputs and the Unix second it was added."""

    inputs: str
    taken_at: int


Batches = Mapping[str, BatchEntry]
_BATCHES = TypeAdapter(dict[str, BatchEntry])


@dataclass(frozen=True, slots=True)
class Segment:
    """Immutable files that hold some batches; those in `dropped` were replaced or removed.

    A batch without records in the bucket is held, too, so that it is not looked for again; a
    segment of such batches alone has no data files.
    """

    name: str
    bucket: int
    files: tuple[DataFile, ...]
    # The name of the file with its batches.
    listing: str
    # None as parsed, see `with_batches`; not part of the manifest.
    batches: Annotated[Batches | None, Field(exclude=True)] = None
    dropped: tuple[str, ...] = ()
    # Lookups with `since` skip a segment by it. None in manifests that have no dated records.
    last_day: date | None = None

    @property
    def live(self) -> Batches:
        """Return the batches that were not dropped; they must have been read."""
        assert self.batches is not None, "read_current(..., with_batches=True) reads them"
        return {name: batch for name, batch in self.batches.items() if name not in self.dropped}

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all data files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def paths(self) -> Iterator[str]:
        """Yield every file that belongs to the segment."""
        yield batches_path(self.bucket, self.listing)
        if self.files:
            yield from (file.path for file in self.files)
            yield entries_path(self.bucket, self.name)
            yield records_path(self.bucket, self.name)


@dataclass(frozen=True, slots=True)
class Index:
    """The index file of a generation; `sparse` has the first domain and offset of each block."""

    path: str
    size_bytes: int
    ranges_path: str
    domains: int
    records: int
    bytes: int
    fragments: int
    sparse: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of a bucket.

    `retired` has the Unix second since which each older file is no longer needed.
    """

    bucket: int
    buckets: int
    generation: int
    index: Index
    # A manifest of a later format fails the validation instead of being misread.
    format: Literal[1] = 1
    segments: tuple[Segment, ...] = ()
    retired: Mapping[str, int] = field(default_factory=dict)

    @property
    def batch_inputs(self) -> dict[str, str]:
        """Return the inputs of every batch in this generation."""
        return {name: batch.inputs for part in self.segments for name, batch in part.live.items()}

    @property
    def paths(self) -> set[str]:
        """Return every file that this generation needs."""
        needed = {path for segment in self.segments for path in segment.paths}
        return needed | {self.index.path, self.index.ranges_path}

    def to_json(self) -> bytes:
        """Return the manifest as JSON."""
        return _JSON.dump_json(self)


_JSON = TypeAdapter(Manifest)


def parse_manifest(body: bytes, path: str) -> Manifest:
    """Parse a manifest; raise StorageError when it is damaged or has a later format."""
    try:
        return _JSON.validate_json(body)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            if one["loc"] == ("format",):
                require_format(one["input"], MANIFEST_FORMAT, path=path)
        raise StorageError(f"{path!r} is not a manifest: {_cause(error)}", thing=path) from error


def _cause(error: ValidationError) -> str:
    """Return the first error in a few words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


@dataclass(frozen=True, slots=True)
class Current:
    """The newest generation of a bucket, as read; `manifest` is None before the first build."""

    manifest: Manifest | None
    etag: str | None

    @property
    def generation(self) -> int:
        """Return the number of the generation; 0 before the first."""
        return self.manifest.generation if self.manifest else 0

    def file_name(self, *purpose: str) -> str:
        """Return 12 hex digits for the names of files that are added to this generation only."""
        # A generation number is used once, and the index is named after its content and its base.
        base = f"base {self.generation} {self.manifest.index.path if self.manifest else ''}"
        return fingerprint([base, *purpose])[:12]


def claim_bucket_count(store: ObjectStore, buckets: int) -> int:
    """Create the store with this number of buckets; raise ConfigError when it has another."""
    body = json.dumps({"format": STORE_FORMAT, "buckets": validated_bucket_count(buckets)}).encode()
    # Two builders may create the store at the same time: the file of the first one counts.
    if store.find(STORE_FILE) is None and store.put_if_absent(STORE_FILE, body):
        return buckets
    found = read_bucket_count(store)
    if found != buckets:
        raise ConfigError(
            f"{store.uri(STORE_FILE)!r} has {found} buckets, expected {buckets}: "
            "a store keeps the number it was created with",
            thing=store.url,
        )
    return found


def resolve_bucket_count(store: ObjectStore, buckets: int) -> int:
    """Return the number of buckets of the store, or `buckets` when there is no store yet."""
    return read_bucket_count(store) if store.exists(STORE_FILE) else validated_bucket_count(buckets)


def read_bucket_count(store: ObjectStore) -> int:
    """Return the number of buckets; raise NotFound when there is no store."""
    try:
        document = json.loads(store.read(STORE_FILE))
        require_format(document["format"], STORE_FORMAT, path=store.uri(STORE_FILE))
        return validated_bucket_count(int(document["buckets"]))
    except NotFound as error:
        message = f"no domain store at {store.url!r}: run `news-platform store build` to create it"
        raise NotFound(message, thing=store.url) from error
    except (ValueError, KeyError, TypeError, InputError) as error:
        path = store.uri(STORE_FILE)
        message = f"cannot read the bucket count from {path!r}: {error}"
        raise StorageError(message, thing=path) from error


def check_bucket_count(manifest: Manifest | None, buckets: int) -> Manifest | None:
    """Return the manifest; raise StorageError when it is for another number of buckets."""
    if manifest is not None and manifest.buckets != buckets:
        raise StorageError(
            f"bucket {manifest.bucket} was built for {manifest.buckets} buckets, but "
            f"{STORE_FILE!r} has {buckets}: write {manifest.buckets} back",
            thing=STORE_FILE,
        )
    return manifest


def read_current(store: ObjectStore, bucket: int, *, with_batches: bool = False) -> Current:
    """Read the newest generation of a bucket; builders need the batches of its segments, too."""
    path = current_path(bucket)
    try:
        body, info = store.read_with_info(path)
    except NotFound:
        return Current(None, None)
    manifest = parse_manifest(body, store.uri(path))
    return Current(read_batches(store, manifest) if with_batches else manifest, info.etag)


def read_batches(
    store: ObjectStore,
    manifest: Manifest,
    *,
    known: Manifest | None = None,
    is_repair: bool = False,
) -> Manifest:
    """Read which batches the segments hold, but for those that `known` has read already.

    With `is_repair` a segment whose list is gone holds nothing: its batches are built again.
    """
    read = {one.listing: one.batches for one in known.segments} if known else {}

    def batches(segment: Segment) -> Batches:
        found = read.get(segment.listing)
        return _read_listing(store, segment, is_repair) if found is None else found

    segments = (replace(one, batches=batches(one)) for one in manifest.segments)
    return replace(manifest, segments=tuple(segments))


def _read_listing(store: ObjectStore, segment: Segment, is_repair: bool) -> Batches:
    path = batches_path(segment.bucket, segment.listing)
    try:
        return _BATCHES.validate_json(store.read(path))
    except NotFound:
        if is_repair:
            return {}
        raise
    except ValidationError as error:
        where = store.uri(path)
        message = f"{where!r} is not a list of batches: delete it and run `store repair`"
        raise StorageError(message, thing=where) from error


def dump_batches(batches: Batches) -> bytes:
    """Return the list of a segment's batches as JSON."""
    return _BATCHES.dump_json(dict(batches))


def commit(store: ObjectStore, base: Current, change: Callable[[int], Manifest]) -> Manifest:
    """Make the next generation current; raise Conflict when another writer committed first.

    `change` receives the generation's number and returns its manifest.
    """
    # A writer that died before the second step left a manifest: its number is skipped.
    for generation in count(base.generation + 1):
        manifest = change(generation)
        body = manifest.to_json()
        if store.put_if_absent(manifest_path(manifest.bucket, generation), body):
            store.compare_and_set(current_path(manifest.bucket), body, etag=base.etag)
            return manifest
    raise AssertionError("unreachable")


def refresh_view(store: ObjectStore, manifest: Manifest) -> None:
    """Copy the index to its fixed path.

    Two writers may copy at the same time: repeat until the copy is that of the newest generation.
    """
    while True:
        store.put(view_path(manifest.bucket), store.read(manifest.index.path))
        newest = read_current(store, manifest.bucket).manifest
        if newest is None or newest.generation <= manifest.generation:
            return
        manifest = newest


def retired_files(old: Manifest | None, needed: set[str], *, at: int) -> dict[str, int]:
    """Return the files of `old` that are not `needed`, each with the time it was retired."""
    if old is None:
        return {}
    gone = {path: at for path in (old.paths | {manifest_path(old.bucket, old.generation)})}
    return {path: since for path, since in {**gone, **old.retired}.items() if path not in needed}


def without_expired(manifest: Manifest, *, before: int) -> tuple[Manifest, list[str]]:
    """Return the manifest without the files retired earlier than `before`, and those files."""
    expired = sorted(path for path, since in manifest.retired.items() if since < before)
    kept = {path: since for path, since in manifest.retired.items() if since >= before}
    return replace(manifest, retired=kept), expired


def find_orphans(
    store: ObjectStore, current: Current, *, bucket: int, before: datetime
) -> list[ObjectInfo]:
    """Return files written earlier than `before` that the manifest neither needs nor has retired.

    Writers that died or lost a race before their commit leave such files.
    """
    known = {current_path(bucket)}
    if current.manifest is not None:
        manifest = current.manifest
        known |= manifest.paths | manifest.retired.keys()
        known.add(manifest_path(bucket, manifest.generation))
    found = (info for folder in bucket_folders(bucket) for info in store.list(folder))
    # A younger file may belong to a commit that is under way.
    return [info for info in found if info.path not in known and info.modified_at < before]


def find_unneeded(
    store: ObjectStore, current: Current, *, bucket: int, before: datetime
) -> list[ObjectInfo]:
    """Return the files that gc deletes: orphans, and those retired earlier than `before`."""
    if current.manifest is None:
        return []
    _, expired = without_expired(current.manifest, before=int(before.timestamp()))
    retired = (store.find(path) for path in expired)
    orphans = find_orphans(store, current, bucket=bucket, before=before)
    return [*(info for info in retired if info is not None), *orphans]


def gc_bucket(store: ObjectStore, bucket: int, *, options: BuildOptions, now: datetime) -> int:
    """Delete the files that have not been needed for longer than the grace period; count them."""
    current, before = read_current(store, bucket), now - options.grace
    unneeded = find_unneeded(store, current, bucket=bucket, before=before)
    if not unneeded:
        return 0
    try:
        forget_retired(store, current, before=before, now=now)
    except Conflict:
        # Another writer is at work on the bucket; the next gc deletes what is left.
        return 0
    store.delete(info.path for info in unneeded)
    return len(unneeded)


def forget_retired(store: ObjectStore, base: Current, *, before: datetime, now: datetime) -> None:
    """Commit the same content as a new generation, without the files retired before a moment.

    After that, no slower writer can make these files current, and they may be deleted.
    """
    if base.manifest is None:
        return
    kept, _ = without_expired(base.manifest, before=int(before.timestamp()))
    old = manifest_path(kept.bucket, kept.generation)
    retired = {**kept.retired, old: int(now.timestamp())}
    commit(store, base, lambda n: replace(kept, generation=n, retired=retired))
